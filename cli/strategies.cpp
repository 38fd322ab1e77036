// hybridsync strategies: what there is between nodes, and what it costs.
#include "hybridsync/launch/strategies.h"

#include <iostream>
#include <memory>

#include "cli/verbs.h"

namespace hybridsync {

void add_strategies(CLI::App& app, int& exit_code) {
  struct Options {
    double parameters = 1e6;
    int nodes = 4;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "strategies", "list the strategies between nodes: formula, bytes per round, state");
  verb->footer("Example: hybridsync strategies --parameters 1e8 --nodes 8");
  verb->add_option("--parameters", options->parameters, "of the model")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e15));
  verb->add_option("--nodes", options->nodes, "that exchange")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  verb->add_flag("--json", options->json, "print one JSON array");
  verb->callback([options, &exit_code] {
    if (options->json)
      std::cout << strategies_json(options->parameters, options->nodes).dump() << "\n";
    else
      std::cout << strategies_text(options->parameters, options->nodes);
    exit_code = 0;
  });
}

}  // namespace hybridsync
