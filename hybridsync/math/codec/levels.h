// Numbers as one of 2m + 1 uniform levels (m = 1, 2, 3) of a step per block of 64 values:
//
//   q = round(m u / max |u|), halves away from zero;   step = sum |u| |q| / sum q^2;
//   decode = q step
//
// The step is the one of least square error for these levels: of Gaussian numbers, 3 levels leave
// 0.39 of the squared norm with it and 0.52 with max |u| / m, and the code is as long. It is coded
// as a float with m bits behind the leading one. A block of which no magnitude reaches 2^-120 is
// zero. Levels are packed five, three or two to a symbol; symbols and steps are entropy coded.
#pragma once

#include <memory>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// Throws std::invalid_argument for other numbers of levels than 3, 5 and 7.
std::unique_ptr<Codec> make_levels(int levels);

}  // namespace hybridsync
