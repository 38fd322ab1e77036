// The self-tuned gains of a lane's owners (math/gain.h): what is found at each round, and how it
// travels, as one byte behind the code of the mean. Used by the comm thread.
#pragma once

#include <cstddef>
#include <span>

#include "hybridsync/math/gain.h"
#include "hybridsync/math/values.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

class Gains {
 public:
  // Off: everything has a gain of 1, and nothing travels.
  explicit Gains(bool on = false) : on_(on) {}

  // Behind a code.
  size_t bytes() const { return on_ ? 1 : 0; }

  // --- at the owner: one round

  // What was contributed, decoded, its mean, and what it was before it was coded: sum |d|^2.
  void contributed(std::span<const ConstValues> values, std::span<const float> mean,
                   double squared_norm);
  // What the mean was with what was left out before, and how much of it its code brings: |u|^2.
  void encoded(double squared_norm, double squared_norm_of_code);
  std::byte find(size_t members) const;

 private:
  bool on_;
  Agreement agreement_;
  Smoothed contributed_, decoded_;  // energy on the way up
  Smoothed mean_, published_;       // and down
};

}  // namespace hybridsync
