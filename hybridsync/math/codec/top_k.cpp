#include "hybridsync/math/codec/top_k.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <vector>

#include "hybridsync/math/codec/chunk_selection.h"
#include "hybridsync/math/codec/entropy.h"
#include "hybridsync/math/codec/packed_values.h"
#include "hybridsync/math/codec/pick_list.h"
#include "hybridsync/math/codec/threshold_selection.h"

namespace hybridsync {
namespace {

constexpr std::byte kDense{0};
constexpr int kDenseBits = 16;
constexpr size_t kHead = 5;
constexpr uint64_t kMostNumbers = uint64_t{1} << 32;

size_t dense_size(size_t count) { return 1 + packed_size(count, kDenseBits); }

void put_head(int value_bits, size_t count, std::byte* out) {
  out[0] = static_cast<std::byte>(value_bits);
  for (int i = 0; i < 4; ++i) out[1 + i] = static_cast<std::byte>(count >> (8 * i));
}

size_t get_count(const std::byte* head) {
  size_t count = 0;
  for (int i = 0; i < 4; ++i) count |= static_cast<size_t>(head[1 + i]) << (8 * i);
  return count;
}

std::byte* append(std::span<const std::byte> bytes, std::byte* out) {
  return std::copy(bytes.begin(), bytes.end(), out);
}

// u is the values, or the residual, which then becomes what is left out.
size_t write_dense(std::span<const float> values, std::span<float> residual, std::byte* out) {
  const std::span<const float> u = residual.empty() ? values : residual;
  const size_t group = group_size(kDenseBits), size = packed_size(group, kDenseBits);
  std::array<float, kLargestGroup> left_out;
  *out++ = kDense;
  for (size_t i = 0; i < u.size(); i += group, out += size) {
    const size_t n = std::min(group, u.size() - i);
    pack_group(u.subspan(i, n), kDenseBits, out, left_out.data());
    if (!residual.empty()) std::copy_n(left_out.data(), n, residual.data() + i);
  }
  return dense_size(u.size());
}

template <class Selector>
class TopK final : public Codec {
 public:
  explicit TopK(const CodecOptions& options)
      : value_bits_(options.value_bits), selector_(options.density) {}

  size_t bound(size_t count) const override { return dense_size(count); }

  std::optional<size_t> encode(std::span<const float> values, float beta, std::span<float> residual,
                               std::span<std::byte> out) override {
    assert(residual.empty() || residual.size() == values.size());
    assert(out.size() >= bound(values.size()) && values.size() <= kMostNumbers);
    picks_.start(value_bits_, selector_.room(values.size()), residual);
    if (!selector_.pick({values, beta, residual}, picks_)) return std::nullopt;
    const auto places = code_positions(values.size());
    const size_t size = kHead + picks_.packed().size() + places.size();
    if (size > dense_size(values.size())) {
      picks_.take_back();
      return write_dense(values, residual, out.data());
    }
    put_head(value_bits_, picks_.size(), out.data());
    append(places, append(picks_.packed(), out.data() + kHead));
    return size;
  }

  bool decode(std::span<const std::byte> code, std::span<float> out) override {
    if (code.empty() || out.size() > kMostNumbers) return false;
    const auto rest = code.subspan(1);
    if (code[0] == kDense)
      return code.size() == dense_size(out.size()) && unpack(rest, kDenseBits, out);
    return read_sparse(code, out);
  }

 private:
  std::span<const std::byte> code_positions(size_t limit) {
    if (picks_.size() == 0) return {};
    const size_t most = positions_bound(picks_.size(), limit);
    if (coded_positions_.size() < most) coded_positions_.resize(most);
    return {coded_positions_.data(), encode_positions(picks_.positions(), limit, coded_positions_)};
  }

  bool read_sparse(std::span<const std::byte> code, std::span<float> out) {
    const int bits = static_cast<int>(code[0]);
    if (code.size() < kHead || !is_value_bits(bits)) return false;
    const size_t count = get_count(code.data()), packed = packed_size(count, bits);
    if (count > out.size() || packed > code.size() - kHead) return false;
    values_.resize(count);
    if (!unpack(code.subspan(kHead, packed), bits, values_)) return false;
    if (!read_positions(code.subspan(kHead + packed), count, out.size())) return false;
    std::fill(out.begin(), out.end(), 0.0f);
    for (size_t i = 0; i < count; ++i) out[positions_[i]] = values_[i];
    return true;
  }

  bool read_positions(std::span<const std::byte> code, size_t count, size_t limit) {
    positions_.resize(count);
    if (count == 0) return code.empty();
    return decode_positions(code, limit, positions_) == code.size();
  }

  int value_bits_;
  Selector selector_;
  PickList picks_;
  std::vector<std::byte> coded_positions_;
  std::vector<uint32_t> positions_;  // of decode, as are values_
  std::vector<float> values_;
};

}  // namespace

std::unique_ptr<Codec> make_top_k(const CodecOptions& options) {
  if (!(options.density > 0 && options.density <= 1))
    throw std::invalid_argument("density must be above 0 and at most 1");
  if (!is_value_bits(options.value_bits))
    throw std::invalid_argument("value_bits must be 16, 8, 4, 2 or 1");
  if (options.selection == Selection::chunks)
    return std::make_unique<TopK<ChunkSelection>>(options);
  return std::make_unique<TopK<ThresholdSelection>>(options);
}

bool is_dense_fallback(std::span<const std::byte> code) {
  return !code.empty() && code[0] == kDense;
}

}  // namespace hybridsync
