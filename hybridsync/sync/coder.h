// What a fragment's numbers become on the way to other nodes: a code, where one is configured and
// shorter, or the plain numbers. A code is always shorter than the numbers that it stands for: by
// that a receiver tells the two apart. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hybridsync/math/codec/codec.h"
#include "hybridsync/math/values.h"
#include "hybridsync/sync/coding_costs.h"
#include "hybridsync/sync/small_tensors.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

class Coder {
 public:
  // `small`: the numbers of small tensors where there is a codec: bf16, or int8 if the options say
  // so.
  // `costs`: where what it does is added up.
  explicit Coder(const CodecOptions& options = {}, std::vector<IndexRange> small = {},
                 std::shared_ptr<CodingCosts> costs = std::make_shared<CodingCosts>());

  const CodecOptions& options() const { return options_; }
  // Whether numbers of this type are coded at all.
  bool codes(Real type) const { return codec_ && type == Real::f32; }
  // Where a node keeps what a code leaves out.
  Residual residual() const;
  // Whether a node's last contribution brings that. Not that of top_k beside the parameters: there
  // it has grown by what was learned again in every round since, and would throw them far off.
  bool flushes() const;

  // What is encoded from now on travels after so many coded rounds (density_warmup).
  void set_round(int64_t coded_rounds);
  // Whether a code of now holds some of the numbers only, but for those of small tensors.
  bool is_sparse() const { return options_.kind == CodecKind::top_k && density_ < 1; }
  const std::vector<IndexRange>& small() const { return small_; }

  // The bytes of u = values + beta residual; `residual` becomes what they leave out. Nothing when a
  // number of u is not finite: then `residual` is void. `residual` may be empty.
  std::optional<Bytes> encode(std::span<const float> values, float beta, std::span<float> residual);
  // The bytes of u itself; nothing is left out.
  static Bytes plain(std::span<const float> values, float beta, std::span<float> residual);

  // False: they are not so many numbers. Numbers in double are plain.
  bool decode(ByteSpan bytes, Values out);
  // So many numbers: plain ones where they lie, others decoded into `memory`. Empty: they are not
  // so many.
  ConstValues numbers(ByteSpan bytes, Real type, size_t count, std::vector<std::byte>& memory);

  const CodingCosts& costs() const { return *costs_; }

 private:
  std::unique_ptr<Codec> make(const CodecOptions& options) const;

  CodecOptions options_;
  std::vector<IndexRange> small_;
  double density_;                // of top_k, in this round
  std::unique_ptr<Codec> codec_;  // none: everything is plain
  Bytes code_;
  std::shared_ptr<CodingCosts> costs_;
};

// The coders of many fragments. Those without small tensors share one, and its scratch memory.
class Coders {
 public:
  explicit Coders(const CodecOptions& options = {}, const SmallTensors& small = {});

  const std::shared_ptr<Coder>& of(int fragment) const;
  const CodecOptions& options() const { return shared_->options(); }
  bool codes(Real type) const { return shared_->codes(type); }
  const CodingCosts& costs() const { return shared_->costs(); }  // of all

 private:
  std::shared_ptr<Coder> shared_;
  std::map<int, std::shared_ptr<Coder>> own_;  // by fragment
};

}  // namespace hybridsync
