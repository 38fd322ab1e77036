#include "hybridsync/simulate/book.h"

#include <algorithm>

namespace hybridsync {

Book::Book(const CodecOptions& codec, size_t count)
    : codec_(codec), progress_(count), held_(count), left_out_(count) {
  const Coder coder(codec);
  codes_ = coder.codes(Real::f32);
  local_ = codes_ && coder.residual() == Residual::local;
  const double feedback = local_ ? 1 : codec.error_feedback;
  if (codes_ && !local_ && feedback > 0) beside_.resize(count);
  if (feedback == 1 && (!local_ || codec.gamma == 1)) owed_.resize(count);
}

void Book::learn(std::span<const float> what) {
  for (size_t i = 0; i < what.size(); ++i) progress_[i] += what[i];
  for (size_t i = 0; i < owed_.size(); ++i) owed_[i] += what[i];
}

void Book::offer(std::span<const float> numbers) {
  if (numbers.empty()) return;
  ++offers_;
  for (size_t i = 0; i < owed_.size(); ++i) owed_[i] -= numbers[i];
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double rest = progress_[i] - numbers[i];
    progress_[i] = local_ ? rest : 0;
    if (codes_ && !local_) held_[i] += rest;
    if (!beside_.empty()) beside_[i] = codec_.error_feedback * beside_[i] + rest;
  }
  left_ = local_;
  if (left_) left_out_ = progress_;
}

void Book::take_back(std::span<const float> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) progress_[i] += numbers[i];
  for (size_t i = 0; i < owed_.size() && i < numbers.size(); ++i) owed_[i] += numbers[i];
}

void Book::move() {
  std::fill(held_.begin(), held_.end(), 0.0);
  if (!left_) return;
  left_ = false;
  for (size_t i = 0; i < progress_.size(); ++i) progress_[i] -= (1 - codec_.gamma) * left_out_[i];
}

}  // namespace hybridsync
