// A codec that codes every kBlock numbers for themselves. The last block may be shorter.
//
// A block's code is a head, then groups of 16 bytes of 128 / bits numbers each. Below 8 bits, byte
// j of a group holds the numbers j, j + 16, j + 32 ... of it, the first one in its lowest bits. Of
// the last group the bytes that only padding touches are not sent.
#pragma once

#include "hybridsync/math/codec/block.h"
#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

class BlockCodec : public Codec {
 public:
  // `bits` of a number: 1, 2, 4, 8, 16 or 32. `head`: bytes at the front of each block, at most 4.
  BlockCodec(BlockFunctions functions, size_t bits, size_t head)
      : functions_(functions), bits_(bits), head_(head) {}

  // Not only the most, but exactly the bytes that a code of so many numbers has.
  size_t bound(size_t count) const override;
  [[nodiscard]] std::optional<size_t> encode(std::span<const float> values, float beta,
                                             std::span<float> residual,
                                             std::span<std::byte> out) override;
  [[nodiscard]] bool decode(std::span<const std::byte> code, std::span<float> out) override;

 private:
  size_t block_bytes(size_t count) const;
  bool encode_short(const Block& block, float* rest, uint8_t* code) const;
  bool decode_short(const uint8_t* code, std::span<float> out) const;

  BlockFunctions functions_;
  size_t bits_;
  size_t head_;
};

}  // namespace hybridsync
