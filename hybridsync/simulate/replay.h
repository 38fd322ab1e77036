// The command that runs a simulated run again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hybridsync {

// What a run follows from, beside its seed.
struct RunSource {
  std::string config;             // path; empty: everything follows from the seed
  std::vector<std::string> sets;  // overrides in the form of --set
  std::string faults;             // path; empty: they follow from the seed
};

// For a POSIX shell, with a trace.
std::string replay_command(const RunSource& source, uint64_t seed);

}  // namespace hybridsync
