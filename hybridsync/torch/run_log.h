// What one rank shows and records of a run by the program: progress, and the run's folder.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/observe/progress.h"
#include "hybridsync/observe/recorder.h"
#include "hybridsync/observe/step_record.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

// The configuration's file without folder and ending: "hybrid" for "examples/hybrid.toml".
std::string configuration_name(const Config& config);

// Where a run's records go: the environment's folder; else record.folder / record.name; without a
// name, record.folder / the configuration's name and the run's id, or the time where there is none.
std::string run_folder(const Config& config, const Environment& environment);

// The first rank of each node records its steps; the run's first rank also shows progress and
// writes what there is once per run. Other ranks do nothing here. Any thread.
class RunLog {
 public:
  // Throws ConfigError when the folder cannot be written. `out` must outlive it.
  RunLog(const Config& config, const Environment& environment, std::ostream& out);
  ~RunLog();

  bool records() const { return recorder_ != nullptr; }
  bool leads() const { return progress_ != nullptr; }
  const std::string& folder() const { return folder_; }

  // Once, on every rank. `machine` is what the caller adds about torch and the device.
  void begin(const Json& machine);
  void step(const StepRecord& record);
  void waiting(const std::string& sentence);
  void event(const std::string& kind, const std::string& sentence);
  void evaluation(EvaluationRecord record);  // its seconds are filled in here
  // After the run's last step. On the run's first rank: the summary of all nodes' records, which it
  // also writes. On the others: what they know themselves.
  RunSummary finish(const EvaluationRecord& last, int64_t interval, int64_t rounds);

 private:
  const Config config_;
  const Environment environment_;
  const std::string folder_;
  std::mutex mutex_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Progress> progress_;
  int64_t step_ = 0;
  int64_t samples_ = 0;
  double seconds_ = 0;
};

}  // namespace hybridsync
