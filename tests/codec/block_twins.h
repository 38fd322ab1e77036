// The codecs that work block by block once more, number by number and slowly, for comparison.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hybridsync/math/codec/block_codec.h"

namespace hybridsync::twin {

inline size_t bits_of(CodecKind kind) {
  switch (kind) {
    case CodecKind::fp32:
      return 32;
    case CodecKind::bf16:
    case CodecKind::fp16:
      return 16;
    case CodecKind::int8:
      return 8;
    case CodecKind::int4:
      return 4;
    case CodecKind::int2:
      return 2;
    default:
      return 1;
  }
}

inline size_t head_of(CodecKind kind) {
  if (bits_of(kind) > 8) return 0;
  return kind == CodecKind::int2 ? 4 : 2;
}

inline float of_bf16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

// The nearest bf16, half way the even one, at most the largest finite one.
inline uint32_t bf16(float magnitude) {
  const uint32_t below = std::bit_cast<uint32_t>(magnitude) >> 16;
  if (below >= 0x7f7f) return 0x7f7f;
  const double down = double(magnitude) - of_bf16(below),
               up = of_bf16(below + 1) - double(magnitude);
  return down < up || (down == up && below % 2 == 0) ? below : below + 1;
}

inline float of_fp16(uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> 10);
  const auto fraction = static_cast<float>(magnitude & 0x3ff);
  return exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
}

inline uint32_t fp16(float magnitude) {
  if (magnitude >= 65504) return 0x7bff;
  const int exponent = magnitude == 0 ? -14 : std::max(-14, std::ilogb(magnitude));
  const double steps = std::nearbyint(std::ldexp(double(magnitude), 10 - exponent));
  // A normal number has 1024 steps or more, which count as one more in the exponent's field.
  return static_cast<uint32_t>((exponent + 14) << 10) + static_cast<uint32_t>(steps);
}

inline int top_of(CodecKind kind) { return kind == CodecKind::int8 ? 127 : 7; }

inline uint32_t step_bits(float largest, int top) {
  const float wanted = largest / static_cast<float>(top);
  uint32_t bits = std::bit_cast<uint32_t>(wanted) >> 16;
  if (of_bf16(bits) < wanted) ++bits;
  while (double(of_bf16(bits)) * top > FLT_MAX) --bits;
  return of_bf16(bits) < FLT_MIN ? 0 : bits;
}

template <class Term>
float sum_of(std::span<const float> u, Term term) {
  float parts[32] = {};
  for (size_t i = 0; i < u.size(); ++i) parts[i % 32] += term(std::fabs(u[i]) / 1024);
  for (size_t half = 16; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k) parts[k] += parts[k + half];
  return parts[0];
}

// The magnitudes or the step at the head of a block's code, and int2's threshold.
struct Head {
  uint32_t first = 0, second = 0;
  float threshold = 0;
};

inline Head head(CodecKind kind, std::span<const float> u) {
  if (kind == CodecKind::int8 || kind == CodecKind::int4) {
    float largest = 0;
    for (float x : u) largest = std::max(largest, std::fabs(x));
    return {step_bits(largest, top_of(kind))};
  }
  const auto n = static_cast<float>(u.size());
  const float mean = sum_of(u, [](float x) { return x; }) * (1024 / n);
  if (kind == CodecKind::sign) return {bf16(mean)};
  const float threshold = 1.5F * mean;
  float many = 0;
  for (float x : u) many += std::fabs(x) > threshold ? 1.0F : 0.0F;
  const auto mean_bits = [](float sum, float count) {
    return count > 0 ? bf16(std::min(FLT_MAX, sum / count * 1024)) : 0;
  };
  std::vector<float> small(u.begin(), u.end()), large(u.begin(), u.end());
  for (size_t i = 0; i < u.size(); ++i) (std::fabs(u[i]) > threshold ? small : large)[i] = 0;
  const auto same = [](float x) { return x; };
  return {mean_bits(sum_of(small, same), n - many), mean_bits(sum_of(large, same), many),
          threshold};
}

inline uint32_t field(CodecKind kind, const Head& head, float u) {
  const uint32_t sign = u < 0 ? 1 : 0, sign_bit = std::signbit(u) ? 1 : 0;
  switch (kind) {
    case CodecKind::fp32:
      return std::bit_cast<uint32_t>(u);
    case CodecKind::bf16:
      return bf16(std::fabs(u)) | sign_bit << 15;
    case CodecKind::fp16:
      return fp16(std::fabs(u)) | sign_bit << 15;
    case CodecKind::int2:
      return (std::fabs(u) > head.threshold ? 1 : 0) | sign << 1;
    case CodecKind::sign:
      return sign;
    default: {
      const float inverse = head.first ? 1 / of_bf16(head.first) : 0;
      const auto level = static_cast<int>(std::nearbyint(u * inverse));
      return static_cast<uint32_t>(level) & ((1U << bits_of(kind)) - 1);
    }
  }
}

// NaN: no such code.
inline float number(CodecKind kind, const Head& head, uint32_t field) {
  const auto with_sign = [](float x, uint32_t sign) { return sign ? -x : x; };
  switch (kind) {
    case CodecKind::fp32:
      return std::bit_cast<float>(field);
    case CodecKind::bf16:
      return of_bf16(field);
    case CodecKind::fp16:
      return (field & 0x7fff) < 0x7c00 ? with_sign(of_fp16(field & 0x7fff), field >> 15) : NAN;
    case CodecKind::int2:
      return with_sign(of_bf16(field & 1 ? head.second : head.first), field >> 1);
    case CodecKind::sign:
      return with_sign(of_bf16(head.first), field);
    default: {
      const int half = 1 << (bits_of(kind) - 1);
      const int level = static_cast<int>(field) < half ? int(field) : int(field) - 2 * half;
      return level == -half ? NAN : static_cast<float>(level) * of_bf16(head.first);
    }
  }
}

// Where the number `i` of a block lies: a byte behind the head, and a bit of it.
inline std::pair<size_t, size_t> place(size_t bits, size_t i) {
  if (bits >= 8) return {i * bits / 8, 0};
  const size_t group = 128 / bits;
  return {i / group * 16 + i % 16, i % group / 16 * bits};
}

inline std::vector<uint8_t> block_code(CodecKind kind, const Head& head, std::span<const float> u) {
  std::vector<uint8_t> code(head_of(kind));
  for (size_t i = 0; i < code.size(); ++i)
    code[i] = static_cast<uint8_t>((i < 2 ? head.first : head.second) >> 8 * (i % 2));
  const size_t bits = bits_of(kind);
  for (size_t i = 0; i < u.size(); ++i) {
    const auto [byte, bit] = place(bits, i);
    const size_t at = head_of(kind) + byte, length = std::max<size_t>(1, bits / 8);
    if (code.size() < at + length) code.resize(at + length);
    for (size_t k = 0; k < length; ++k)
      code[at + k] |= static_cast<uint8_t>(field(kind, head, u[i]) >> 8 * k << bit);
  }
  return code;
}

struct Coded {
  std::vector<uint8_t> code;
  std::vector<float> residual;
};

// `residual` may be empty. All numbers must stay finite.
inline Coded encode(CodecKind kind, std::span<const float> values, float beta,
                    std::span<const float> residual) {
  Coded coded;
  for (size_t i = 0; i < values.size(); i += 1024) {
    std::vector<float> u(values.begin() + i, values.begin() + std::min(values.size(), i + 1024));
    for (size_t k = 0; k < u.size() && !residual.empty() && beta != 0; ++k) {
      const float product = beta * residual[i + k];
      u[k] += product;
    }
    const Head its = bits_of(kind) > 8 ? Head{} : head(kind, u);
    const auto code = block_code(kind, its, u);
    coded.code.insert(coded.code.end(), code.begin(), code.end());
    for (float x : u) coded.residual.push_back(x - number(kind, its, field(kind, its, x)));
  }
  return coded;
}

}  // namespace hybridsync::twin
