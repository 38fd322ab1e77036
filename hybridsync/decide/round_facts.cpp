#include "hybridsync/decide/round_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace hybridsync {

std::optional<double> drift(const std::vector<Contribution>& contributions,
                            const SquaredNorms& norms) {
  int64_t deltas = 0;
  double weight = 0, squares = 0;
  for (const Contribution& c : contributions) {
    if (c.weight <= 0) continue;
    ++deltas;
    weight += c.weight;
    squares += c.weight * c.squared_norm;
  }
  if (deltas < 2 || !(norms.anchor > 0)) return std::nullopt;
  const double apart = std::max(0.0, squares / weight - norms.mean);
  const double relative = std::sqrt(apart / norms.anchor);
  return std::isfinite(relative) ? std::optional(relative) : std::nullopt;
}

RoundFacts facts_of(const std::vector<Contribution>& contributions, const Lineage& lineage,
                    const SquaredNorms& norms, int64_t nodes, int64_t steps) {
  RoundFacts facts;
  facts.interval = lineage.interval;
  facts.total_samples = lineage.total_samples;
  facts.drift = drift(contributions, norms);
  int64_t taken = 0, samples = 0;
  double loss_sum = 0, loss_weight = 0;
  for (const Contribution& c : contributions) {
    taken += c.steps;
    samples += c.samples;
    loss_sum += c.loss_sum;
    loss_weight += c.loss_weight;
    facts.lr = std::max(facts.lr, c.lr);
  }
  facts.total_samples += samples;
  if (loss_weight > 0) facts.loss = loss_sum / loss_weight;
  const double planned = static_cast<double>(samples) * static_cast<double>(nodes * steps);
  if (planned > 0)
    facts.progress =
        static_cast<double>(facts.total_samples) * static_cast<double>(taken) / planned;
  return facts;
}

std::string short_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", number);
  return text.data();
}

}  // namespace hybridsync
