// Run folders as training would leave them, written through the Recorder: for tests of what reads
// them.
#pragma once

#include <cstdint>
#include <string>

namespace hybridsync {

struct SampleRun {
  std::string name = "sync";
  uint64_t seed = 1;
  int64_t steps = 600;
  int64_t interval = 1;  // K; above 1 the first tenth of the run is synchronous
  int nodes = 2;
  int staleness = 0;     // above 0: delayed, and every other contribution of the last node is late
  bool finished = true;  // otherwise without summary, and the last line is cut short
};

// Writes the folder (which must not exist) and returns it.
std::string write_sample_run(const std::string& folder, const SampleRun& sample);

}  // namespace hybridsync
