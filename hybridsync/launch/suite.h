// Runs a suite: what is not done yet, several at a time, and writes its results.
#pragma once

#include <ostream>
#include <string>

#include "hybridsync/launch/suite_plan.h"

namespace hybridsync {

struct SuiteOptions {
  std::string suite;       // name
  std::string output;      // folder; empty: runs/suite-NAME. One that is there is gone on with
  std::string only = "*";  // glob on a run's key; start runs that are needed are run as well
  PlanOptions plan;
  int jobs = 0;  // runs side by side; 0: half as many as cores, at least 2
  bool dry_run = false;
  std::string command;  // as typed, for the results
  std::string commit;   // of the program, for the results; empty: not known
};

// The folder gets TASK.toml (configurations), runs/NAME (a run's records; its weights are removed,
// but for start runs), runs/NAME.txt (what an unfinished or failed run printed), results.md and
// results.json, both written anew after each run. A run that has finished is never run again; what
// is left of another is removed. A run that fails is a word in the results.
//
// `out` gets a line per run, the tables and the path of results.md; with dry_run the list of runs.
// Returns an ExitCode: kInterrupted after SIGINT, SIGTERM or SIGHUP, which are passed on to the
// runs; a second one ends them at once. Throws ConfigError before the first run starts. As
// launch(): from a thread that lives until it returns, by one thread at a time.
int run_suite(SuiteOptions options, std::ostream& out);

}  // namespace hybridsync
