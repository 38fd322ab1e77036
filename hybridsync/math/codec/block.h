// One block of numbers and the two functions that code it. Every codec of this folder that looks at
// no more than a block at once is made of such a pair; BlockCodec walks the blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridsync {

inline constexpr size_t kBlock = 1024;

// kBlock numbers; those from `count` on are padding, and zero.
struct Block {
  const float* values;
  const float* residual;  // null: u = values
  float beta;
  size_t count;
};

struct BlockFunctions {
  // Writes the block's code, and what it leaves out to `rest`, which may be block.residual. False:
  // a number of u is not finite.
  bool (*encode)(const Block& block, float* rest, uint8_t* code);
  // Writes kBlock numbers. False: not a code.
  bool (*decode)(const uint8_t* code, float* out);
};

}  // namespace hybridsync
