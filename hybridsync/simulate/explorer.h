// Looks for a way to break the protocol's invariants: all interleavings of a small world, breadth
// first to a stated depth, and random walks, which go much deeper. What runs are the production
// machines. A violation comes with the shortest way to it that was found, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hybridsync/simulate/small_world.h"

namespace hybridsync {

struct Counterexample {
  Violation violation;
  uint64_t seed = 0;               // of the walk; 0 where there is none
  int depth = 0;                   // transitions until it was found
  std::vector<std::string> trace;  // from the beginning, one line per transition
};

struct ExploreOptions {
  WorldOptions world;
  int depth = 100;                 // transitions from the beginning
  size_t most_states = 3'000'000;  // about 150 bytes each, and the newest two layers 300 more
};

struct ExploreResult {
  size_t states = 0;       // distinct ones
  size_t transitions = 0;  // tried
  int depth = 0;           // up to which every state was reached
  bool exhausted = false;  // there are no others
  size_t over = 0;         // ways that ended in World::over
  size_t machines = 0;     // distinct states of one process in one fragment
  std::optional<Counterexample> found;
};
ExploreResult explore(const ExploreOptions& options);

struct WalkOptions {
  WorldOptions world;
  uint64_t first_seed = 1;
  int walks = 1000;
  int depth = 120;       // transitions of a walk
  double faults = 0.06;  // part of them that are faults, while there is a budget
  bool drain = true;     // afterwards everything goes on without faults: do versions increase?
  int idle = -1;         // ... a node that contributes nothing meanwhile
  bool everybody_back = false;  // ... and is every live node a member again?
  bool count_traffic = false;   // without faults and questions: who sends how much
};

struct WalkResult {
  int walks = 0;
  size_t transitions = 0;
  int over = 0;  // walks that ended in World::over
  std::optional<Counterexample> found;
};
WalkResult walk(const WalkOptions& options);

}  // namespace hybridsync
