#include "hybridsync/math/codec/mixed.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hybridsync/math/codec/bits.h"

namespace hybridsync {
namespace {

constexpr size_t kHead = sizeof(uint64_t);

struct Parts {
  std::vector<float> small, main;
};

class Mixed final : public Codec {
 public:
  Mixed(std::unique_ptr<Codec> main, std::vector<IndexRange> ranges, std::unique_ptr<Codec> small)
      : ranges_(std::move(ranges)), small_(std::move(small)), main_(std::move(main)) {}

  size_t bound(size_t count) const override {
    if (const Codec* one = alone(count)) return one->bound(count);
    const size_t small = count_small(count);
    return kHead + small_->bound(small) + main_->bound(count - small);
  }

  std::optional<size_t> encode(std::span<const float> values, float beta, std::span<float> residual,
                               std::span<std::byte> out) override {
    if (Codec* one = alone(values.size())) return one->encode(values, beta, residual, out);
    const Parts numbers = gather(values);
    Parts rest = gather(residual);
    const auto small = small_->encode(numbers.small, beta, rest.small, out.subspan(kHead));
    if (!small) return std::nullopt;
    const auto main = main_->encode(numbers.main, beta, rest.main, out.subspan(kHead + *small));
    if (!main) return std::nullopt;
    store_little(out.data(), uint64_t{*small});
    scatter(rest, residual);
    return kHead + *small + *main;
  }

  bool decode(std::span<const std::byte> code, std::span<float> out) override {
    if (Codec* one = alone(out.size())) return one->decode(code, out);
    if (code.size() < kHead) return false;
    const uint64_t length = load_little<uint64_t>(code.data());
    const auto rest = code.subspan(kHead);
    if (length > rest.size()) return false;
    Parts numbers;
    numbers.small.resize(count_small(out.size()));
    numbers.main.resize(out.size() - numbers.small.size());
    if (!small_->decode(rest.first(length), numbers.small)) return false;
    if (!main_->decode(rest.subspan(length), numbers.main)) return false;
    scatter(numbers, out);
    return true;
  }

 private:
  // f(offset, count, whether it is small) of every stretch of a vector, in order; some are empty.
  void each(size_t count, auto&& f) const {
    size_t at = 0;
    for (const IndexRange& r : ranges_) {
      const size_t begin = std::min(r.offset, count), end = std::min(r.offset + r.count, count);
      f(at, begin - at, false);
      f(begin, end - begin, true);
      at = end;
    }
    f(at, count - at, false);
  }

  size_t count_small(size_t count) const {
    size_t sum = 0;
    each(count, [&](size_t, size_t n, bool small) { sum += small ? n : 0; });
    return sum;
  }

  // The codec that gets all of so many numbers; none where both get some.
  Codec* alone(size_t count) const {
    const size_t small = count_small(count);
    if (small == 0) return main_.get();
    return small == count ? small_.get() : nullptr;
  }

  Parts gather(std::span<const float> all) const {
    Parts parts;
    parts.main.reserve(all.size());
    each(all.size(), [&](size_t at, size_t n, bool small) {
      auto& part = small ? parts.small : parts.main;
      part.insert(part.end(), all.begin() + at, all.begin() + at + n);
    });
    return parts;
  }

  void scatter(const Parts& parts, std::span<float> all) const {
    const float *small_at = parts.small.data(), *main_at = parts.main.data();
    each(all.size(), [&](size_t at, size_t n, bool small) {
      const float*& from = small ? small_at : main_at;
      std::copy_n(from, n, all.data() + at);
      from += n;
    });
  }

  const std::vector<IndexRange> ranges_;
  const std::unique_ptr<Codec> small_;
  const std::unique_ptr<Codec> main_;
};

}  // namespace

std::unique_ptr<Codec> make_mixed(std::unique_ptr<Codec> main, std::vector<IndexRange> small,
                                  CodecKind code_of_small) {
  if (small.empty()) return main;
  CodecOptions options;
  options.kind = code_of_small;
  return std::make_unique<Mixed>(std::move(main), std::move(small), make_codec(options));
}

}  // namespace hybridsync
