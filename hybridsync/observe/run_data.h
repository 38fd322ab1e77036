// Reads a run's folder back, whole or cut short.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hybridsync/observe/record_json.h"
#include "hybridsync/observe/step_record.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

// Of all nodes at the end: the sum of their last lines.
LedgerRecord ledger_of(const std::vector<StepRecord>& steps);

struct RunData {
  std::string folder;
  std::vector<StepRecord> steps;  // of all nodes, in the order of the file
  std::vector<EvaluationRecord> evaluations;
  std::vector<EventRecord> events;
  std::string config;              // text of config.toml
  std::string environment;         // text of environment.json
  RunSummary summary;              // of summary.json, or what the records show
  bool finished = false;           // summary.json was there
  std::vector<std::string> notes;  // what is missing or could not be read, as sentences
};

// Throws ConfigError when the folder is missing or holds no metrics.jsonl.
RunData read_run(const std::string& folder);

// Leaves one name to runs only where they are seeds of one configuration: finished, config.toml
// equal apart from train.seed and [record], no seed twice. Other runs that share a name are renamed
// after their folders, each differently.
void tell_apart(std::vector<RunData>& runs);

}  // namespace hybridsync
