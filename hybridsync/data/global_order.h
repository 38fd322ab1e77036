// The order in which a run sees its samples: one stream of whole micro-batches for all ranks.
//
// The stream is cut into steps, micro-steps and ranks, so the same global batch holds the same
// micro-batches however many ranks and nodes share the work: with micro-batch size and
// accumulate * ranks equal, step t sees the same samples in every layout.
//
// Epoch e is a permutation of its own, dealt in micro-batches; the count % micro_batch samples left
// at its end are dropped (others in every epoch), and the stream runs on into epoch e + 1, also
// inside a step. Everything is integer arithmetic of our own: the same on every machine and
// library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hybridsync {

// SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixing function.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Uniform in [0, n), without bias; n > 0.
  uint64_t below(uint64_t n);

 private:
  uint64_t state_;
};

// Which micro-batch of the stream a rank takes: (step * accumulate + micro_step) * ranks + rank.
constexpr int64_t micro_batch_index(int64_t step, int64_t micro_step, int64_t rank,
                                    int64_t accumulate, int64_t ranks) {
  return (step * accumulate + micro_step) * ranks + rank;
}

class GlobalOrder {
 public:
  // Throws ConfigError when `count` samples do not fill one micro-batch.
  GlobalOrder(int64_t count, int64_t micro_batch, uint64_t seed);

  int64_t micro_batches_per_epoch() const { return count_ / micro_batch_; }

  // The samples of micro-batch `index` of the stream, a function of the constructor's arguments and
  // the index alone. Valid until the next call; one epoch's permutation is kept.
  std::span<const int64_t> samples(int64_t index);

 private:
  void permute(int64_t epoch);

  int64_t count_;
  int64_t micro_batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;  // of epoch_
};

}  // namespace hybridsync
