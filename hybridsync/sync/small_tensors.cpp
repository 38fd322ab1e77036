#include "hybridsync/sync/small_tensors.h"

#include <algorithm>
#include <utility>

namespace hybridsync {
namespace {

// Puts [begin, end) behind the others.
void append(int64_t begin, int64_t end, std::vector<IndexRange>& ranges) {
  if (begin >= end) return;
  const auto offset = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
  if (!ranges.empty() && ranges.back().offset + ranges.back().count == offset)
    ranges.back().count += count;
  else
    ranges.push_back({offset, count});
}

}  // namespace

std::vector<IndexRange> small_ranges(const Layout& layout, const Fragment& fragment) {
  std::vector<IndexRange> ranges;
  int64_t begin = 0;
  bool small = false;
  const auto close = [&](int64_t end) {
    const int64_t last = std::min(end - fragment.offset, fragment.count);
    if (small) append(std::max<int64_t>(begin - fragment.offset, 0), last, ranges);
  };
  for (const Slice& slice : layout.slices) {
    if (slice.type != fragment.type) continue;
    close(slice.offset);
    begin = slice.offset;
    small = slice.count < kLargeTensor;
  }
  close(fragment.type == Real::f32 ? layout.count_f32 : layout.count_f64);
  return ranges;
}

SmallTensors small_tensors(const Layout& layout, const FragmentTable& table, CodecKind codec) {
  SmallTensors small;
  if (codec <= CodecKind::fp16) return small;
  for (const Fragment& f : table.fragments)
    if (auto ranges = small_ranges(layout, f); !ranges.empty()) small[f.id] = std::move(ranges);
  return small;
}

}  // namespace hybridsync
