// hybridsync bench: configurations side by side.
#include "hybridsync/launch/bench.h"

#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/torch/run_log.h"

namespace hybridsync {
namespace {

int run_bench(BenchOptions options) {
  Config unnamed;
  unnamed.source = "bench";
  options.number_output = options.output.empty();
  if (options.number_output) options.output = run_folder(unnamed, Environment{});
  const BenchResult result = bench(options, options.quiet ? std::cerr : std::cout);
  if (result.exit_code != kDone) return result.exit_code;
  if (options.quiet) {
    Json all = Json::array();
    for (const RunSummary& summary : result.summaries) {
      all.push_back(to_json(summary));
      all.back().erase("folder");
    }
    std::cout << dump(all, 2) << std::endl;
    return kDone;
  }
  std::cout << "\n"
            << to_text(summary_table(result.summaries)) << "\n"
            << result.report << std::endl;
  return kDone;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = app.add_subcommand("bench", "train configurations side by side and compare");
  verb->footer("Example: hybridsync bench sync.toml hybrid.toml --seeds 3");
  verb->add_option("configs", options->configs, "configurations (TOML); the first is compared with")
      ->required();
  verb->add_option("--seeds", options->seeds, "runs of each configuration")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--set", options->sets, "override in all: KEY=VALUE, as often as needed")
      ->allow_extra_args(false);
  verb->add_option("--output", options->output, "new folder for the runs and the report");
  verb->add_flag("--json", options->quiet, "an array with one object per run on standard output");
  verb->add_flag("--allow-different-samples", options->allow_different_samples,
                 "compare although the configurations train on different numbers of samples");
  verb->callback([options, &exit_code] { exit_code = run_bench(*options); });
}

}  // namespace hybridsync
