// How the flat parameter vector is cut for the way between nodes, and who owns which part.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/config/real.h"

namespace hybridsync {

// A range of the flat vector of one number type, in the order of parts. Every element belongs to
// exactly one fragment.
struct Fragment {
  int id = 0;
  Real type = Real::f32;
  int64_t offset = 0;  // elements, of this type
  int64_t count = 0;
  int part = 0;  // fragments of one part have their rounds at the same steps

  int64_t bytes() const { return count * static_cast<int64_t>(size_of(type)); }
  bool operator==(const Fragment&) const = default;
};

// A run of neighbours that stays together when the vector is dealt into parts.
struct Piece {
  int64_t offset = 0;  // elements, in the flat vector
  int64_t count = 0;
  bool operator==(const Piece&) const = default;
};

// The fragments of one model between `nodes` nodes of `lanes` ranks each.
struct FragmentTable {
  int nodes = 1;
  int lanes = 1;
  std::vector<Fragment>
      fragments;  // by id; never empty: fragment 0 carries what belongs to no number
  // The order of parts of the single-precision vector; empty: the flat order.
  std::vector<Piece> order = {};

  // The local rank that is a node's endpoint for the fragment, so that all of a node's network
  // cards carry traffic, and the node that owns it.
  int lane(int fragment) const { return fragment % lanes; }
  int owner(int fragment) const { return fragment / lanes % nodes; }

  std::vector<int> of_lane(int lane) const;
  int parts() const;
  // Where a fragment's numbers are in the flat vector, in its own order. Of a part: short pieces
  // all over the vector.
  std::vector<Piece> pieces(const Fragment& fragment) const;
  int64_t largest_bytes() const;
};

// Cuts `count_f32` and `count_f64` elements into pieces of at most `fragment_bytes`, nearly equal
// within a type, and as many as make owners and lanes share the work evenly where the vector is
// long enough for it.
FragmentTable plan_fragments(int64_t count_f32, int64_t count_f64, int nodes, int lanes,
                             int64_t fragment_bytes);

// The same, but single-precision elements are first dealt into `parts` parts of nearly equal
// length: of every `parts` neighbouring pieces each part gets one, at random, the same everywhere
// for the same seed; so every part has its share of every larger tensor. Double-precision elements
// are all in part 0. One part: plan_fragments.
FragmentTable plan_parts(int64_t count_f32, int64_t count_f64, int nodes, int lanes,
                         int64_t fragment_bytes, int parts, uint64_t seed);

}  // namespace hybridsync
