#include "hybridsync/math/codec/dense.h"

#include <stdexcept>

#include "hybridsync/math/codec/block_codec.h"
#include "hybridsync/math/codec/dense_kernels.h"

namespace hybridsync {

std::unique_ptr<Codec> make_dense(CodecKind kind) {
  switch (kind) {
    case CodecKind::fp32:
      return std::make_unique<BlockCodec>(dense_kernels(kind), 32, 0);
    case CodecKind::bf16:
    case CodecKind::fp16:
      return std::make_unique<BlockCodec>(dense_kernels(kind), 16, 0);
    default:
      throw std::invalid_argument("not a dense codec");
  }
}

}  // namespace hybridsync
