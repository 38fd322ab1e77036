#include "hybridsync/decide/codec_cost.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {
namespace {

constexpr double kBlock = 1024;

// Bits of an entropy-coded position per number, at this density.
double position_bits(double d) {
  if (d >= 1) return 0;
  return -d * std::log2(d) - (1 - d) * std::log2(1 - d);
}

double top_k_bits(const CodecOptions& options) {
  const int bits = options.value_bits;
  const double group = bits == 4 ? 128 : 256;
  const double book = bits == 16 ? 0 : bits == 1 ? 16 : 32;
  const double d = options.density;
  return std::min(16.0, d * (bits + book / group) + position_bits(d));
}

double levels_bits(int levels) { return levels == 3 ? 0.98 : levels == 5 ? 1.84 : 2.37; }

}  // namespace

CodecCost codec_cost(const CodecOptions& options) {
  switch (options.kind) {
    case CodecKind::fp32:
      return {32, true};
    case CodecKind::bf16:
    case CodecKind::fp16:
      return {16, true};
    case CodecKind::int8:
      return {8 + 16 / kBlock, true};
    case CodecKind::int4:
      return {4 + 16 / kBlock, true};
    case CodecKind::int2:
      return {2 + 32 / kBlock, true};
    case CodecKind::sign:
      return {1 + 16 / kBlock, true};
    case CodecKind::levels:
      return {levels_bits(options.levels), false};
    case CodecKind::top_k:
      return {top_k_bits(options), false};
  }
  return {};
}

double small_share(const Layout& layout) {
  int64_t small = 0;
  for (const Slice& s : layout.slices)
    if (s.type == Real::f32 && s.count < kLargeTensor) small += s.count;
  return static_cast<double>(small) / static_cast<double>(std::max<int64_t>(1, layout.count_f32));
}

SmallTensorCode small_tensor_code(const CodecOptions& options, const Layout& layout) {
  constexpr double kMost = 0.1;
  if (options.small_tensors != SmallTensorCode::automatic) return options.small_tensors;
  const double small = 16 * small_share(layout);
  const double others = (1 - small_share(layout)) * codec_cost(options).bits;
  return small > kMost * (small + others) ? SmallTensorCode::int8 : SmallTensorCode::bf16;
}

CodecCost codec_cost(const CodecOptions& options, const Layout& layout) {
  CodecCost cost = codec_cost(options);
  const SmallTensorCode small = small_tensor_code(options, layout);
  if (options.kind <= CodecKind::fp16 || small == SmallTensorCode::coded) return cost;
  const double share = small_share(layout);
  cost.bits = share * (small == SmallTensorCode::int8 ? 8 : 16) + (1 - share) * cost.bits;
  return cost;
}

}  // namespace hybridsync
