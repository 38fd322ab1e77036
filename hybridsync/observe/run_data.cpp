#include "hybridsync/observe/run_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "hybridsync/config/error.h"
#include "hybridsync/observe/curves.h"

namespace hybridsync {

namespace fs = std::filesystem;

namespace {

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Calls `take` with every line that parses; says in a note what did not.
template <class Take>
void read_lines(RunData& run, const char* name, Take take) {
  std::ifstream file(fs::path(run.folder) / name);
  std::string text;
  int64_t number = 0, bad = 0, first_bad = 0;
  bool torn = false;
  while (std::getline(file, text)) {
    ++number;
    torn = file.eof();  // no line break: the writer was stopped inside this line
    if (text.empty()) continue;
    try {
      take(Json::parse(text));
      torn = false;
    } catch (const Json::exception&) {
      if (torn) break;
      if (bad++ == 0) first_bad = number;
    }
  }
  if (torn) run.notes.push_back(std::string(name) + ": the last line is cut short and left out");
  if (bad == 0) return;
  run.notes.push_back(std::string(name) + ": " + std::to_string(bad) +
                      " unreadable lines are left out, the first is line " +
                      std::to_string(first_bad));
}

std::string name_of(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().empty() ? folder : path.filename().string();
}

void add(std::vector<int64_t>& counts, const std::vector<int64_t>& more) {
  counts.resize(std::max(counts.size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i) counts[i] += more[i];
}

void add(LedgerRecord& sum, const LedgerRecord& l) {
  for (int64_t LedgerRecord::*count :
       {&LedgerRecord::contributed, &LedgerRecord::applied, &LedgerRecord::returned,
        &LedgerRecord::dropped, &LedgerRecord::restored, &LedgerRecord::lost,
        &LedgerRecord::skipped, &LedgerRecord::mismatches, &LedgerRecord::samples_contributed,
        &LedgerRecord::samples_applied, &LedgerRecord::samples_returned})
    sum.*count += l.*count;
  sum.lost_norm = std::hypot(sum.lost_norm, l.lost_norm);
  sum.decayed_norm = std::hypot(sum.decayed_norm, l.decayed_norm);
  add(sum.ages, l.ages);
  add(sum.skipped_by_node, l.skipped_by_node);
}

void add_ledger(RunSummary& s, const LedgerRecord& l) {
  s.contributed = l.contributed;
  s.applied = l.applied;
  s.returned = l.returned;
  s.dropped = l.dropped;
  s.lost = l.lost;
  s.skipped = l.skipped;
  s.mismatches = l.mismatches;
  s.ages = l.ages;
}

// What the records alone show of a run that has no summary.
RunSummary summary_of(const RunData& run) {
  RunSummary s;
  s.name = name_of(run.folder);
  s.final_loss = s.final_accuracy = s.utilisation = std::numeric_limits<double>::quiet_NaN();
  for (const StepRecord& r : run.steps) {
    s.bytes_sent_slow += r.bytes_sent_slow;
    s.bytes_sent_fast += r.bytes_fast;
  }
  const std::vector<StepRecord> merged = merge_nodes(run.steps);
  if (!merged.empty()) {
    const StepRecord& last = merged.back();
    s.steps = last.step;
    s.samples = last.samples;
    s.seconds = last.seconds;
    s.k_final = last.interval;
    s.rounds = last.rounds;
    const TimeByPart time = time_by_part(run.steps);
    s.utilisation = time.compute / time.total();
  }
  add_ledger(s, ledger_of(run.steps));
  if (!run.evaluations.empty()) {
    s.final_loss = run.evaluations.back().loss;
    s.final_accuracy = run.evaluations.back().accuracy;
  }
  return s;
}

void read_summary(RunData& run) {
  const std::optional<std::string> text = text_of(fs::path(run.folder) / "summary.json");
  if (!text) {
    run.notes.push_back(
        "no summary.json: the run has not finished; its row shows what was recorded");
  } else {
    try {
      run.summary = summary_from_json(Json::parse(*text));
      run.finished = true;
    } catch (const Json::exception& error) {
      run.notes.push_back("summary.json cannot be read (" + std::string(error.what()) +
                          "); the run's row shows what was recorded");
    }
  }
  if (!run.finished) run.summary = summary_of(run);
  run.summary.folder = run.folder;
}

// Its lines without those that may differ between the seeds of one configuration.
std::string without_seed(const std::string& config) {
  std::istringstream lines(config);
  std::string kept, line, section;
  while (std::getline(lines, line)) {
    if (line.starts_with("[")) section = line;
    if (section == "[record]" || (section == "[train]" && line.starts_with("seed ="))) continue;
    kept += line + "\n";
  }
  return kept;
}

bool are_seeds_of_one(const std::vector<RunData*>& runs) {
  std::set<uint64_t> seeds;
  const std::string config = without_seed(runs[0]->config);
  return std::all_of(runs.begin(), runs.end(), [&](const RunData* run) {
    return run->finished && without_seed(run->config) == config &&
           seeds.insert(run->summary.seed).second;
  });
}

std::string unused_name(const std::string& folder, const std::set<std::string>& used) {
  std::string name = name_of(folder);
  if (used.contains(name)) name = folder;
  for (int n = 2; used.contains(name); ++n) name = folder + " #" + std::to_string(n);
  return name;
}

}  // namespace

LedgerRecord ledger_of(const std::vector<StepRecord>& steps) {
  std::map<int, const StepRecord*> last;
  for (const StepRecord& r : steps) last[r.node] = &r;
  LedgerRecord sum;
  for (const auto& [node, r] : last) add(sum, r->ledger);
  return sum;
}

RunData read_run(const std::string& folder) {
  RunData run;
  run.folder = folder;
  if (!fs::is_directory(folder)) throw ConfigError(folder + " is no run: there is no such folder");
  if (!fs::is_regular_file(fs::path(folder) / "metrics.jsonl")) {
    throw ConfigError(folder + " is no run: it holds no metrics.jsonl");
  }
  read_lines(run, "metrics.jsonl",
             [&](const Json& line) { run.steps.push_back(step_from_json(line)); });
  read_lines(run, "evaluations.jsonl",
             [&](const Json& line) { run.evaluations.push_back(evaluation_from_json(line)); });
  read_lines(run, "events.jsonl",
             [&](const Json& line) { run.events.push_back(event_from_json(line)); });
  if (run.steps.empty()) run.notes.push_back("no step is recorded");
  run.config = text_of(fs::path(folder) / "config.toml").value_or("");
  if (run.config.empty()) run.notes.push_back("no config.toml");
  run.environment = text_of(fs::path(folder) / "environment.json").value_or("");
  read_summary(run);
  return run;
}

void tell_apart(std::vector<RunData>& runs) {
  std::map<std::string, std::vector<RunData*>> by_name;
  for (RunData& run : runs) by_name[run.summary.name].push_back(&run);
  const auto belong = [](const std::vector<RunData*>& same) {
    return same.size() == 1 || are_seeds_of_one(same);
  };
  std::set<std::string> used;
  for (const auto& [name, same] : by_name) {
    if (belong(same)) used.insert(name);
  }
  for (const auto& [name, same] : by_name) {
    if (belong(same)) continue;
    for (RunData* run : same) {
      used.insert(run->summary.name = unused_name(run->folder, used));
    }
  }
}

}  // namespace hybridsync
