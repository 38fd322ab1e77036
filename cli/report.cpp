// hybridsync report: one HTML file of several runs.
#include "hybridsync/observe/report.h"

#include <iostream>
#include <memory>

#include "cli/verbs.h"

namespace hybridsync {

void add_report(CLI::App& app, int& exit_code) {
  struct Options {
    std::vector<std::string> runs;
    std::string output = "report.html";
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("report", "write one self-contained HTML file of several runs");
  verb->footer("Example: hybridsync report runs/sync runs/hybrid -o report.html");
  verb->add_option("runs", options->runs, "folders of runs; the first is compared with")
      ->required();
  verb->add_option("-o,--output", options->output, "the file")->capture_default_str();
  verb->callback([options, &exit_code] {
    write_report(options->runs, options->output);
    std::cout << options->output << std::endl;
    exit_code = 0;
  });
}

}  // namespace hybridsync
