#include "hybridsync/launch/bench.h"

#include <filesystem>
#include <set>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/launch/run_folder.h"
#include "hybridsync/launch/train_command.h"
#include "hybridsync/observe/report.h"
#include "hybridsync/observe/run_data.h"

namespace hybridsync {
namespace {

std::string name_of(const std::string& config) {
  return std::filesystem::path(config).stem().string();
}

std::vector<Config> load_all(const BenchOptions& options) {
  std::vector<Config> configs;
  std::set<std::string> names;
  for (const std::string& path : options.configs) {
    configs.push_back(load(path, options.sets));
    if (!names.insert(name_of(path)).second)
      throw ConfigError("two configurations are called '" + name_of(path) +
                        "': their runs could not be told apart; rename one");
  }
  return configs;
}

struct Run {
  TrainCommand command;
  LaunchOptions options;
};

Run run_of(const BenchOptions& bench, const std::string& path, const Config& config,
           uint64_t seed) {
  Run run;
  run.command = {path, bench.sets, false, true};
  run.command.sets.push_back("train.seed=" + std::to_string(seed));
  run.options.argv = rank_argv(run.command);
  run.options.world_size = config.ranks();
  run.options.ranks_per_node = config.ranks_per_node();
  run.options.run_folder = bench.output + "/" + name_of(path) + "-seed" + std::to_string(seed);
  run.options.output_fd = bench.quiet ? 2 : 1;
  return run;
}

}  // namespace

int64_t total_samples(const Config& config) {
  return config.train.steps * config.accumulate.steps * config.train.micro_batch * config.ranks();
}

void check_equal_samples(const std::vector<Config>& configs) {
  for (const Config& config : configs) {
    const int64_t first = total_samples(configs[0]), here = total_samples(config);
    if (first == here) continue;
    throw ConfigError(config.source + " trains on " + std::to_string(here) + " samples, but " +
                      configs[0].source + " on " + std::to_string(first) +
                      " (steps x accumulate.steps x micro_batch x ranks): make them equal, or "
                      "pass --allow-different-samples");
  }
}

BenchResult bench(BenchOptions options, std::ostream& progress) {
  const std::vector<Config> configs = load_all(options);
  if (!options.allow_different_samples) check_equal_samples(configs);
  const ClaimedFolder output(options.output,
                             options.number_output ? IfTaken::number : IfTaken::refuse);
  options.output = output.path();
  BenchResult result;
  std::vector<std::string> folders;
  const size_t runs = configs.size() * options.seeds;
  for (size_t c = 0; c < configs.size(); ++c) {
    for (int s = 0; s < options.seeds; ++s) {
      const uint64_t seed = configs[c].train.seed + s;
      const Run run = run_of(options, options.configs[c], configs[c], seed);
      progress << "[" << folders.size() + 1 << "/" << runs << "] " << name_of(options.configs[c])
               << ", seed " << seed << std::endl;
      const ClaimedFolder claimed(run.options.run_folder, IfTaken::refuse);
      result.exit_code = launch(run.options);
      if (result.exit_code != kDone) return result;
      folders.push_back(run.options.run_folder);
      result.summaries.push_back(read_run(folders.back()).summary);
    }
  }
  result.report = options.output + "/report.html";
  write_report(folders, result.report);
  return result;
}

}  // namespace hybridsync
