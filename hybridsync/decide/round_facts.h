// What is known of a round of deltas when it closes, as far as the next interval depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hybridsync/decide/messages.h"

namespace hybridsync {

// Of the numbers of a round, as the shell computed them. 0: unknown.
struct SquaredNorms {
  double mean = 0;    // of the deltas, as it is published
  double anchor = 0;  // that it is applied to
};

struct RoundFacts {
  int64_t interval = 1;  // K of this round
  int64_t total_samples = 0;
  double progress = 0;          // the part of training that is done
  std::optional<double> loss;   // mean over the members
  std::optional<double> drift;  // see drift()
  double lr = 0;                // the largest of the members' newest; 0: unknown
};

// How far members are apart, relative to where they are:
//
//   sqrt(mean_i |theta_i - mean|^2) / |anchor|,   weighted,
//   mean_i |theta_i - mean|^2 = mean_i |d_i|^2 - |mean d|^2
//
// Nothing from fewer than two deltas, or without norms. Where deltas travel as codes, what the
// codes leave out counts as drift.
std::optional<double> drift(const std::vector<Contribution>& contributions,
                            const SquaredNorms& norms);

// Of a round on top of `lineage`, of so many nodes. Training is planned to take `steps` steps of
// each: with as many samples in each as those of this round hold.
RoundFacts facts_of(const std::vector<Contribution>& contributions, const Lineage& lineage,
                    const SquaredNorms& norms, int64_t nodes, int64_t steps);

// What a rule wants K to be, and why; said where it is another one than now.
struct Wish {
  int64_t interval = 1;
  std::string why = {};
  std::string warning = {};  // empty: none
};

// With three digits.
std::string short_text(double number);

}  // namespace hybridsync
