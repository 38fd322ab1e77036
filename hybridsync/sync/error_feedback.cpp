#include "hybridsync/sync/error_feedback.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {

ErrorFeedback::ErrorFeedback(std::shared_ptr<Coder> coder, const Fragment& fragment)
    : coder_(std::move(coder)), type_(fragment.type), count_(static_cast<size_t>(fragment.count)) {}

std::optional<Bytes> ErrorFeedback::encode(Values learned, bool last) {
  const auto p = std::get<std::span<float>>(learned);
  left_out_.resize(count_);
  if (!local() && coder_->options().error_feedback > 0) beside_.resize(count_);
  auto bytes = local() ? encode_local(p, last) : encode_beside(p, last);
  holds_left_out_ = bytes.has_value();
  if (!bytes) std::fill(beside_.begin(), beside_.end(), 0.0f);
  return bytes;
}

std::optional<Bytes> ErrorFeedback::encode_local(std::span<const float> learned, bool last) {
  if (last) return Coder::plain(learned, 0, left_out_);
  return coder_->encode(learned, 0, left_out_);
}

std::optional<Bytes> ErrorFeedback::encode_beside(std::span<float> learned, bool last) {
  if (!holds_left_out_) std::fill(left_out_.begin(), left_out_.end(), 0.0f);
  for (size_t i = 0; i < count_; ++i) learned[i] -= left_out_[i];
  const auto beta = static_cast<float>(coder_->options().error_feedback);
  forgotten_.add(beside_, 1 - beta);
  auto bytes =
      last ? std::optional(encode_last(learned, beta)) : coder_->encode(learned, beta, beside_);
  if (!bytes) return bytes;
  const auto sent = std::get<std::span<const float>>(numbers(*bytes));
  for (size_t i = 0; i < count_; ++i) left_out_[i] += learned[i] - sent[i];
  return bytes;
}

Bytes ErrorFeedback::encode_last(std::span<const float> learned, float beta) {
  if (coder_->flushes()) return Coder::plain(learned, beta, beside_);
  for (float& e : beside_) e *= beta;
  return Coder::plain(learned, 0, {});
}

void ErrorFeedback::end() {
  if (codes() && !coder_->flushes() && !std::exchange(stays_, true)) forgotten_.add(beside_);
}

bool ErrorFeedback::owes(ConstValues learned) const {
  if (!codes() || !coder_->flushes()) return false;
  const auto is_zero = [](float x) { return x == 0; };
  if (!local()) return !std::all_of(beside_.begin(), beside_.end(), is_zero);
  const auto p = std::get<std::span<const float>>(learned);
  return !std::all_of(p.begin(), p.end(), is_zero);
}

void ErrorFeedback::rest_after_contribution(Values out) const {
  const auto bytes = bytes_of(out);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  if (holds_left_out_) copy(std::span<const float>(left_out_), out);
}

void ErrorFeedback::move(Values rest) {
  if (!std::exchange(holds_left_out_, false)) return;
  const bool dropped = !local() && beside_.empty();
  if (local() || dropped) forgotten_.add(left_out_, dropped ? 1 : 1 - coder_->options().gamma);
  const auto r = std::get<std::span<float>>(rest);
  const auto gone = static_cast<float>(local() ? 1 - coder_->options().gamma : 1);
  for (size_t i = 0; i < count_; ++i) r[i] -= gone * left_out_[i];
}

ConstValues ErrorFeedback::numbers(ByteSpan bytes) {
  const ConstValues numbers = coder_->numbers(bytes, type_, count_, scratch_);
  assert(bytes_of(numbers).empty() == (count_ == 0));
  return numbers;
}

}  // namespace hybridsync
