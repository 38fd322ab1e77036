#include "hybridsync/sync/coder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "hybridsync/decide/density_warmup.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {
namespace {

// Adds the seconds of its life.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += seconds_since(start_); }

 private:
  const Clock::time_point start_ = Clock::now();
  double& seconds_;
};

}  // namespace

Coder::Coder(const CodecOptions& options, std::vector<IndexRange> small,
             std::shared_ptr<CodingCosts> costs)
    : options_(options),
      small_(std::move(small)),
      density_(options.density),
      costs_(std::move(costs)) {
  if (options.kind != CodecKind::fp32) codec_ = make(options);
}

std::unique_ptr<Codec> Coder::make(const CodecOptions& options) const {
  const bool int8 = options.small_tensors == SmallTensorCode::int8;
  return make_mixed(make_codec(options), small_, int8 ? CodecKind::int8 : CodecKind::bf16);
}

void Coder::set_round(int64_t coded_rounds) {
  const double density = density_after(options_, coded_rounds);
  if (!codec_ || density == density_) return;
  CodecOptions now = options_;
  now.density = density_ = density;
  codec_ = make(now);
}

Residual Coder::residual() const {
  if (options_.residual != Residual::automatic) return options_.residual;
  const bool sparse = options_.kind == CodecKind::top_k || options_.kind == CodecKind::sign;
  return sparse && options_.error_feedback > 0 ? Residual::local : Residual::buffer;
}

bool Coder::flushes() const {
  return options_.kind != CodecKind::top_k || residual() == Residual::local;
}

std::optional<Bytes> Coder::encode(std::span<const float> values, float beta,
                                   std::span<float> residual) {
  const Stopwatch watch(costs_->encode_seconds);
  code_.resize(std::max(code_.size(), codec_->bound(values.size())));
  const auto length = codec_->encode(values, beta, residual, code_);
  if (!length) return std::nullopt;
  const bool shorter = *length < values.size_bytes();
  costs_->bytes_before += static_cast<int64_t>(values.size_bytes());
  costs_->bytes_after += static_cast<int64_t>(shorter ? *length : values.size_bytes());
  Bytes code(code_.begin(), code_.begin() + static_cast<ptrdiff_t>(*length));
  if (shorter) return code;
  ++costs_->plain;
  std::vector<float> sent(values.size());
  (void)codec_->decode(code, sent);
  return plain(sent, residual.empty() ? 0 : 1, residual);
}

Bytes Coder::plain(std::span<const float> values, float beta, std::span<float> residual) {
  std::vector<float> u(values.begin(), values.end());
  if (beta != 0)
    for (size_t i = 0; i < residual.size(); ++i) u[i] += beta * residual[i];
  std::fill(residual.begin(), residual.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span<const float>(u));
  return {bytes.begin(), bytes.end()};
}

bool Coder::decode(ByteSpan bytes, Values out) {
  const auto all = bytes_of(out);
  if (bytes.size() == all.size()) {
    if (!all.empty()) std::memcpy(all.data(), bytes.data(), all.size());
    return true;
  }
  const Stopwatch watch(costs_->decode_seconds);
  return codes(type_of(out)) && bytes.size() < all.size() &&
         codec_->decode(bytes, std::get<std::span<float>>(out));
}

ConstValues Coder::numbers(ByteSpan bytes, Real type, size_t count,
                           std::vector<std::byte>& memory) {
  if (bytes.size() == count * size_of(type))
    return as_const(values_at(const_cast<std::byte*>(bytes.data()), type, count));
  memory.resize(count * size_of(type));
  const Values out = values_at(memory.data(), type, count);
  if (!decode(bytes, out)) return as_const(values_at(nullptr, type, 0));
  return as_const(out);
}

Coders::Coders(const CodecOptions& options, const SmallTensors& small) {
  const auto costs = std::make_shared<CodingCosts>();
  shared_ = std::make_shared<Coder>(options, std::vector<IndexRange>{}, costs);
  for (const auto& [f, ranges] : small) own_[f] = std::make_shared<Coder>(options, ranges, costs);
}

const std::shared_ptr<Coder>& Coders::of(int fragment) const {
  const auto found = own_.find(fragment);
  return found == own_.end() ? shared_ : found->second;
}

}  // namespace hybridsync
