// The configuration of a run: structs with defaults and the reasons for them.
//
// A Config comes from a TOML file through load() (config/load.h) or is filled in by hand; either
// way validate() must accept it before use. Durations are in seconds, rates in bits per second,
// sizes in bytes unless a name says otherwise. All types here are plain values.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/config/codec_options.h"

namespace hybridsync {

// How micro-batches of a window are weighted against each other.
enum class Weighting { samples, mean_of_means };

// When batch-norm running statistics advance, and what a round between nodes does with them.
enum class RunningStats { per_window, per_micro_batch };
enum class StatsAtSync { merge, first, none };

// lr = base * sqrt(kappa), base * kappa or base, with kappa = batch now / reference batch.
enum class LrScaling { sqrt, linear, none };
enum class LrSchedule { constant, cosine, step };

// What a tier does to stay together.
enum class Strategy { every_step, periodic, delayed };

// What becomes of a contribution that comes after the round it was made for has closed. fold: it
// enters a later round while it is not older than the staleness allows. return_: it goes back to
// its node, whose next contribution holds it. drop: it is thrown away, and counted.
enum class Late { fold, return_, drop };

// How `every` adapts: by nothing, how far nodes drift apart, whether the loss goes on falling as it
// did, the part of training that is done, the learning rate (Gu et al. 2024), or the loss (Wang and
// Joshi 2019).
enum class Adapt { off, divergence, loss, grow, qsr, adacomm };

// TierConfig::quorum, beside a number of nodes.
constexpr int kQuorumMajority = 0;  // more than half of those that take part, or one of two
constexpr int kQuorumAll = INT_MAX;

// Where the in-node reduction runs: during the last backward pass, after it, or beside the next
// window's first micro-step.
enum class Overlap { off, backward, next_window };

// [train]: for the program's own trainer. A loop of your own reads only `ranks`, `clip`, and
// `steps` as the length of schedules.
struct TrainConfig {
  std::string model = "cnn";           // cnn, char-gpt
  std::string data = "fashion-mnist";  // bible, a folder of IDX files, or a text file
  std::string optimizer = "sgd";       // sgd, adam, adamw
  double lr = 0.05;
  double momentum = 0.9;  // sgd only
  double weight_decay = 0.0;
  int64_t micro_batch = 32;      // samples per rank and micro-step
  int64_t steps = 1000;          // optimizer steps
  int64_t evaluate_every = 0;    // steps between evaluations; 0: only at the end
  int64_t evaluate_samples = 0;  // of the held-out part, evenly spread; 0: all
  uint64_t seed = 1;
  double clip = 0.0;            // largest gradient norm; 0: off
  int ranks = 0;                // ranks in all; 0: the product of the tiers' sizes
  int threads = 1;              // torch threads per rank: ranks share the cores
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  std::string start_from;       // folder of a finished run to begin from; empty: from new weights

  bool operator==(const TrainConfig&) const = default;
};

// [accumulate]
struct AccumulateConfig {
  int64_t steps = 1;  // micro-steps per optimizer step
  Weighting weighting = Weighting::samples;

  bool operator==(const AccumulateConfig&) const = default;
};

// [batch_norm]
struct BatchNormConfig {
  RunningStats running_stats = RunningStats::per_window;
  StatsAtSync at_sync = StatsAtSync::merge;

  bool operator==(const BatchNormConfig&) const = default;
};

// [learning_rate]
struct LearningRateConfig {
  LrScaling scaling = LrScaling::sqrt;
  double reference_batch = 0;  // the batch that lr was tuned for; 0: this run's own
  LrSchedule schedule = LrSchedule::constant;
  int64_t warmup = 0;         // steps from 0 to the full value, linearly
  int64_t decay_every = 0;    // step schedule: steps between decays
  double decay_factor = 0.1;  // step schedule: factor at each decay
  double final_factor = 0.0;  // cosine: value at the last step, as a fraction of the base

  bool operator==(const LearningRateConfig&) const = default;
};

// [start]
struct StartConfig {
  int64_t every_step = 0;  // pure synchronous steps before the tiers' own strategies take over

  bool operator==(const StartConfig&) const = default;
};

constexpr int kMostParts = 4096;  // of TierConfig::parts

// OuterConfig::lr: each owner finds it by itself (math/gain.h).
constexpr double kAutoLr = -1;

// Outer optimizer of a delta strategy: {1, 0, false} is plain averaging.
struct OuterConfig {
  double lr = 1.0;  // or kAutoLr
  double momentum = 0.0;
  bool nesterov = false;

  bool operator==(const OuterConfig&) const = default;
};

// A link slower than the one there is, and nodes slower than they are. rate 0: off. Both directions
// have `rate`; a round trip takes `rtt` longer.
struct EmulateConfig {
  double rate = 0.0;        // bits per second that a unit can send, and as many that it can receive
  double rtt = 0.0;         // seconds
  double step = 0.0;        // seconds that an optimizer step takes at least; 0: off
  std::string speeds = "";  // of the nodes, relative: "1 1 0.25"; empty: all 1
  // Whether the link is emulated.
  bool on() const { return rate > 0 || rtt > 0; }
  // Seconds that a step of this node takes at least. Needs a validated configuration.
  double step_seconds(int node) const;

  bool operator==(const EmulateConfig&) const = default;
};

// [[tier]], innermost first: ranks -> node -> site. The innermost joins ranks that share memory.
struct TierConfig {
  std::string name = "node";
  int size = 1;  // units that it joins; 0 ("auto"): what `ranks` leaves
  Strategy strategy = Strategy::every_step;
  std::string group = "auto";           // innermost tier: shm
  Overlap overlap = Overlap::backward;  // innermost tier
  // Innermost tier: gradients that travel together. Small enough that a reduction starts early in
  // backward, large enough that its latency does not count (microbench/README.md).
  int64_t bucket_bytes = 512 << 10;
  double timeout = 600;      // seconds that a rank waits for a silent one in its node
  int64_t every = 4;         // K, optimizer steps between rounds (periodic, delayed)
  Adapt adapt = Adapt::off;  // periodic, delayed: how K goes on from there
  int64_t every_min = 1;     // and its bounds
  int64_t every_max = 64;
  CodecOptions codec;  // outer tier: how deltas and gradients travel
  OuterConfig outer;
  EmulateConfig emulate;
  int64_t fragment_bytes = 4 << 20;  // outer tier: parameters that travel together, at most
  int parts = 1;             // periodic, delayed: in which parameters travel, at steps of their own
  double momentum_pull = 0;  // periodic: how far a round moves the optimizers' momentum
  double second_moment_floor = 0;  // outer tier: of Adam's, as a part of its tensor's mean
  int staleness = 0;               // delayed: rounds that a node may lag; 0: everybody is awaited
  double deadline = 0;             // delayed: seconds after which a round skips; 0: none
  int quorum = kQuorumMajority;    // delayed: nodes that a round needs to close without the others
  Late late = Late::fold;          // delayed

  bool operator==(const TierConfig&) const = default;
};

// [record]
struct RecordConfig {
  std::string folder = "runs";
  std::string name;  // folder inside; empty: made from the configuration's name and the time

  bool operator==(const RecordConfig&) const = default;
};

struct Config {
  std::string source = "defaults";  // file it came from, for messages
  TrainConfig train;
  AccumulateConfig accumulate;
  BatchNormConfig batch_norm;
  LearningRateConfig learning_rate;
  StartConfig start;
  std::vector<TierConfig> tiers;
  RecordConfig record;

  // Ranks per node, nodes, and ranks in all. Need a validated configuration.
  int ranks_per_node() const { return tiers.empty() ? 1 : tiers[0].size; }
  int nodes() const {
    int n = 1;
    for (size_t i = 1; i < tiers.size(); ++i) n *= tiers[i].size;
    return n;
  }
  int ranks() const { return ranks_per_node() * nodes(); }
  // The tier that joins nodes: the configured one, or the identity (every_step of one node).
  TierConfig outer_tier() const;
  TierConfig node_tier() const;

  bool operator==(const Config&) const = default;
};

// Thrown for every mistake of the user's in configuration or usage; what() names file, line, key,
// value and remedy.
class ConfigError;

}  // namespace hybridsync
