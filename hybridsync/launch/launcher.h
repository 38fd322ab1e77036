// Starts all ranks of a run on this machine as processes, and ends them all.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace hybridsync {

// Exit codes of the program and of launch().
enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 3 };

struct LaunchOptions {
  std::vector<std::string> argv;  // the program that every rank runs; argv[0] is looked up in PATH
  int world_size = 1;
  int ranks_per_node = 1;                 // rank r belongs to node r / ranks_per_node
  std::string run_folder;                 // for HYBRIDSYNC_RUN_FOLDER; empty: not set
  int output_fd = 1;                      // where the ranks' standard output goes
  std::chrono::milliseconds grace{5000};  // between the request to end and SIGKILL
};

// Runs world_size copies of the program with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
// GROUP_RANK, MASTER_ADDR, MASTER_PORT, HYBRIDSYNC_RUN_ID and HYBRIDSYNC_RUN_FOLDER, with the
// rendezvous in this process, and returns when all have ended: 0 if all were done, otherwise the
// exit code of the first failure (128 + signal for a killed one), kInterrupted after SIGINT,
// SIGTERM or SIGHUP.
//
// These signals are passed on to the ranks; a second one ends them at once. The first failure is
// shown on standard error ("rank 2 (node 1) exited with code 3: <its last line>"), the other ranks
// get SIGTERM and, after `grace`, SIGKILL. Should this process die, the kernel kills the ranks.
//
// Rank 0's standard output is output_fd itself, so that its progress bar finds the terminal; other
// output is passed on by lines, with "[rank 2] " in front except for rank 0. A line of standard
// error that begins with "hybridsync: " concerns the whole run: it is shown once, whichever ranks
// say it.
//
// To be called from a thread that lives until it returns, by one thread at a time. Throws
// ConfigError when the program cannot be run.
int launch(const LaunchOptions& options);

}  // namespace hybridsync
