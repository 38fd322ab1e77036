#include "hybridsync/math/codec/codec.h"

#include <stdexcept>

#include "hybridsync/math/codec/blocks.h"
#include "hybridsync/math/codec/dense.h"
#include "hybridsync/math/codec/levels.h"
#include "hybridsync/math/codec/top_k.h"

namespace hybridsync {

// A codec is one line here.
std::unique_ptr<Codec> make_codec(const CodecOptions& options) {
  switch (options.kind) {
    case CodecKind::fp32:
    case CodecKind::bf16:
    case CodecKind::fp16:
      return make_dense(options.kind);
    case CodecKind::int8:
    case CodecKind::int4:
    case CodecKind::int2:
    case CodecKind::sign:
      return make_blocks(options.kind);
    case CodecKind::levels:
      return make_levels(options.levels);
    case CodecKind::top_k:
      return make_top_k(options);
  }
  throw std::invalid_argument("no such codec");
}

}  // namespace hybridsync
