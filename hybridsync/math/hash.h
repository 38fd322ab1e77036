// XXH3 of numbers and bytes: how nodes see, in every round, that they hold the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "hybridsync/math/values.h"

namespace hybridsync {

uint64_t hash_of(std::span<const std::byte> bytes);
inline uint64_t hash_of(const ConstValues& values) { return hash_of(bytes_of(values)); }

// Order matters: the hash of a sequence of hashes.
uint64_t combine(uint64_t seed, uint64_t next);

}  // namespace hybridsync
