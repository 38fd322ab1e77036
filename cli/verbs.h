// The verbs of the command line, one function and file each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hybridsync {

// Each adds its verb to the program. After parsing, the verb that was given leaves the program's
// exit code in `exit_code`. Errors leave as exceptions. `own_program`: what stood after "--".
void add_train(CLI::App& app, std::vector<std::string> own_program, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_strategies(CLI::App& app, int& exit_code);

}  // namespace hybridsync
