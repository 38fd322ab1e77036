// Numbers as one of 2m + 1 uniform levels (m = 1, 2, 3) of a step per block of 64 values:
//
//   q = round(m u / max |u|), halves away from zero;   step = max |u| / m;   decode = q step
//
// The step is coded as a float with three bits behind the leading one. A step of least square
// error would leave less of Gaussian numbers (with 3 levels 0.39 of the squared norm instead of
// 0.52), but it is the mean magnitude of what is sent, and such code books do worse in training
// with error feedback than the blocks' maxima. A block of which no magnitude reaches 2^-120 is
// zero. Levels are packed five, three or two to a symbol; symbols and steps are entropy coded.
#pragma once

#include <memory>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// Throws std::invalid_argument for other numbers of levels than 3, 5 and 7.
std::unique_ptr<Codec> make_levels(int levels);

}  // namespace hybridsync
