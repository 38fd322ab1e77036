// Small tensors beside large ones: the numbers in some ranges are coded by one codec, all others,
// closed up, by another one. What a code leaves out is that of the two parts, each at its place.
//
// A code of both parts is
//   length, 8 bytes, little endian     of the first part
//   the code of the numbers in ranges
//   the code of all others             as long as what is left
// Where one of the parts has no numbers, the code of the other one is all of it.
#pragma once

#include <memory>
#include <vector>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

struct IndexRange {
  size_t offset = 0;
  size_t count = 0;  // not 0
  bool operator==(const IndexRange&) const = default;
};

// `small` is ascending and disjoint; what lies beyond a vector's end is nothing. No ranges: `main`
// itself. Its own scratch memory lives for a call only, as there may be one such codec per fragment
// of a vector.
std::unique_ptr<Codec> make_mixed(std::unique_ptr<Codec> main, std::vector<IndexRange> small,
                                  CodecKind code_of_small = CodecKind::bf16);

}  // namespace hybridsync
