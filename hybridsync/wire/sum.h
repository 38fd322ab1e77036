// Element-wise sums of equally long arrays, always in the order of the arrays.
#pragma once

#include <cstddef>
#include <span>

namespace hybridsync {

// For every target t and element i: t[i] = ((sources[0][i] + sources[1][i]) + sources[2][i]) + ...
// A target may be one of the sources; otherwise nothing overlaps. At least one source.
// Instantiated for float and double.
template <typename T>
void sum_in_order(std::span<const T* const> sources, std::span<T* const> targets, size_t count);

}  // namespace hybridsync
