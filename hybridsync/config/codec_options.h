// How numbers travel between nodes: what a codec is made of.
#pragma once

#include <cstdint>

namespace hybridsync {

// hybridsync/math/codec has one for each.
enum class CodecKind { fp32, bf16, fp16, int8, int4, int2, sign, levels, top_k };
// top_k: the largest of each 4,096 numbers, or of all.
enum class Selection { chunks, threshold };
// Where a node keeps what a code leaves out: in its parameters, or beside them. automatic: in the
// parameters for top_k and sign, which leave out nearly everything.
enum class Residual { automatic, local, buffer };
// How numbers of small tensors travel with codecs that are coarser than 16 bits. automatic: bf16,
// or int8 where bf16 would be more than a tenth of the bytes. coded: like all others.
enum class SmallTensorCode { automatic, bf16, int8, coded };

struct CodecOptions {
  CodecKind kind = CodecKind::fp32;
  int levels = 5;             // levels: 3, 5 or 7
  double density = 1.0 / 64;  // top_k: the part of the numbers that is sent
  int value_bits = 8;         // top_k: 16, 8, 4, 2 or 1 per number sent
  Selection selection = Selection::chunks;
  double error_feedback = 1;  // of what was left out, what is encoded again; 0 drops it
  Residual residual = Residual::automatic;
  double gamma = 0.9;  // what a residual in the parameters keeps per round
  SmallTensorCode small_tensors = SmallTensorCode::automatic;
  // Gradients by top_k: each node sums up its own momentum before it picks what it sends.
  bool momentum_correction = false;
  int64_t density_warmup = 0;  // top_k: first rounds over which density falls from 1/4; 0: off

  bool operator==(const CodecOptions&) const = default;
};

}  // namespace hybridsync
