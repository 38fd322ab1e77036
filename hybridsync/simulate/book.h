// What a simulated training knows of one fragment beside its account, in double: where everything
// that was learned is. The account must come to the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hybridsync/sync/coder.h"

namespace hybridsync {

// Of sums in single precision over so many rounds, relative to the largest number.
constexpr double rounding(int64_t rounds) { return 2e-5 + 2e-7 * static_cast<double>(rounds); }

class Book {
 public:
  Book(const CodecOptions& codec, size_t count);

  // The parameters moved against this.
  void learn(std::span<const float> what);
  int64_t offers() const { return offers_; }
  // All that was learned since was offered, and these numbers stand for it; none: nothing was.
  void offer(std::span<const float> numbers);
  // They are progress again.
  void take_back(std::span<const float> numbers);
  // The parameters moved by news.
  void move();

  // What the parameters hold that no contribution does.
  double in_parameters(size_t i) const { return progress_[i] + held_[i]; }
  // Of this, what they hold only until they move.
  double held(size_t i) const { return held_[i]; }
  // The residual beside them; empty: there is none.
  const std::vector<double>& beside() const { return beside_; }
  // With error_feedback 1 and gamma 1: what was learned and no contribution brought. Else nothing
  // is said.
  const std::vector<double>& owed() const { return owed_; }

 private:
  CodecOptions codec_;
  bool codes_ = false;
  bool local_ = false;
  int64_t offers_ = 0;
  bool left_ = false;  // left_out_ is in the parameters
  std::vector<double> progress_, held_, left_out_, beside_, owed_;
};

}  // namespace hybridsync
