// Block by block: a block of every source is summed in the nearest cache, then written to every
// target while its lines are still there. Compiled at -O3 in every build type.
#include "hybridsync/wire/sum.h"

#include <algorithm>
#include <cstring>

namespace hybridsync {
namespace {

constexpr size_t kBlockBytes = 8 << 10;  // leaves most of the first-level cache to the sources

template <typename T>
void add(T* __restrict sum, const T* __restrict a, const T* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

template <typename T>
void accumulate(T* __restrict sum, const T* __restrict a, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += a[i];
}

}  // namespace

template <typename T>
void sum_in_order(std::span<const T* const> sources, std::span<T* const> targets, size_t count) {
  alignas(64) T sum[kBlockBytes / sizeof(T)];
  for (size_t at = 0; at < count; at += std::size(sum)) {
    const size_t n = std::min(std::size(sum), count - at);
    if (sources.size() == 1) {
      std::memcpy(sum, sources[0] + at, n * sizeof(T));
    } else {
      add(sum, sources[0] + at, sources[1] + at, n);
    }
    for (size_t s = 2; s < sources.size(); ++s) accumulate(sum, sources[s] + at, n);
    for (T* target : targets) std::memcpy(target + at, sum, n * sizeof(T));
  }
}

template void sum_in_order<float>(std::span<const float* const>, std::span<float* const>, size_t);
template void sum_in_order<double>(std::span<const double* const>, std::span<double* const>,
                                   size_t);

}  // namespace hybridsync
