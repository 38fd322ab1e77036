// One simulated run: who takes part, over which network, by which rules, and what goes wrong. All
// of it follows from a configuration and a seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/policy.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/simulate/fault.h"
#include "hybridsync/simulate/network.h"
#include "hybridsync/simulate/problem.h"

namespace hybridsync {

// How a node computes and what its clock shows.
struct NodeProfile {
  Micros step = 10'000;     // an optimizer step takes this long
  double unevenness = 0;    // share of a step that varies, by a Pareto number
  Micros clock_start = 0;   // its own clock, when the run begins
  int64_t clock_parts = 0;  // parts of a million that it gains
};

// How much goes wrong in a run that is made from a seed.
enum class Severity { calm, mild, hard, wild };

struct Scenario {
  uint64_t seed = 0;
  Severity severity = Severity::calm;
  Policy policy;
  Schedule schedule;
  OuterConfig outer;
  CodecOptions codec;
  FragmentTable table;
  bool views = true;  // heartbeats and view changes
  Link link;
  std::vector<NodeProfile> nodes;
  std::vector<Fault> faults;  // by time
  std::shared_ptr<const Problem> problem;
  int64_t samples_per_step = 1;
  int64_t total_samples = 0;  // the end of training

  // One line: what is special about it.
  std::string to_text() const;
};

// Everything from the seed; numbers travel as codes in a third of all seeds.
Scenario random_scenario(uint64_t seed);
// The same where they do, by this codec.
Scenario random_scenario(uint64_t seed, CodecKind codec);
// Nodes, strategy, link and speeds as configured; the rest, and the faults, from the seed. The
// configuration is validated and of more than one node. Throws ConfigError where it cannot be
// simulated.
Scenario random_scenario(const Config& config, uint64_t seed);
// The same with these faults.
Scenario scripted_scenario(const Config& config, std::vector<Fault> faults, uint64_t seed);

}  // namespace hybridsync
