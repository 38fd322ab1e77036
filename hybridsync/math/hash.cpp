#include "hybridsync/math/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hybridsync {

uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t combine(uint64_t seed, uint64_t next) {
  return XXH3_64bits_withSeed(&next, sizeof next, seed);
}

}  // namespace hybridsync
