// The inner loops of packed_values.h, for the widest vectors that the processor has. Every width
// gives the same bits. They work on whole vectors: `count` is a multiple of 16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridsync {

inline constexpr size_t kPackStep = 16;

struct MagnitudeRange {
  float least, largest;
};
MagnitudeRange magnitude_range(const float* u, size_t count);

// The magnitudes low + j step for j = 0 to `most`.
struct Levels {
  float low = 0, step = 0;
  float inverse = 0;  // of step, or 0
  int bits = 8;       // the sign is the highest of so many
  float most = 0;
};
// The nearest level to each number, with its sign, and how far the number is from it.
void choose_levels(const float* u, size_t count, const Levels& levels, uint8_t* symbols,
                   float* left_out);

}  // namespace hybridsync
