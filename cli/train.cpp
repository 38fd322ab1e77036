// hybridsync train: starts all ranks of a configuration, or is one of them.
#include <iostream>
#include <memory>
#include <utility>

#include "cli/verbs.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/config/load.h"
#include "hybridsync/config/value.h"
#include "hybridsync/launch/dry_run.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/launch/run_folder.h"
#include "hybridsync/launch/train_command.h"
#include "hybridsync/torch/model_needs.h"
#include "hybridsync/torch/program.h"
#include "hybridsync/torch/run_log.h"

namespace hybridsync {
namespace {

struct TrainOptions {
  TrainCommand command;
  std::string name;
  bool dry_run = false;
  std::vector<std::string> own_program;
};

int be_a_rank(const TrainCommand& command, const Config& config, const Environment& environment) {
  check(environment, config);
  const RunSummary summary =
      run_training(config, environment, command.json ? std::cerr : std::cout);
  if (environment.rank != 0) return kDone;
  if (command.json)
    std::cout << dump(to_json(summary)) << std::endl;
  else if (!command.brief)
    std::cout << to_text(summary_table({summary})) << run_folder(config, environment) << std::endl;
  return kDone;
}

int start_ranks(const TrainOptions& options, const Config& config) {
  LaunchOptions launching;
  launching.argv = options.own_program.empty() ? rank_argv(options.command) : options.own_program;
  launching.world_size = config.ranks();
  launching.ranks_per_node = config.ranks_per_node();
  const ClaimedFolder claimed(run_folder(config, Environment{}),
                              config.record.name.empty() ? IfTaken::number : IfTaken::refuse);
  launching.run_folder = claimed.path();
  return launch(launching);
}

int show_dry_run(const Config& config, bool json) {
  const std::vector<Figure> figures = outlook(config, model_needs(config));
  if (json)
    std::cout << dump(to_json(figures), 2) << std::endl;
  else
    std::cout << to_toml(config) << "\n" << to_text(figures) << std::flush;
  return kDone;
}

int train(TrainOptions options) {
  if (!options.name.empty())
    options.command.sets.push_back("record.name=" + hybridsync::quoted(options.name));
  const Config config = load(options.command.config, options.command.sets);
  if (options.dry_run) return show_dry_run(config, options.command.json);
  const Environment environment = from_environment();
  const bool one_of_several = environment.world_size > 1 || !environment.run_id.empty();
  if (one_of_several) return be_a_rank(options.command, config, environment);
  return start_ranks(options, config);
}

}  // namespace

void add_train(CLI::App& app, std::vector<std::string> own_program, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  options->own_program = std::move(own_program);
  CLI::App* verb = app.add_subcommand("train", "train; starts all ranks of the configuration");
  verb->footer(
      "With RANK in the environment it is one rank; otherwise it starts them all on this machine.\n"
      "A program of your own after -- runs as the ranks instead of the built-in trainer.\n"
      "Example: hybridsync train hybrid.toml --set train.lr=0.1 --set tier.1.every=8\n"
      "         hybridsync train hybrid.toml -- ./my_program --its-own argument");
  verb->add_option("config", options->command.config, "configuration (TOML)")->required();
  verb->add_option("--set", options->command.sets, "override: KEY=VALUE, as often as needed")
      ->allow_extra_args(false);
  verb->add_option("--name", options->name, "name of the run's folder");
  verb->add_flag("--dry-run", options->dry_run,
                 "only show the resolved configuration, memory, traffic and time-outs");
  verb->add_flag("--json", options->command.json, "the result as JSON on standard output");
  verb->add_flag("--brief", options->command.brief)->group("");
  verb->callback([options, &exit_code] { exit_code = train(*options); });
}

}  // namespace hybridsync
