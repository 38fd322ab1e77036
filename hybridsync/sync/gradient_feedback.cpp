#include "hybridsync/sync/gradient_feedback.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {

GradientFeedback::GradientFeedback(std::shared_ptr<Coder> coder, size_t count,
                                   const SenderMomentum& momentum)
    : coder_(std::move(coder)),
      m_(static_cast<float>(momentum.factor)),
      nesterov_(momentum.nesterov),
      u_(m_ != 0 ? count : 0),
      v_(count) {}

// u <- m u + g; gives d.
std::span<const float> GradientFeedback::advance(std::span<const float> g) {
  assert(g.size() == v_.size());
  overflowed_ = false;
  if (u_.empty()) return g;
  for (size_t i = 0; i < u_.size(); ++i) u_[i] = m_ * u_[i] + g[i];
  if (!nesterov_) return u_;
  scratch_.resize(u_.size());
  for (size_t i = 0; i < u_.size(); ++i) scratch_[i] = g[i] + m_ * u_[i];
  return scratch_;
}

Bytes GradientFeedback::encode(std::span<const float> g) {
  const double beta = coder_->options().error_feedback;
  forgotten_.add(v_, 1 - beta);
  auto code = coder_->encode(advance(g), static_cast<float>(beta), v_);
  if (!code) {
    clear();
    code = coder_->encode(g, 0, v_);
    overflowed_ = true;
  }
  assert(code && "a finite gradient has a code");
  mask(*code);
  return std::move(*code);
}

Bytes GradientFeedback::plain(std::span<const float> g) {
  auto d = advance(g);
  if (!std::isfinite(squared_norm(d))) {
    clear();
    d = g;
    overflowed_ = true;
  }
  const auto bytes = std::as_bytes(d);
  return {bytes.begin(), bytes.end()};
}

void GradientFeedback::mask(ByteSpan code) {
  if (u_.empty() || !coder_->is_sparse()) return;
  scratch_.resize(v_.size());
  const bool decodes = coder_->decode(code, std::span<float>(scratch_));
  assert(decodes);
  (void)decodes;
  for (const IndexRange& r : coder_->small())
    std::fill_n(scratch_.begin() + static_cast<ptrdiff_t>(r.offset), r.count, 0.0f);
  for (size_t i = 0; i < u_.size(); ++i)
    if (scratch_[i] != 0) u_[i] = 0;
}

void GradientFeedback::clear() {
  std::fill(u_.begin(), u_.end(), 0.0f);
  std::fill(v_.begin(), v_.end(), 0.0f);
}

void GradientFeedback::end() {
  if (!std::exchange(ended_, true)) forgotten_.add(v_);
}

}  // namespace hybridsync
