#include "hybridsync/sync/gains.h"

#include <algorithm>

#include "hybridsync/decide/codec_cost.h"

namespace hybridsync {
namespace {

constexpr double kRounds = 42;  // that averages go over, of all owners together

double energy(std::span<const float> values, const TensorRange& range) {
  double sum = 0;
  for (float x : values.subspan(range.offset, range.count)) sum += static_cast<double>(x) * x;
  return sum;
}

// Numbers of each tensor, in all fragments.
std::map<size_t, size_t> sizes(const TensorRanges& all) {
  std::map<size_t, size_t> sizes;
  for (const auto& [f, ranges] : all)
    for (const TensorRange& range : ranges) sizes[range.tensor] += range.count;
  return sizes;
}

size_t count_tensors(const TensorRanges& all) {
  size_t count = 1;  // the small ones
  for (const auto& [tensor, size] : sizes(all)) count = std::max(count, tensor + 2);
  return count;
}

}  // namespace

Gains::Gains(const TensorRanges& all, int nodes)
    : memory_(std::max(1.0, kRounds / nodes)), agreement_(count_tensors(all), memory_) {
  const auto size = sizes(all);
  for (const auto& [f, ranges] : all) {
    Places& places = places_[f];
    for (TensorRange range : ranges) {
      const bool large = size.at(range.tensor) >= static_cast<size_t>(kLargeTensor);
      const size_t entry = large ? range.tensor + 1 : 0;
      const auto known = std::find(places.tensors.begin(), places.tensors.end(), entry);
      range.tensor = static_cast<size_t>(known - places.tensors.begin());
      if (known == places.tensors.end()) places.tensors.push_back(entry);
      places.ranges.push_back(range);
    }
  }
}

size_t Gains::bytes(int fragment) const {
  const auto found = places_.find(fragment);
  return found == places_.end() ? 0 : (found->second.tensors.size() + 1) / 2;
}

void Gains::contributed(int fragment, std::span<const ConstValues> values,
                        std::span<const float> mean, double squared_norm) {
  const Places& places = places_.at(fragment);
  std::vector<double> squared_mean(places.tensors.size()), square(places.tensors.size());
  double decoded = 0;
  for (const TensorRange& range : places.ranges) {
    squared_mean[range.tensor] += energy(mean, range);
    for (const ConstValues& one : values)
      square[range.tensor] += energy(std::get<std::span<const float>>(one), range);
  }
  for (size_t t = 0; t < square.size(); ++t) {
    decoded += square[t];
    const double members = static_cast<double>(values.size());
    if (values.size() > 1)
      agreement_.add(places.tensors[t], squared_mean[t], square[t] / members, values.size());
  }
  contributed_.add(squared_norm, memory_);
  decoded_.add(decoded, memory_);
}

void Gains::encoded(double squared_norm, double squared_norm_of_code) {
  mean_.add(squared_norm, memory_);
  published_.add(squared_norm_of_code, memory_);
}

Bytes Gains::find(int fragment, size_t members) const {
  const auto kept = [](const Smoothed& part, const Smoothed& whole) {
    return whole.value() > 0 ? std::min(1.0, part.value() / whole.value()) : 1;
  };
  const double up = kept(decoded_, contributed_), down = kept(published_, mean_);
  const Places& places = places_.at(fragment);
  Bytes gains(bytes(fragment));
  for (size_t t = 0; t < places.tensors.size(); ++t) {
    const double gain = self_tuned_gain(agreement_.rho(places.tensors[t]), members, up, down);
    gains[t / 2] |= static_cast<std::byte>(gain_code(gain) << (t % 2 * kGainBits));
  }
  return gains;
}

}  // namespace hybridsync
