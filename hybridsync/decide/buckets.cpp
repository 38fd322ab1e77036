#include "hybridsync/decide/buckets.h"

#include <array>

namespace hybridsync {

Layout plan_buckets(const std::vector<ParameterShape>& parameters, int64_t bucket_bytes) {
  Layout layout;
  std::array<int64_t, 2> end{0, 0};  // elements laid out, by type
  std::array<int, 2> open{-1, -1};   // the bucket that still takes parameters, by type
  for (const ParameterShape& p : parameters) {
    const auto t = static_cast<size_t>(p.type);
    const auto width = static_cast<int64_t>(size_of(p.type));
    const int64_t alignment = 64 / width;
    const int64_t padded = (p.count + alignment - 1) / alignment * alignment;
    const bool full =
        open[t] >= 0 && (layout.buckets[open[t]].count + padded) * width > bucket_bytes;
    if (open[t] < 0 || full) {
      open[t] = static_cast<int>(layout.buckets.size());
      layout.buckets.push_back({p.type, end[t], 0, 0});
    }
    layout.slices.push_back({p.type, end[t], p.count, open[t]});
    layout.buckets[open[t]].count += padded;
    layout.buckets[open[t]].parameters += 1;
    end[t] += padded;
  }
  layout.count_f32 = end[0];
  layout.count_f64 = end[1];
  return layout;
}

}  // namespace hybridsync
