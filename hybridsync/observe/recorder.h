// Writes a run's folder; run_data.h reads it back.
//
//   config.toml         the configuration as resolved
//   environment.json    the machine, launcher and versions
//   metrics.jsonl       a StepRecord per line, from rank 0 of each node
//   evaluations.jsonl   an EvaluationRecord per line
//   events.jsonl        an EventRecord per line
//   summary.json        the run's final row: it is there when the run has finished
//
// record_json.h knows the keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hybridsync/observe/record_json.h"
#include "hybridsync/observe/step_record.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

enum class FolderUse {
  fresh,    // creates the folder; one that holds anything is refused
  join,     // appends to what another process of the same run created (or creates it)
  replace,  // removes the record that is there and begins anew
};

// One per process that records. Several processes of a machine may join one folder: each record is
// one write of a whole line in append mode, so lines never mix. Not for several threads at once.
class Recorder {
 public:
  struct Options {
    std::string folder = {};
    FolderUse use = FolderUse::fresh;
    // Called with the first error that happens after construction, once.
    std::function<void(const std::string&)> on_error = {};
  };

  // Throws ConfigError when the folder is in use, cannot be created or cannot be written.
  explicit Recorder(Options options);
  ~Recorder();

  // At the start. A failure is a ConfigError.
  void write_config(const std::string& toml);
  void write_environment(const Json& object);

  // While training. A failure is reported once through on_error and counted; training goes on.
  void step(const StepRecord& record);
  void evaluation(const EvaluationRecord& record);
  void event(const EventRecord& record);
  void summary(const RunSummary& summary);

  int64_t errors() const { return errors_; }  // records lost
  const std::string& folder() const { return options_.folder; }

 private:
  class Lines;
  void append(Lines& lines, const Json& line);
  void failed(const std::string& path, int error);
  std::string path_of(const char* name) const;

  Options options_;
  std::unique_ptr<Lines> metrics_, evaluations_, events_;
  int64_t errors_ = 0;
  int64_t last_samples_ = 0;
  double last_seconds_ = 0;
};

}  // namespace hybridsync
