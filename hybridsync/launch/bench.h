// Runs configurations side by side, with equal seeds and equal samples.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

struct BenchOptions {
  std::vector<std::string> configs;  // paths; their stems name the runs and must differ
  std::vector<std::string> sets;     // overrides for all
  int seeds = 1;                     // runs of each configuration, from its own train.seed upwards
  std::string output;                // folder for the runs and report.html; must be new
  bool number_output = false;        // an output that is there already gets -2, -3, ... at its end
  bool allow_different_samples = false;
  bool quiet = false;  // standard output stays free: what the runs print goes to standard error
};

struct BenchResult {
  int exit_code = 0;  // of the run that ended the bench early, or 0
  std::vector<RunSummary> summaries;
  std::string report;  // path
};

// Samples that a run trains on in all.
int64_t total_samples(const Config& config);

// Throws ConfigError that names two configurations and their samples unless all have equally many.
void check_equal_samples(const std::vector<Config>& configs);

// Trains one run after another, each in processes of its own, and writes the report. `progress`
// gets a line before each run. Throws ConfigError before the first run starts. As launch(): from a
// thread that lives until it returns.
BenchResult bench(BenchOptions options, std::ostream& progress);

}  // namespace hybridsync
