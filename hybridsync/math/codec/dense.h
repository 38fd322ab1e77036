// Every number for itself, in 32 or 16 bits: fp32 leaves nothing out, bf16 and fp16 round to
// nearest even. A number beyond the largest finite one of the format becomes that one, and the rest
// of it goes to the residual.
#pragma once

#include <memory>

#include "hybridsync/math/codec/codec.h"

namespace hybridsync {

// fp32, bf16 or fp16. Throws std::invalid_argument for another kind.
std::unique_ptr<Codec> make_dense(CodecKind kind);

}  // namespace hybridsync
