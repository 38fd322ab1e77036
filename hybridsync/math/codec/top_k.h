// The few largest numbers, and where they are; the others wait in the residual (Aji and Heafield
// 2017). Zeros are never sent. Where all numbers in 16 bits take fewer bytes, they are sent instead
// (dense).
//
//   tag          1 byte: the bits per value sent; 0: dense
//   count        4 bytes, least significant first; not in a dense code
//   values       packed_values.h; in a dense code of all, with 16 bits
//   positions    entropy.h; not without any, nor in a dense code
//
// Scratch memory: at density d about 12 d bytes per number by chunks, twice that by threshold.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// Of at most 2^32 numbers. Uses density in (0, 1], value_bits and selection; throws as make_codec.
std::unique_ptr<Codec> make_top_k(const CodecOptions& options);

// Whether a code that make_top_k's codec wrote is dense.
bool is_dense_fallback(std::span<const std::byte> code);

}  // namespace hybridsync
