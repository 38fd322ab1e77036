// A few bits for each number, and one or two 16-bit magnitudes (bf16) for each block of 1,024:
//
//   int8   8.02 bits  round(u / step) in -127..127, step = max |u| / 127 rounded up
//   int4   4.02 bits  the same in -7..7
//   int2   2.03 bits  the sign, and which of two magnitudes: the means of the |u| up to 1.25 times
//                     the block's mean |u|, and of those above. 1.25 is near the best threshold for
//                     normal numbers, and the rest is more robust against a few large ones than
//                     anything that starts from the maximum
//   sign   1.02 bits  the sign, and the mean |u|
//
// A step or magnitude of 0 stands for zeros; blocks whose step would be no normal number are sent
// as such. Both zeros count as positive, so with `int2` and `sign` a zero is sent as a magnitude,
// which the residual takes back.
#pragma once

#include <memory>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// int8, int4, int2 or sign. Throws std::invalid_argument for another kind.
std::unique_ptr<Codec> make_blocks(CodecKind kind);

}  // namespace hybridsync
