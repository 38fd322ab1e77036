// What a number costs on the wire: the planner's side of every codec.
#pragma once

#include <cstdint>

#include "hybridsync/config/codec_options.h"
#include "hybridsync/decide/buckets.h"

namespace hybridsync {

// Tensors of fewer numbers travel beside the code, with codecs of 8 bits and less.
inline constexpr int64_t kLargeTensor = 4096;

struct CodecCost {
  double bits = 32;   // per number of a long vector
  bool exact = true;  // false: it depends on the numbers; then for normal ones, about
};

// fp32, bf16, fp16, int8, int4, int2, sign: exactly, with the scales of full blocks of 1,024.
// levels: measured. top_k: density (value bits + H2(density) / density), positions at their
// entropy, and two 16-bit numbers for each group of values.
CodecCost codec_cost(const CodecOptions& options);

// The part of a model's single-precision numbers that is in small tensors, padding left out.
double small_share(const Layout& layout);
// What small_tensors = "auto" stands for in this model: bf16, or int8 where bf16 would be more than
// a tenth of the bytes. Other values stay.
SmallTensorCode small_tensor_code(const CodecOptions& options, const Layout& layout);
// Of this model: small tensors beside the others.
CodecCost codec_cost(const CodecOptions& options, const Layout& layout);

}  // namespace hybridsync
