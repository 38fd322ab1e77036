// hybridsync: hybrid synchronisation for distributed training, as a program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <string_view>

#include "cli/verbs.h"
#include "hybridsync/config/error.h"
#include "hybridsync/launch/launcher.h"

namespace {

// In one write, so that messages of several ranks do not mix.
int fail(int code, const std::string& message) {
  std::cout.flush();
  std::cerr << "hybridsync: " + message + "\n" << std::flush;
  return code;
}

// What was printed must have arrived: a full disk or a closed output is a failure.
int flushed(int code) {
  std::cout.flush();
  if (std::cout || code != hybridsync::kDone) return code;
  return fail(hybridsync::kFailed, "standard output: cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hybridsync;
  CLI::App app{
      "Trains with hybrid synchronisation: synchronous where the link is fast, a compromise "
      "where it is slow.\nExit codes: 0 done, 1 failed, 2 usage or configuration, 3 interrupted.",
      "hybridsync"};
  app.set_version_flag("--version", "hybridsync " HYBRIDSYNC_VERSION);
  app.require_subcommand(1);
  int exit_code = kDone;
  char** dashes = std::find(argv, argv + argc, std::string_view("--"));
  char** own_program = std::min(dashes + 1, argv + argc);
  add_train(app, {own_program, argv + argc}, exit_code);
  add_bench(app, exit_code);
  add_report(app, exit_code);
  add_simulate(app, exit_code);
  add_strategies(app, exit_code);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    return flushed(exit_code);
  } catch (const CLI::ParseError& e) {
    return flushed(app.exit(e) == 0 ? kDone : kUsage);
  } catch (const ConfigError& e) {
    return fail(kUsage, e.what());
  } catch (const Interrupted& e) {
    return fail(kInterrupted, e.what());
  } catch (const std::exception& e) {
    return fail(kFailed, e.what());
  }
}
