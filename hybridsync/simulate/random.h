// Numbers from a seed, the same on every machine: splitmix64, and distributions that need nothing
// but exact arithmetic and square roots.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>

namespace hybridsync {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // A generator of its own for a part of the whole, so that parts do not disturb each other.
  Random fork(uint64_t name) { return Random(next() ^ (name * 0xd1342543de82ef95ull)); }

  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }
  // Both ends included.
  int64_t between(int64_t low, int64_t high) {
    assert(low <= high);
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  // Mean 0, deviation 1: the sum of four uniform numbers, which is near enough to normal here.
  double normal() {
    const double sum = uniform() + uniform() + uniform() + uniform();
    return (sum - 2) * std::sqrt(3.0);
  }
  // Pareto with exponent 2: at least 1, mean 2, no variance.
  double pareto() { return 1 / std::sqrt(1 - uniform()); }

 private:
  uint64_t state_;
};

}  // namespace hybridsync
