// The functions behind make_blocks, for the best instruction set of this CPU. All give the same
// bytes: vectors only work lane by lane, a sum has 32 interleaved parts that are added in one order
// whatever the width, and rounding is an addition, not an instruction.
#pragma once

#include "hybridsync/math/codec/block.h"
#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

BlockFunctions block_kernels(CodecKind kind);  // int8, int4, int2, sign

}  // namespace hybridsync
