// u = values + beta residual, which replaces the residual part by part; without a residual, u is
// the values.
#pragma once

#include <algorithm>
#include <span>

#include "hybridsync/math/codec/select_kernels.h"

namespace hybridsync {

struct ErrorFed {
  std::span<const float> values;
  float beta = 0;
  std::span<float> residual;

  size_t size() const { return values.size(); }
  // A part of u that has not been scanned.
  void copy_fresh(size_t first, std::span<float> out) const {
    std::copy_n(values.data() + first, out.size(), out.data());
    if (residual.empty() || beta == 0) return;
    for (size_t i = 0; i < out.size(); ++i) out[i] += beta * residual[first + i];
  }
  // Such a part is needed soon.
  void fetch(size_t first, size_t count) const {
    for (const std::span<const float> x : {values, std::span<const float>(residual)}) {
      if (x.empty()) continue;
      __builtin_prefetch(&x[first]);
      __builtin_prefetch(&x[first + count - 1]);
    }
  }
  // Makes that part of u, and scans it.
  Scan scan_part(size_t first, size_t count, uint32_t threshold, uint32_t* hits) const {
    const auto part = values.subspan(first, count);
    if (residual.empty()) return scan(part, threshold, hits);
    const auto rest = residual.subspan(first, count);
    if (beta != 0) return scan_sum(part, beta, rest, threshold, hits);
    std::copy(part.begin(), part.end(), rest.begin());
    return scan(rest, threshold, hits);
  }
  // What has been scanned.
  std::span<const float> scanned() const { return residual.empty() ? values : residual; }
};

}  // namespace hybridsync
