#include "hybridsync/math/codec/block_codec.h"

#include <algorithm>
#include <cassert>

namespace hybridsync {
namespace {

constexpr size_t kLongestCode = 4 + kBlock * sizeof(float);

struct alignas(64) Numbers {
  float at[kBlock] = {};
};

}  // namespace

size_t BlockCodec::block_bytes(size_t count) const {
  const size_t group = 128 / bits_;
  const size_t of_last = count % group * std::max<size_t>(1, bits_ / 8);
  return head_ + count / group * 16 + std::min<size_t>(of_last, 16);
}

size_t BlockCodec::bound(size_t count) const {
  const size_t last = count % kBlock;
  return count / kBlock * block_bytes(kBlock) + (last ? block_bytes(last) : 0);
}

std::optional<size_t> BlockCodec::encode(std::span<const float> values, float beta,
                                         std::span<float> residual, std::span<std::byte> out) {
  assert(residual.empty() || residual.size() == values.size());
  assert(out.size() >= bound(values.size()));
  Numbers dropped;
  auto* code = reinterpret_cast<uint8_t*>(out.data());
  for (size_t i = 0; i < values.size(); i += kBlock) {
    const size_t count = std::min(kBlock, values.size() - i);
    float* rest = residual.empty() ? dropped.at : residual.data() + i;
    const bool is_read = !residual.empty() && beta != 0;
    const Block block{values.data() + i, is_read ? rest : nullptr, beta, count};
    const bool finite =
        count == kBlock ? functions_.encode(block, rest, code) : encode_short(block, rest, code);
    if (!finite) return std::nullopt;
    code += block_bytes(count);
  }
  return bound(values.size());
}

bool BlockCodec::encode_short(const Block& block, float* rest, uint8_t* code) const {
  Numbers values, residual;
  uint8_t whole[kLongestCode];
  std::copy_n(block.values, block.count, values.at);
  if (block.residual) std::copy_n(block.residual, block.count, residual.at);
  const Block padded{values.at, block.residual ? residual.at : nullptr, block.beta, block.count};
  if (!functions_.encode(padded, residual.at, whole)) return false;
  std::copy_n(residual.at, block.count, rest);
  std::copy_n(whole, block_bytes(block.count), code);
  return true;
}

bool BlockCodec::decode(std::span<const std::byte> code, std::span<float> out) {
  if (code.size() != bound(out.size())) return false;
  const auto* at = reinterpret_cast<const uint8_t*>(code.data());
  for (size_t i = 0; i < out.size(); i += kBlock) {
    const auto block = out.subspan(i, std::min(kBlock, out.size() - i));
    const bool valid =
        block.size() == kBlock ? functions_.decode(at, block.data()) : decode_short(at, block);
    if (!valid) return false;
    at += block_bytes(block.size());
  }
  return true;
}

bool BlockCodec::decode_short(const uint8_t* code, std::span<float> out) const {
  Numbers numbers;
  uint8_t whole[kLongestCode] = {};
  std::copy_n(code, block_bytes(out.size()), whole);
  if (!functions_.decode(whole, numbers.at)) return false;
  std::copy_n(numbers.at, out.size(), out.data());
  return true;
}

}  // namespace hybridsync
