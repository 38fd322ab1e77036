// Which numbers of a fragment are of small tensors (norms, biases): few, and each matters much, so
// codes that are coarser than 16 bits leave them to bf16 or int8. All nodes derive the same from
// the same layout.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "hybridsync/config/codec_options.h"
#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/math/codec/mixed.h"

namespace hybridsync {

// By fragment; none where a fragment has none.
using SmallTensors = std::map<int, std::vector<IndexRange>>;

// Relative to the fragment, neighbours as one range. A tensor takes the padding behind it along.
std::vector<IndexRange> small_ranges(const Layout& layout, const FragmentTable& table,
                                     const Fragment& fragment);

// Of all fragments; none at all for codecs that are no coarser than bf16, or code them all alike.
SmallTensors small_tensors(const Layout& layout, const FragmentTable& table,
                           const CodecOptions& codec);

}  // namespace hybridsync
