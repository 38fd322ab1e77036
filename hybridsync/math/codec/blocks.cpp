#include "hybridsync/math/codec/blocks.h"

#include <stdexcept>

#include "hybridsync/math/codec/block_codec.h"
#include "hybridsync/math/codec/block_kernels.h"

namespace hybridsync {

std::unique_ptr<Codec> make_blocks(CodecKind kind) {
  switch (kind) {
    case CodecKind::int8:
      return std::make_unique<BlockCodec>(block_kernels(kind), 8, 2);
    case CodecKind::int4:
      return std::make_unique<BlockCodec>(block_kernels(kind), 4, 2);
    case CodecKind::int2:
      return std::make_unique<BlockCodec>(block_kernels(kind), 2, 4);
    case CodecKind::sign:
      return std::make_unique<BlockCodec>(block_kernels(kind), 1, 2);
    default:
      throw std::invalid_argument("not a codec of blocks");
  }
}

}  // namespace hybridsync
