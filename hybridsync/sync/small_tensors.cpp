#include "hybridsync/sync/small_tensors.h"

#include <algorithm>
#include <utility>

#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/sync/tensor_ranges.h"

namespace hybridsync {

std::vector<IndexRange> small_ranges(const Layout& layout, const FragmentTable& table,
                                     const Fragment& fragment) {
  std::vector<IndexRange> ranges;
  for (const TensorRange& range : tensor_ranges(layout, table, fragment)) {
    if (layout.slices[range.tensor].count >= kLargeTensor) continue;
    if (!ranges.empty() && ranges.back().offset + ranges.back().count == range.offset)
      ranges.back().count += range.count;
    else
      ranges.push_back({range.offset, range.count});
  }
  return ranges;
}

SmallTensors small_tensors(const Layout& layout, const FragmentTable& table,
                           const CodecOptions& codec) {
  SmallTensors small;
  if (codec.kind <= CodecKind::fp16 || codec.small_tensors == SmallTensorCode::coded) return small;
  for (const Fragment& f : table.fragments)
    if (auto ranges = small_ranges(layout, table, f); !ranges.empty())
      small[f.id] = std::move(ranges);
  return small;
}

}  // namespace hybridsync
