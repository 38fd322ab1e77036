// Which tensors the numbers of a fragment belong to. All nodes derive the same from the same
// layout.
#pragma once

#include <cstddef>
#include <vector>

#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"

namespace hybridsync {

// Neighbours of one tensor.
struct TensorRange {
  size_t tensor = 0;  // index of the parameter in the layout
  size_t offset = 0;  // elements, in the fragment
  size_t count = 0;   // not 0
  bool operator==(const TensorRange&) const = default;
};

// In order, without gaps: a tensor takes the padding behind it along. None of a fragment that no
// tensor lies in.
std::vector<TensorRange> tensor_ranges(const Layout& layout, const FragmentTable& table,
                                       const Fragment& fragment);

}  // namespace hybridsync
