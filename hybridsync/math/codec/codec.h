// Fewer bytes for a vector of numbers, with nothing lost: what a code leaves out is the residual,
// and is added to what is encoded next (error feedback, Karimireddy et al. 2019).
//
//   u = values + beta residual;   code = C(u);   residual' = u - decode(code)
//
// A codec has no state between calls, only settings and scratch memory: one per thread. The same
// numbers give the same bytes on every machine: magnitudes are summed in a fixed order, ties go to
// the lower index, nothing is fused.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "hybridsync/config/codec_options.h"

namespace hybridsync {

class Codec {
 public:
  virtual ~Codec() = default;

  // The most bytes that a code of `count` numbers has.
  virtual size_t bound(size_t count) const = 0;

  // Writes the code of u to `out` (at least bound(values.size()) bytes), which overlaps nothing
  // else, and gives its length. `residual` is as long as `values` and becomes what the code leaves
  // out, or is empty: then u = values and what is left out is dropped. With beta 0 it is not read.
  //
  // nullopt: a number of u is not finite. Then there is no code, and `residual` is void: whoever
  // must not lose it refuses such values before (squared_norm).
  [[nodiscard]] virtual std::optional<size_t> encode(std::span<const float> values, float beta,
                                                     std::span<float> residual,
                                                     std::span<std::byte> out) = 0;

  // False: not a code of so many numbers; `out` is void then. Reads nothing beyond `code`, whatever
  // is in it, and gives finite numbers only.
  [[nodiscard]] virtual bool decode(std::span<const std::byte> code, std::span<float> out) = 0;
};

// Throws std::invalid_argument for settings that no codec has, which the configuration's rules
// refuse by key and line before.
std::unique_ptr<Codec> make_codec(const CodecOptions& options);

}  // namespace hybridsync
