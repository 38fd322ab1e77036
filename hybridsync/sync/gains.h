// The self-tuned gains of a lane's fragments (math/gain.h): what an owner finds for each tensor at
// each round, and how they travel, as 4 bits per tensor behind the code of the mean. Small tensors
// share one. Used by the comm thread.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "hybridsync/math/gain.h"
#include "hybridsync/math/values.h"
#include "hybridsync/sync/tensor_ranges.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

class Gains {
 public:
  // Of the fragments in `ranges`, in which an owner sees every tensor in one of `nodes` rounds or
  // oftener. None: everything has a gain of 1, and nothing travels.
  explicit Gains(const TensorRanges& ranges = {}, int nodes = 1);

  // Of this fragment's, behind a code.
  size_t bytes(int fragment) const;

  // --- at the owner: one round

  // What was contributed, decoded, its mean, and what it was before it was coded: sum |d|^2.
  void contributed(int fragment, std::span<const ConstValues> values, std::span<const float> mean,
                   double squared_norm);
  // What the mean was with what was left out before, and how much of it its code brings: |u|^2.
  void encoded(double squared_norm, double squared_norm_of_code);
  Bytes find(int fragment, size_t members) const;

  // --- everywhere: f(offset, count, gain) for neighbours with one gain
  void each(int fragment, ByteSpan gains, auto&& f) const {
    const Places& places = places_.at(fragment);
    for (const TensorRange& range : places.ranges) {
      const auto byte = static_cast<unsigned>(gains[range.tensor / 2]);
      f(range.offset, range.count, gain_of((byte >> (range.tensor % 2 * kGainBits)) & 15));
    }
  }

 private:
  // `tensor` of a range: index into `tensors`, whose entries are those of agreement_.
  struct Places {
    std::vector<TensorRange> ranges;
    std::vector<size_t> tensors;
  };

  std::map<int, Places> places_;  // by fragment
  double memory_ = 1;
  Agreement agreement_;
  Smoothed contributed_, decoded_;  // energy on the way up
  Smoothed mean_, published_;       // and down
};

}  // namespace hybridsync
