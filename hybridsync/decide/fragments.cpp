#include "hybridsync/decide/fragments.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

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

// Pieces of a part: short enough that each has its share of every tensor, long enough to be copied
// fast.
constexpr int64_t kPiecesPerPart = 4096;
constexpr int64_t kShortestPiece = 256;  // elements
constexpr int64_t kLongestPiece = 1 << 16;

// Cuts `count` elements from `begin` on, for so many owners and lanes.
void cut(Real type, int64_t begin, int64_t count, int shares, int part, int64_t fragment_bytes,
         FragmentTable& table) {
  if (count == 0) return;
  const int64_t limit = std::max(
      kAlignment, fragment_bytes / static_cast<int64_t>(size_of(type)) / kAlignment * kAlignment);
  const int64_t n = pieces(count, limit, shares);
  const int64_t length = std::min(limit, round_up((count + n - 1) / n, kAlignment));
  for (int64_t at = 0; at < count; at += length) {
    const int id = static_cast<int>(table.fragments.size());
    table.fragments.push_back({id, type, begin + at, std::min(length, count - at), part});
  }
}

// By part, in flat order.
std::vector<std::vector<Piece>> deal(int64_t count, int parts, uint64_t seed) {
  const int64_t length = std::clamp(round_up(count / (parts * kPiecesPerPart), kShortestPiece),
                                    kShortestPiece, kLongestPiece);
  std::vector<std::vector<Piece>> dealt(static_cast<size_t>(parts));
  std::vector<size_t> turn(static_cast<size_t>(parts));
  std::iota(turn.begin(), turn.end(), size_t{0});
  std::mt19937_64 random(seed);
  size_t next = turn.size();
  for (int64_t offset = 0; offset < count; offset += length) {
    if (next == turn.size()) {
      // Not std::shuffle, whose choices differ between libraries.
      for (size_t i = turn.size() - 1; i > 0; --i) std::swap(turn[i], turn[random() % (i + 1)]);
      next = 0;
    }
    dealt[turn[next++]].push_back({offset, std::min(length, count - offset)});
  }
  return dealt;
}

}  // namespace

int FragmentTable::parts() const {
  int last = 0;
  for (const Fragment& f : fragments) last = std::max(last, f.part);
  return last + 1;
}

std::vector<Piece> FragmentTable::pieces(const Fragment& f) const {
  if (order.empty() || f.type != Real::f32) return {{f.offset, f.count}};
  std::vector<Piece> found;
  int64_t begin = 0;  // of a piece, in the order of parts
  for (const Piece& piece : order) {
    const int64_t first = std::max(f.offset, begin);
    const int64_t end = std::min(f.offset + f.count, begin + piece.count);
    if (first < end) found.push_back({piece.offset + first - begin, end - first});
    begin += piece.count;
  }
  return found;
}

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
  cut(Real::f32, 0, count_f32, nodes * lanes, 0, fragment_bytes, table);
  cut(Real::f64, 0, count_f64, nodes * lanes, 0, fragment_bytes, table);
  if (table.fragments.empty()) table.fragments.push_back({});
  return table;
}

FragmentTable plan_parts(int64_t count_f32, int64_t count_f64, int nodes, int lanes,
                         int64_t fragment_bytes, int parts, uint64_t seed) {
  if (parts <= 1) return plan_fragments(count_f32, count_f64, nodes, lanes, fragment_bytes);
  FragmentTable table{nodes, lanes, {}};
  int64_t begin = 0;
  int part = 0;
  for (const auto& pieces : deal(count_f32, parts, seed)) {
    int64_t count = 0;
    for (const Piece& piece : pieces) count += piece.count;
    // Owners take turns from part to part: within one, only lanes share the work.
    cut(Real::f32, begin, count, lanes, part++, fragment_bytes, table);
    begin += count;
    table.order.insert(table.order.end(), pieces.begin(), pieces.end());
  }
  cut(Real::f64, 0, count_f64, nodes * lanes, 0, fragment_bytes, table);
  if (table.fragments.empty()) table.fragments.push_back({});
  return table;
}

}  // namespace hybridsync
