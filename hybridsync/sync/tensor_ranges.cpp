#include "hybridsync/sync/tensor_ranges.h"

#include <algorithm>

namespace hybridsync {
namespace {

// Tensors of this type, in flat order.
std::vector<size_t> in_flat_order(const Layout& layout, Real type) {
  std::vector<size_t> tensors;
  for (size_t i = 0; i < layout.slices.size(); ++i)
    if (layout.slices[i].type == type) tensors.push_back(i);
  std::stable_sort(tensors.begin(), tensors.end(), [&](size_t a, size_t b) {
    return layout.slices[a].offset < layout.slices[b].offset;
  });
  return tensors;
}

void append(TensorRange range, std::vector<TensorRange>& ranges) {
  if (range.count == 0) return;
  if (!ranges.empty() && ranges.back().tensor == range.tensor)
    ranges.back().count += range.count;
  else
    ranges.push_back(range);
}

}  // namespace

std::vector<TensorRange> tensor_ranges(const Layout& layout, const FragmentTable& table,
                                       const Fragment& fragment) {
  const auto tensors = in_flat_order(layout, fragment.type);
  std::vector<TensorRange> ranges;
  size_t at = 0;
  for (const Piece& piece : table.pieces(fragment)) {
    // The last tensor that begins at or before the piece.
    auto t = std::upper_bound(tensors.begin(), tensors.end(), piece.offset,
                              [&](int64_t o, size_t i) { return o < layout.slices[i].offset; });
    if (t != tensors.begin()) --t;
    for (int64_t begin = piece.offset; begin < piece.offset + piece.count && t != tensors.end();) {
      const int64_t next =
          t + 1 == tensors.end() ? piece.offset + piece.count : layout.slices[*(t + 1)].offset;
      const int64_t end = std::min(next, piece.offset + piece.count);
      if (end > begin) append({*t, at, static_cast<size_t>(end - begin)}, ranges);
      at += static_cast<size_t>(std::max<int64_t>(0, end - begin));
      begin = std::max(begin, end);
      ++t;
    }
  }
  return ranges;
}

}  // namespace hybridsync
