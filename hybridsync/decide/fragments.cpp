#include "hybridsync/decide/fragments.h"

#include <algorithm>

namespace hybridsync {
namespace {

constexpr int64_t kSmallestPiece = 1024;  // elements; below, a message costs more than it carries
constexpr int64_t kAlignment = 16;        // elements

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// How many pieces: enough for the size limit, then up to a multiple of the owners' number.
int64_t pieces(int64_t count, int64_t limit, int64_t shares) {
  const int64_t by_limit = (count + limit - 1) / limit;
  const int64_t by_shares = round_up(by_limit, shares);
  return std::max(by_limit, std::min(by_shares, count / kSmallestPiece));
}

void cut(Real type, int64_t count, int64_t fragment_bytes, FragmentTable& table) {
  if (count == 0) return;
  const int64_t limit = std::max(
      kAlignment, fragment_bytes / static_cast<int64_t>(size_of(type)) / kAlignment * kAlignment);
  const int64_t n = pieces(count, limit, static_cast<int64_t>(table.nodes) * table.lanes);
  const int64_t length = std::min(limit, round_up((count + n - 1) / n, kAlignment));
  for (int64_t offset = 0; offset < count; offset += length) {
    const int id = static_cast<int>(table.fragments.size());
    table.fragments.push_back({id, type, offset, std::min(length, count - offset)});
  }
}

}  // namespace

std::vector<int> FragmentTable::of_lane(int wanted) const {
  std::vector<int> mine;
  for (const Fragment& f : fragments)
    if (lane(f.id) == wanted) mine.push_back(f.id);
  return mine;
}

int64_t FragmentTable::largest_bytes() const {
  int64_t largest = 0;
  for (const Fragment& f : fragments) largest = std::max(largest, f.bytes());
  return largest;
}

FragmentTable plan_fragments(int64_t count_f32, int64_t count_f64, int nodes, int lanes,
                             int64_t fragment_bytes) {
  FragmentTable table{nodes, lanes, {}};
  cut(Real::f32, count_f32, fragment_bytes, table);
  cut(Real::f64, count_f64, fragment_bytes, table);
  if (table.fragments.empty()) table.fragments.push_back({});
  return table;
}

}  // namespace hybridsync
