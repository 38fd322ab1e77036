// Records as JSON and back: the one place that knows the keys of a run's files.
//
// Keys follow torchtitan where it has one. Not-a-number and infinity are written as null and read
// back as NaN.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hybridsync/observe/step_record.h"

namespace hybridsync {

using Json = nlohmann::ordered_json;

// Something worth a sentence: a skipped step, a lost peer, a change of K.
struct EventRecord {
  std::string kind;      // one word with underscores: "skip", "peer_lost"
  std::string sentence;  // what happened and why
  int node = 0;
  int64_t step = 0;
  double seconds = 0;            // since training began
  Json fields = Json::object();  // more, by kind; may not use the names above
};

// One line of metrics.jsonl. throughput(tps) is samples per second of the whole run. An empty
// ledger is left out: nothing was contributed yet, or there is one node.
Json to_json(const StepRecord& record, double samples_per_second);
Json to_json(const EvaluationRecord& record);
Json to_json(const EventRecord& record);

// Inverse of the above. Keys that are missing keep their defaults; throws nlohmann::json::exception
// when a value has the wrong type or the line is no object with a "step" (events: a "kind").
StepRecord step_from_json(const Json& line);
EvaluationRecord evaluation_from_json(const Json& line);
EventRecord event_from_json(const Json& line);

// A number, or NaN for null or nothing.
double number_at(const Json& object, const char* key);

// On one line; bytes that are no UTF-8 are replaced, never an exception.
std::string dump(const Json& json, int indent = -1);

}  // namespace hybridsync
