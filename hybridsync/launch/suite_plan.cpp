#include "hybridsync/launch/suite_plan.h"

#include <cctype>
#include <cstdio>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/decide/digest.h"
#include "hybridsync/launch/suite_compression.h"

namespace hybridsync {
namespace {

constexpr uint64_t kStartSeeds = 1000;

// For a folder's name: "int4 K=8" gives "int4-K8".
std::string slug(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
    if (plain)
      text += c;
    else if (c != '=' && c != ',' && !text.empty() && text.back() != '-')
      text += '-';
  }
  return text;
}

std::string hash_of(const Config& config, const std::string& start) {
  Config plain = config;
  plain.record = {};
  Digest digest;
  for (const char c : to_toml(plain) + start) digest.add(c);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(digest.value()));
  return text;
}

class Planner {
 public:
  Planner(const Suite& suite, const PlanOptions& options) : suite_(suite), options_(options) {}

  std::vector<PlannedRun> all() {
    for (int seed = 1; seed <= options_.seeds; ++seed) {
      for (size_t p = 0; p < suite_.parts.size(); ++p) add_part(p, static_cast<uint64_t>(seed));
    }
    return runs_;
  }

 private:
  void add_part(size_t p, uint64_t seed) {
    const SuitePart& part = suite_.parts[p];
    add(p, -1, 0, seed, part.start_sets, "");
    const std::string start = runs_.back().name;
    for (size_t r = 0; r < part.rows.size(); ++r) {
      if (part.rows[r].full && !options_.full) continue;
      std::vector<std::string> sets = part.sets;
      sets.insert(sets.end(), part.rows[r].sets.begin(), part.rows[r].sets.end());
      for (const double rate : part.rows[r].rates)
        add(p, static_cast<int>(r), rate, seed, sets, start);
    }
  }

  void add(size_t p, int r, double rate, uint64_t seed, std::vector<std::string> sets,
           const std::string& start) {
    const SuitePart& part = suite_.parts[p];
    PlannedRun run{.part = p, .row = r, .rate = rate, .seed = seed, .start = start};
    if (r >= 0) sets.push_back("train.lr=" + rate_text(rate));
    // Rows must not see the start run's samples once more in the same order.
    sets.push_back("train.seed=" + std::to_string(r < 0 ? kStartSeeds + seed : seed));
    if (options_.steps > 0) {
      sets.push_back("train.steps=" + std::to_string(options_.steps));
      sets.push_back("learning_rate.warmup=0");
    }
    run.sets = std::move(sets);
    run.config = parse(part.toml, config_file(part), run.sets);
    const std::string row = r < 0 ? "start" : part.rows[static_cast<size_t>(r)].name;
    run.key = slug(part.task + "-" + part.name + "-" + row);
    run.name = run.key + (r < 0 ? "" : "-lr" + rate_text(rate)) + "-seed" + std::to_string(seed) +
               "-" + hash_of(run.config, start);
    runs_.push_back(std::move(run));
  }

  const Suite& suite_;
  const PlanOptions& options_;
  std::vector<PlannedRun> runs_;
};

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = {compression_suite()};
  return all;
}

const Suite& find_suite(const std::string& name) {
  std::string names;
  for (const Suite& suite : suites()) {
    if (suite.name == name) return suite;
    names += (names.empty() ? "" : ", ") + suite.name;
  }
  throw ConfigError("--suite " + name + ": there is no such suite; there are: " + names);
}

std::vector<PlannedRun> plan(const Suite& suite, const PlanOptions& options) {
  return Planner(suite, options).all();
}

std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", rate);
  return text;
}

std::string config_file(const SuitePart& part) { return part.task + ".toml"; }

}  // namespace hybridsync
