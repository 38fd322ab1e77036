#include "hybridsync/data/global_order.h"

#include <cassert>
#include <numeric>
#include <string>
#include <utility>

#include "hybridsync/config/error.h"

namespace hybridsync {

uint64_t SplitMix64::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t SplitMix64::below(uint64_t n) {
  const uint64_t surplus = -n % n;  // 2^64 mod n: the values that would favour small remainders
  uint64_t x = next();
  while (x < surplus) x = next();
  return x % n;
}

GlobalOrder::GlobalOrder(int64_t count, int64_t micro_batch, uint64_t seed)
    : count_(count), micro_batch_(micro_batch), seed_(seed) {
  if (micro_batch >= 1 && micro_batch <= count) return;
  throw ConfigError("train.micro_batch is " + std::to_string(micro_batch) +
                    ", but the data holds " + std::to_string(count) +
                    " samples: choose between 1 and that");
}

std::span<const int64_t> GlobalOrder::samples(int64_t index) {
  assert(index >= 0);
  const int64_t epoch = index / micro_batches_per_epoch();
  if (epoch != epoch_) permute(epoch);
  const int64_t place = index % micro_batches_per_epoch();
  return std::span(order_).subspan(static_cast<size_t>(place * micro_batch_),
                                   static_cast<size_t>(micro_batch_));
}

// Fisher and Yates, with a generator that seed and epoch name.
void GlobalOrder::permute(int64_t epoch) {
  SplitMix64 random(SplitMix64(seed_).next() ^ static_cast<uint64_t>(epoch));
  order_.resize(static_cast<size_t>(count_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  for (size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random.below(i + 1)]);
  epoch_ = epoch;
}

}  // namespace hybridsync
