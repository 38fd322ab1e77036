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
    const bool alone = residual.empty() || beta == 0;
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = alone ? values[first + i] : values[first + i] + beta * residual[first + i];
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
