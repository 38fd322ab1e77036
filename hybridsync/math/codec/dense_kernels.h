// The functions behind make_dense, for the best instruction set of this CPU. All give the same
// bits.
#pragma once

#include "hybridsync/math/codec/block.h"
#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

BlockFunctions dense_kernels(CodecKind kind);  // fp32, bf16, fp16

}  // namespace hybridsync
