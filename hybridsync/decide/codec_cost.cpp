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

}  // namespace hybridsync
