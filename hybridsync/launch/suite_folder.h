// The folder of a suite: configurations, runs, results.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/launch/suite_measure.h"
#include "hybridsync/launch/suite_plan.h"
#include "hybridsync/launch/train_command.h"

namespace hybridsync {

// Held by one process at a time, until the end of this object. One thread.
class SuiteFolder {
 public:
  // Creates what is missing and writes the configurations. Throws ConfigError when it cannot be
  // written or another process works in it.
  SuiteFolder(const std::string& path, const Suite& suite);
  ~SuiteFolder();
  SuiteFolder(const SuiteFolder&) = delete;
  SuiteFolder& operator=(const SuiteFolder&) = delete;

  const std::string& path() const { return path_; }
  // Written aside and renamed. Throws std::runtime_error.
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
  int lock_ = -1;
};

// Where things lie, whether or not they are there.
std::string run_folder_in(const std::string& suite, const PlannedRun& run);
std::string log_in(const std::string& suite, const PlannedRun& run);

// What trains the run, but for the name of its folder.
TrainCommand command_of(const std::string& suite, const Suite& plan, const PlannedRun& run);

// Removes what an unfinished run left.
void clear_run(const std::string& suite, const PlannedRun& run);
// Of a finished one: weights that no other run begins from, and what it printed.
void tidy_run(const std::string& suite, const PlannedRun& run);

}  // namespace hybridsync
