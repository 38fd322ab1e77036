// The one entropy coder, for levels and for positions: interleaved rANS (Duda 2013) over bytes with
// a static model that is written in front. All readers are safe on damaged input: they read nothing
// beyond it and say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hybridsync {

// Symbols below `alphabet` (2 to 256). The most bytes that so many of them take.
size_t symbols_bound(size_t count, int alphabet);
// Writes them to `out` (at least the bound) and gives the length.
size_t encode_symbols(std::span<const uint8_t> symbols, int alphabet, std::span<std::byte> out);
// Reads exactly out.size() symbols; how many bytes of `code` that took, nullopt: it is damaged.
[[nodiscard]] std::optional<size_t> decode_symbols(std::span<const std::byte> code, int alphabet,
                                                   std::span<uint8_t> out);

// Strictly ascending positions below `limit`, by the gaps between them: near the entropy
// H2(density) / density per position for positions that are drawn independently.
size_t positions_bound(size_t count, uint64_t limit);
size_t encode_positions(std::span<const uint32_t> positions, uint64_t limit,
                        std::span<std::byte> out);
// Exactly out.size() positions, strictly ascending and below `limit`; otherwise nullopt.
[[nodiscard]] std::optional<size_t> decode_positions(std::span<const std::byte> code,
                                                     uint64_t limit, std::span<uint32_t> out);

}  // namespace hybridsync
