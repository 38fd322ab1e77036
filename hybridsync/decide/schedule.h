// When a fragment's next round is due and of which kind it is.
#pragma once

#include <cstdint>

#include "hybridsync/config/config.h"

namespace hybridsync {

// A fragment's version: the number of rounds it has been through.
using Version = int64_t;

// What a round carries. gradient: every node's mean gradient of one step, and the inner optimizer
// applies the mean. delta: anchor minus parameters, and the outer optimizer moves the anchor.
enum class Mode : uint8_t { gradient = 0, delta = 1 };

// How the interval goes on from `every`, and within what (interval.h).
struct Adaptation {
  Adapt rule = Adapt::off;
  int64_t least = 1;
  int64_t most = 1;
  int64_t steps = 0;  // that each node is to take in the whole run
  bool operator==(const Adaptation&) const = default;
};

// The path of a run, the same on all nodes: `synchronous_rounds` rounds of one step each, then the
// strategy.
struct Schedule {
  Strategy strategy = Strategy::every_step;
  int64_t synchronous_rounds = 0;
  int64_t every = 1;
  // Steps of the strategy's first round; 0: `every`. Parts that begin apart stay so.
  int64_t first = 0;
  Adaptation adaptation = {};
  bool operator==(const Schedule&) const = default;

  Mode mode(Version version) const {
    return strategy == Strategy::every_step || version < synchronous_rounds ? Mode::gradient
                                                                            : Mode::delta;
  }
  // How many rounds before the one on top of this version carried codes, where there is a codec.
  // Negative: it carries plain numbers itself.
  int64_t coded_rounds(Version version) const { return version - synchronous_rounds; }
  bool coded(Version version) const { return coded_rounds(version) >= 0; }
  // The interval follows the results of fragment 0, in all fragments.
  bool adapts() const { return adaptation.rule != Adapt::off; }
  int64_t longest() const { return adapts() ? adaptation.most : every; }
  // Optimizer steps that belong to the round on top of this version, where it does not adapt.
  int64_t interval(Version version) const {
    if (mode(version) == Mode::gradient) return 1;
    return version == synchronous_rounds && first > 0 ? first : every;
  }
  // Is a round of the strategy due after so many of its steps, where none is late?
  bool due(int64_t steps) const {
    const int64_t begin = first > 0 ? first : every;
    return steps >= begin && (steps - begin) % every == 0;
  }
  // That of one of `parts` parts, at most `every`: spread evenly over the interval. Part 0 is due
  // last, at its end.
  Schedule of_part(int part, int parts) const {
    Schedule schedule = *this;
    schedule.first = every - part * every / parts;
    return schedule;
  }
};

Schedule make_schedule(const Config& config);

}  // namespace hybridsync
