// A few bits for each number, and one or two 16-bit magnitudes (bf16) for each block of 1,024:
//
//   int8   8.02 bits  round(u / step) in -127..127, step = max |u| / 127 rounded up
//   int4   4.02 bits  the same in -7..7
//   int2   2.03 bits  the sign, and which of two magnitudes: the mean of those |u| that are up to
//                     1.5 times the block's mean, and the mean of those above
//   sign   1.02 bits  the sign, and the mean |u|
//
// 1.5 leaves out 0.126 of the squares of normal numbers, where 0.1175 is the least possible (Max
// 1960), and 0.174 of Laplace's. 1.25 is better for normal numbers alone (0.117 and 0.186).
//
// A step or magnitude of 0 stands for zeros; int8 and int4 send a block as zeros if its step would
// be no normal number. Both zeros count as positive: int2 and sign send a zero as a magnitude,
// which the residual takes back.
#pragma once

#include <memory>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// int8, int4, int2 or sign. Throws std::invalid_argument for another kind.
std::unique_ptr<Codec> make_blocks(CodecKind kind);

}  // namespace hybridsync
