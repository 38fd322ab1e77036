// hybridsync simulate: runs with the production's code on virtual wires and clocks, by seed.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>

#include "cli/verbs.h"
#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/observe/record_json.h"
#include "hybridsync/simulate/explorer.h"
#include "hybridsync/simulate/replay.h"
#include "hybridsync/simulate/seeds.h"

namespace hybridsync {
namespace {

constexpr size_t kTraceLines = 60;  // of a failure; --trace shows all

struct SimulateOptions {
  RunSource source;
  Seeds seeds;
  uint64_t seed = 0;
  int explore_depth = 0;
  bool trace = false;
  bool json = false;
};

// A number that says nothing but itself: no sign, no other base.
std::string not_a_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  const bool plain = text == "0" || !text.starts_with('0');
  if (error == std::errc() && stop == end && plain) return "";
  return text + ": a seed is a whole number from 0 to 18446744073709551615";
}

void check(const SimulateOptions& options) {
  if (options.trace && options.json)
    throw ConfigError("--trace and --json do not go together: a trace is no object");
  if (options.trace && options.seeds.count > 1)
    throw ConfigError("--trace shows one run: give --seed N instead of --seeds N");
  const auto others = static_cast<uint64_t>(options.seeds.count) - 1;
  if (options.seeds.first > std::numeric_limits<uint64_t>::max() - others)
    throw ConfigError("--first and --seeds go beyond the last seed, 18446744073709551615");
}

std::function<Scenario(uint64_t)> scenarios(const SimulateOptions& options) {
  if (options.source.config.empty()) {
    if (!options.source.faults.empty() || !options.source.sets.empty())
      throw ConfigError("--faults and --set need a configuration: hybridsync simulate CONFIG ...");
    return [](uint64_t seed) { return random_scenario(seed); };
  }
  const Config config = load(options.source.config, options.source.sets);
  if (options.source.faults.empty())
    return [config](uint64_t seed) { return random_scenario(config, seed); };
  const std::vector<Fault> faults = load_faults(options.source.faults, config.nodes());
  return [config, faults](uint64_t seed) { return scripted_scenario(config, faults, seed); };
}

void show_trace(const SimulatedRun& run, int fragment, size_t lines) {
  std::vector<const TraceLine*> shown;
  for (const TraceLine& line : run.trace)
    if (fragment < 0 || line.fragment < 0 || line.fragment == fragment) shown.push_back(&line);
  const size_t from = shown.size() > lines ? shown.size() - lines : 0;
  if (from > 0) std::cout << "  ... " << from << " lines before\n";
  for (size_t i = from; i < shown.size(); ++i) std::cout << "  " << to_text(*shown[i]) << "\n";
}

void show_failure(const SimulatedRun& run, const SimulateOptions& options) {
  std::cout << "seed " << run.seed << ": " << name(run.breach->rule) << ": " << run.breach->text
            << "\n";
  show_trace(run, run.breach->fragment, kTraceLines);
  std::cout << "replay: " << replay_command(options.source, run.seed) << "\n";
}

std::string ages_text(const std::vector<int64_t>& ages) {
  std::string text;
  for (size_t age = 0; age < ages.size(); ++age)
    text += (age ? ", " : "") + std::to_string(age) + ": " + std::to_string(ages[age]);
  return text;
}

std::string by_kind(const std::map<std::string, int64_t>& faults) {
  std::string text;
  for (const auto& [kind, times] : faults)
    text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(times);
  return text.empty() ? "none" : text;
}

void show_faults(const Scenario& scenario, const SimulatedRun& run) {
  std::cout << scenario.to_text() << "\n";
  for (size_t i = 0; i < scenario.faults.size(); ++i) {
    const Fault& fault = scenario.faults[i];
    const bool missed = std::count(run.missed.begin(), run.missed.end(), i) > 0;
    std::cout << "  " << to_text(fault);
    if (missed)
      std::cout << " (did not happen: "
                << (fault.at > run.length ? "the run was over)" : "the node was down)");
    std::cout << "\n";
  }
}

void show(const SeedsResult& result) {
  const Tally& t = result.tally;
  std::printf("%lld runs, %lld events, %lld steps, %lld results, %lld view changes (%lld lossy)\n",
              (long long)t.runs, (long long)t.events, (long long)t.steps, (long long)t.rounds,
              (long long)t.views, (long long)t.lossy);
  std::printf("%.0f seeds/s, %.0f events/s\n", t.runs / result.seconds, t.events / result.seconds);
  std::printf("faults: %s; messages lost: %lld of %lld\n", by_kind(t.faults).c_str(),
              (long long)t.messages_lost, (long long)t.messages);
  if (!t.missed.empty()) std::printf("faults that did not happen: %s\n", by_kind(t.missed).c_str());
  const Oracle::Sums& s = t.samples;
  std::printf(
      "contributions: %lld; samples: %lld trained = %lld applied + %lld dropped + "
      "%lld open or progress + %lld lost with processes + %lld lost with tails\n",
      (long long)s.contributions, (long long)s.trained, (long long)s.applied, (long long)s.dropped,
      (long long)(s.open + s.progress), (long long)s.lost_with_processes,
      (long long)s.lost_with_tails);
  std::printf("ages: %s\n", ages_text(t.ledger.ages).c_str());
  for (const auto& [why, runs] : t.notes)
    std::printf("%lld run%s %s\n", (long long)runs, runs == 1 ? "" : "s", why.c_str());
  std::printf("failures: %lld\n", (long long)result.failures);
}

Json to_json(const SeedsResult& result) {
  const Tally& t = result.tally;
  const Oracle::Sums& s = t.samples;
  Json failed = Json::array();
  for (const SimulatedRun& run : result.failed)
    failed.push_back({{"seed", run.seed},
                      {"rule", std::string(name(run.breach->rule))},
                      {"sentence", run.breach->text}});
  return {{"seeds", t.runs},
          {"events", t.events},
          {"steps", t.steps},
          {"results", t.rounds},
          {"views", t.views},
          {"lossy_views", t.lossy},
          {"faults", t.faults},
          {"faults_missed", t.missed},
          {"messages", t.messages},
          {"messages_lost", t.messages_lost},
          {"contributions", s.contributions},
          {"samples_trained", s.trained},
          {"samples_applied", s.applied},
          {"samples_dropped", s.dropped},
          {"samples_open", s.open + s.progress},
          {"samples_lost_with_processes", s.lost_with_processes},
          {"samples_lost_with_tails", s.lost_with_tails},
          {"ages", t.ledger.ages},
          {"course", result.course},
          {"seconds", result.seconds},
          {"notes", t.notes},
          {"failures", result.failures},
          {"failed", failed}};
}

int run_simulations(const SimulateOptions& options) {
  check(options);
  const auto scenario_of = scenarios(options);
  const SeedsResult result = run_seeds(options.seeds, scenario_of);
  if (options.json) {
    std::cout << dump(to_json(result), 2) << std::endl;
    return result.failures == 0 ? kDone : kFailed;
  }
  if (result.only) {
    const Scenario scenario = scenario_of(options.seeds.first);
    show_faults(scenario, *result.only);
    if (options.trace) show_trace(simulate(scenario, true), -1, SIZE_MAX);
  }
  if (!options.source.faults.empty() && result.tally.faults.empty() && result.tally.missed.empty())
    std::cout << options.source.faults << " holds no fault\n";
  for (const SimulatedRun& run : result.failed) show_failure(run, options);
  std::cout << std::flush;
  show(result);
  return result.failures == 0 ? kDone : kFailed;
}

int run_explorer(int depth) {
  ExploreOptions options;
  options.world.fragments = 2;
  options.depth = depth;
  const ExploreResult result = explore(options);
  std::printf("%zu states, %zu transitions, every state up to depth %d%s\n", result.states,
              result.transitions, result.depth,
              result.exhausted ? ", and there are no others" : "");
  if (!result.found) return kDone;
  for (const std::string& line : result.found->trace) std::printf("  %s\n", line.c_str());
  return kFailed;
}

// Gives back --seed.
CLI::Option* add_options(CLI::App& verb, SimulateOptions& options) {
  auto* config = verb.add_option("config", options.source.config,
                                 "configuration (TOML): nodes, strategy, link, speeds");
  auto* set =
      verb.add_option("--set", options.source.sets, "override: KEY=VALUE, as often as needed")
          ->allow_extra_args(false);
  auto* seed = verb.add_option("--seed", options.seed, "this seed alone")->check(not_a_seed);
  auto* seeds = verb.add_option("--seeds", options.seeds.count, "so many seeds")
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
                    ->excludes(seed);
  auto* first = verb.add_option("--first", options.seeds.first, "the first of --seeds")
                    ->capture_default_str()
                    ->check(not_a_seed)
                    ->excludes(seed);
  auto* threads = verb.add_option("--threads", options.seeds.threads,
                                  "runs at a time; 0: one per core; the results are the same")
                      ->check(CLI::Range(0, 1024));
  auto* faults = verb.add_option("--faults", options.source.faults,
                                 "faults (TOML) instead of those from the seed");
  auto* explore = verb.add_option("--explore", options.explore_depth,
                                  "instead: all interleavings of a small world, up to so many "
                                  "events; goes with no other option")
                      ->check(CLI::Range(1, 1000));
  auto* trace = verb.add_flag("--trace", options.trace, "of one run: everything that happens");
  auto* json = verb.add_flag("--json", options.json, "an object on standard output");
  for (CLI::Option* other : {config, set, seed, seeds, first, threads, faults, trace, json})
    explore->excludes(other);
  return seed;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* verb = app.add_subcommand(
      "simulate", "run the protocol's code on virtual wires and clocks, with faults from a seed");
  verb->footer(
      "Without a configuration everything follows from the seed. After every event all promises "
      "are\n"
      "checked; a failure prints its seed and a trace, and ends with exit code 1.\n"
      "Example: hybridsync simulate --seeds 2000\n"
      "         hybridsync simulate delayed.toml --seed 7 --trace");
  CLI::Option* seed = add_options(*verb, *options);
  verb->callback([options, seed, &exit_code] {
    if (seed->count() > 0) options->seeds.first = options->seed;
    exit_code = options->explore_depth > 0 ? run_explorer(options->explore_depth)
                                           : run_simulations(*options);
  });
}

}  // namespace hybridsync
