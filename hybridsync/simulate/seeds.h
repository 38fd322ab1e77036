// Many simulated runs, one per seed, on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hybridsync/simulate/simulator.h"

namespace hybridsync {

struct Seeds {
  uint64_t first = 1;
  int64_t count = 1;
  int threads = 0;  // 0: as many as there are cores
  // A failure is run once more with its trace; so many at the most.
  size_t most_failures = 3;
};

struct SeedsResult {
  Tally tally;
  int64_t failures = 0;
  std::vector<SimulatedRun> failed;  // the first by seed, with traces
  std::optional<SimulatedRun> only;  // the run, if it was one; without its trace
  uint64_t course = 0;               // the same for the same runs, whatever the number of threads
  double seconds = 0;
};

// `scenario_of` is called from all threads. `progress` (may be null): from one of them at a time,
// with the number of runs so far. What either throws ends everything and is thrown here; of several
// exceptions that of the first seed.
SeedsResult run_seeds(const Seeds& seeds, const std::function<Scenario(uint64_t)>& scenario_of,
                      const std::function<void(int64_t)>& progress = nullptr);

}  // namespace hybridsync
