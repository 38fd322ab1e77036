// Outer optimizers: how a round's mean delta moves the anchor.
//
// With anchor a, mean delta D (it points from the anchor against progress) and buffer b:
//   average             a' = a - D                                  lr 1, momentum 0
//   sgd                 a' = a - lr D
//   momentum            b' = mu b + D,  a' = a - lr b'
//   Nesterov momentum   b' = mu b + D,  a' = a - lr (D + mu b')     DiLoCo (Douillard et al. 2023):
//   lr 0.7, mu 0.9
#pragma once

#include "hybridsync/config/config.h"
#include "hybridsync/math/values.h"

namespace hybridsync {

// For a mean that no code holds anything back of (`plain`), where means are coded: a learning rate
// above 1, or one that is tuned, only makes up for what codes hold back, so such a mean is taken as
// it is. Otherwise `outer` itself.
OuterConfig outer_for(const OuterConfig& outer, CodecKind codec, bool plain);

// Moves `anchor` in place. `buffer` is empty without momentum; with it, it has the anchor's type
// and length, starts at zero and is updated. lr 0 keeps the anchor. One member, lr 1 and no
// momentum: the new anchor equals that member's parameters to one unit in the last place.
void outer_step(const OuterConfig& outer, ConstValues mean_delta, Values anchor, Values buffer);

}  // namespace hybridsync
