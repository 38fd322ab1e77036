// The final row of a run, and several of them as one table with ratios against the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/observe/record_json.h"

namespace hybridsync {

struct RunSummary {
  std::string name;  // of the configuration: equal for runs that differ only in their seed
  uint64_t seed = 0;
  int64_t steps = 0;
  int64_t samples = 0;          // of all nodes
  double final_loss = 0;        // on the held-out part; NaN when it was never evaluated
  double final_accuracy = 0;    // fraction
  double seconds = 0;           // of training
  int64_t bytes_sent_slow = 0;  // all nodes, between nodes
  int64_t bytes_sent_fast = 0;  // all nodes, inside nodes
  double utilisation = 0;       // fraction of the time in which the ranks computed
  int64_t k_final = 1;
  int64_t rounds = 0;
  // What became of the contributions of all nodes; see LedgerRecord.
  int64_t contributed = 0;
  int64_t applied = 0;
  int64_t returned = 0;
  int64_t dropped = 0;
  int64_t lost = 0;
  int64_t skipped = 0;
  int64_t mismatches = 0;
  std::vector<int64_t> ages = {};  // applied ones by age in versions, from 0
  std::string folder = {};

  // Was somebody's work applied to a version that it was not learned on, or not at all?
  bool lagged() const { return ages.size() > 1 || returned + dropped + lost + skipped > 0; }
};

// Keys as the members, in their order; summary.json and `bench --json` hold exactly this object.
Json to_json(const RunSummary& summary);
// Throws nlohmann::json::exception when a key is missing or has the wrong type. What became of
// contributions may be missing: then nothing is known of it.
RunSummary summary_from_json(const Json& object);

struct Table {
  struct Row {
    std::vector<std::string> cells;
    bool spread = false;  // the min..max of the row above
  };
  std::vector<std::string> header;
  std::vector<Row> rows;
};

// One row per name, in order of first appearance. Several runs of a name (seeds) give their mean,
// and a second row with min..max where it is not a point. With several names there are two more
// columns, against the first row: how many times less time per sample, and bytes on the slow link
// per sample. With a run that lagged there are three more: the mean age of the applied
// contributions, the age of the oldest, and how many were thrown away or died with a process.
Table summary_table(const std::vector<RunSummary>& summaries);

// Runs of one name, as means over its seeds, against those of the first name.
struct Comparison {
  std::string name;
  double speed_up = 1;  // seconds per sample of the first, divided by this one's
  double traffic = 1;   // bytes on the slow link per sample, divided by those of the first
  double accuracy = 0;
  double accuracy_gain = 0;  // a difference of fractions
  double utilisation = 0;
  bool equal_samples = true;  // to one per cent; otherwise accuracies cannot be compared
};
std::vector<Comparison> compare(const std::vector<RunSummary>& summaries);

// Aligned plain text, numbers to the right, a newline after each row.
std::string to_text(const Table& table);
// The same as a table of Markdown.
std::string to_markdown(const Table& table);

}  // namespace hybridsync
