#include "hybridsync/math/codec/threshold.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {
namespace {

constexpr size_t kRun = 16, kAhead = 16;
constexpr double kSampleHits = 1024;
constexpr size_t kLeastSample = 8192;

size_t sample_size(double density, size_t count) {
  if (count <= kLeastSample) return count;
  const size_t most = std::max(count / 16, kLeastSample);
  const double size = std::min(kSampleHits / density, static_cast<double>(most));
  return std::max(kLeastSample, static_cast<size_t>(size)) / kRun * kRun;
}

// Scattered like random numbers, so that no row length of a matrix keeps step with them
// (splitmix64, Steele et al. 2014).
uint64_t scatter(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

size_t start_of_run(size_t r, size_t runs, size_t count) {
  const size_t begin = r * count / runs, end = (r + 1) * count / runs;
  return begin + scatter(r) % (end - begin - kRun + 1);
}

void take_sample(const ErrorFed& u, size_t size, std::vector<float>& sample) {
  sample.resize(size);
  if (size == u.size()) return u.copy_fresh(0, sample);
  const size_t runs = size / kRun;
  for (size_t r = 0; r < runs; ++r) {
    u.fetch(start_of_run(std::min(r + kAhead, runs - 1), runs, u.size()), kRun);
    u.copy_fresh(start_of_run(r, runs, u.size()), std::span(sample).subspan(r * kRun, kRun));
  }
}

}  // namespace

size_t wanted_of(double density, size_t count) {
  if (count == 0) return 0;
  const double wanted = std::round(density * static_cast<double>(count));
  return std::clamp<size_t>(static_cast<size_t>(wanted), 1, count);
}

uint32_t sampled_threshold(const ErrorFed& u, double density, std::vector<float>& sample) {
  take_sample(u, sample_size(density, u.size()), sample);
  const size_t wanted = wanted_of(density, sample.size());
  if (count_reached(sample, 1) <= wanted) return 1;
  return threshold_of(sample, {wanted, wanted + wanted / 64}, 1, kNotFinite);
}

}  // namespace hybridsync
