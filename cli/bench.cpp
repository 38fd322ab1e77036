// hybridsync bench: configurations side by side, or one of the suites.
#include "hybridsync/launch/bench.h"

#include <stdio.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/launch/suite.h"
#include "hybridsync/launch/train_command.h"
#include "hybridsync/torch/run_log.h"

namespace hybridsync {
namespace {

constexpr int kSuiteSeeds = 3;

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

// Of the tree in which the program lies; empty where there is none, or no git.
std::string commit_of_program() {
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  const std::string command =
      "cd \"$(dirname \"$(readlink " + self + ")\")\" && git describe --always --dirty 2>/dev/null";
  std::string text;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    for (int c = fgetc(pipe); c != EOF && c != '\n'; c = fgetc(pipe)) text += static_cast<char>(c);
    pclose(pipe);
  }
  return text;
}

std::string as_typed(const CLI::App& verb) {
  std::string text = "hybridsync " + verb.get_name();
  for (const CLI::Option* option : verb.parse_order()) {
    text += " " + option->get_name(false, true);
    if (option->get_items_expected() > 0) text += " " + shell_word(option->as<std::string>());
  }
  return text;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  auto suite = std::make_shared<SuiteOptions>();
  CLI::App* verb = app.add_subcommand(
      "bench", "train configurations side by side and compare, or run a suite of trainings");
  verb->footer(
      "Example: hybridsync bench sync.toml hybrid.toml --seeds 3\n"
      "         hybridsync bench --suite compression");
  auto* configs = verb->add_option("configs", options->configs,
                                   "configurations (TOML); the first is compared with");
  auto* seeds = verb->add_option("--seeds", options->seeds, "runs of each configuration, or row")
                    ->check(CLI::Range(1, 1000));
  auto* set =
      verb->add_option("--set", options->sets, "override in all: KEY=VALUE, as often as needed")
          ->allow_extra_args(false);
  verb->add_option("--output", options->output, "folder for the runs and the report");
  auto* json = verb->add_flag("--json", options->quiet,
                              "an array with one object per run on standard output");
  auto* different =
      verb->add_flag("--allow-different-samples", options->allow_different_samples,
                     "compare although the configurations train on different numbers of samples");
  auto* name = verb->add_option("--suite", suite->suite, "instead of configurations: compression")
                   ->excludes(configs, set, json, different);
  const auto of_suite = [&](CLI::Option* option) { return option->needs(name); };
  of_suite(
      verb->add_option("--only", suite->only, "runs of the suite: a pattern such as '*int4*'"));
  of_suite(verb->add_flag("--full", suite->plan.full, "the suite with its rarer rows"));
  of_suite(verb->add_option("--jobs", suite->jobs, "runs of the suite side by side"))
      ->check(CLI::Range(1, 1000));
  of_suite(verb->add_flag("--dry-run", suite->dry_run, "only list the suite's runs"));
  of_suite(verb->add_option("--commit", suite->commit, "for the results, of this program"));
  of_suite(verb->add_option("--steps", suite->plan.steps,
                            "of each run of the suite instead of its own: to try it"));
  verb->callback([=, &exit_code] {
    if (name->count() == 0) {
      if (configs->count() == 0) throw CLI::RequiredError("configs or --suite");
      exit_code = run_bench(*options);
      return;
    }
    suite->output = options->output;
    suite->plan.seeds = seeds->count() > 0 ? options->seeds : kSuiteSeeds;
    suite->command = as_typed(*verb);
    if (suite->commit.empty()) suite->commit = commit_of_program();
    exit_code = run_suite(*suite, std::cout);
  });
}

}  // namespace hybridsync
