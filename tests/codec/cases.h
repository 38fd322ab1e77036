// Vectors of numbers that codecs find hard, and how the tests call a codec.
#pragma once

#include <cfloat>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hybridsync/math/codec/blocks.h"
#include "hybridsync/math/codec/codec.h"
#include "hybridsync/math/codec/dense.h"

namespace hybridsync {

inline const std::vector<CodecKind> kDense{CodecKind::fp32, CodecKind::bf16, CodecKind::fp16};
inline const std::vector<CodecKind> kBlocks{CodecKind::int8, CodecKind::int4, CodecKind::int2,
                                            CodecKind::sign};

inline std::unique_ptr<Codec> codec_of(CodecKind kind) {
  return kind <= CodecKind::fp16 ? make_dense(kind) : make_blocks(kind);
}

inline std::string name_of(CodecKind kind) {
  const char* names[] = {"fp32", "bf16", "fp16", "int8", "int4", "int2", "sign"};
  return names[static_cast<int>(kind)];
}

inline std::vector<float> normal(size_t count, unsigned seed, float scale = 1e-3F) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> v(count);
  for (float& x : v) x = draw(rng);
  return v;
}

struct Case {
  std::string name;
  std::vector<float> values;
};

inline std::vector<Case> cases(size_t count) {
  std::vector<Case> all{{"normal", normal(count, 1)},
                        {"zeros", std::vector<float>(count)},
                        {"negative zeros", std::vector<float>(count, -0.0F)},
                        {"all equal", std::vector<float>(count, 0.3F)},
                        {"largest", std::vector<float>(count, FLT_MAX)},
                        {"near the smallest normal", normal(count, 2, 40 * FLT_MIN)},
                        {"subnormal", normal(count, 3, FLT_MIN / 1000)},
                        {"halves' subnormals", normal(count, 4, 1e-5F)},
                        {"beyond halves", normal(count, 5, 60000)}};
  Case alternating{"alternating", normal(count, 6, 1e30F)};
  Case one_huge{"one huge", normal(count, 7, 1e-20F)};
  Case extremes{"extremes", normal(count, 8)};
  for (size_t i = 0; i < count; ++i) {
    alternating.values[i] = (i % 2 ? -1 : 1) * std::fabs(alternating.values[i]);
    if (i % 3 == 0) extremes.values[i] = i % 2 ? -FLT_MAX : FLT_MAX;
  }
  if (count) one_huge.values[count / 2] = -1e30F;
  for (auto& more : {alternating, one_huge, extremes}) all.push_back(more);
  return all;
}

// Buffers of exactly the bytes that are needed, so that a sanitizer sees one too many.
template <class T>
class Exactly {
 public:
  explicit Exactly(size_t count) : memory_(new T[count]()), count_(count) {}
  explicit Exactly(std::span<const T> from) : Exactly(from.size()) {
    std::copy(from.begin(), from.end(), memory_.get());
  }
  std::span<T> span() { return {memory_.get(), count_}; }

 private:
  std::unique_ptr<T[]> memory_;
  size_t count_;
};

// nullopt: refused. `residual` is changed, unless it is empty.
inline std::optional<std::vector<std::byte>> encoded(Codec& codec, std::span<const float> values,
                                                     float beta, std::vector<float>& residual) {
  Exactly<float> from(values);
  Exactly<float> rest{std::span<const float>(residual)};
  Exactly<std::byte> out(codec.bound(values.size()));
  const auto length = codec.encode(from.span(), beta, rest.span(), out.span());
  std::copy(rest.span().begin(), rest.span().end(), residual.begin());
  if (!length) return std::nullopt;
  const auto code = out.span().first(*length);
  return std::vector<std::byte>(code.begin(), code.end());
}

// nullopt: not a code of so many numbers.
inline std::optional<std::vector<float>> decoded(Codec& codec, std::span<const std::byte> code,
                                                 size_t count) {
  Exactly<std::byte> from(code);
  Exactly<float> out(count);
  if (!codec.decode(from.span(), out.span())) return std::nullopt;
  return std::vector<float>(out.span().begin(), out.span().end());
}

}  // namespace hybridsync
