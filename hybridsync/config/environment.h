// Where this process stands among the ranks. The environment is read here and nowhere else.
#pragma once

#include <cstdint>
#include <string>

#include "hybridsync/config/config.h"

namespace hybridsync {

struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the ranks of its node
  int local_world_size = 1;
  int node = 0;
  std::string rendezvous;  // host:port where the ranks find each other; empty with one rank
  std::string run_id;      // the same on all ranks of one run, different between runs
  std::string run_folder;  // where the launcher wants the records; empty: the configuration's
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT (names
// of torchrun) and HYBRIDSYNC_RUN_ID, HYBRIDSYNC_RUN_FOLDER. No RANK: one process. Throws
// ConfigError on a contradiction and shows both values.
Environment from_environment();

// Throws ConfigError unless the environment's ranks are those of the configuration.
void check(const Environment& environment, const Config& config);

}  // namespace hybridsync
