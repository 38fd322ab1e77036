// What the node's agreement on rounds costs a step in which no round ends: ranks as threads, a
// model of a few numbers, so that nothing else takes time.
//
//   agreement [--ranks 2] [--steps 2000] [--fragments 16]
//
// Columns: microseconds of one close() of a window, median over blocks that take turns. `no tier`
// has nothing between nodes; `periodic` has rounds that make training wait, every 1,000,000 steps;
// `delayed` says in every step which fragments have news (none) and whether it will have to wait.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/sync/vector_replica.h"

namespace {

using namespace hybridsync;

std::map<std::string, int> settings{{"--ranks", 2}, {"--steps", 2000}, {"--fragments", 16}};

Config config_of(const std::string& kind) {
  Config config = two_tiers(settings["--ranks"], 1, Strategy::periodic, 1'000'000);
  if (kind == "no tier") config.tiers.pop_back();
  if (kind == "delayed") {
    config.tiers[1].strategy = Strategy::delayed;
    config.tiers[1].staleness = 2;
  }
  if (config.tiers.size() > 1) config.tiers[1].fragment_bytes = 64;
  return config;
}

double microseconds(const std::string& kind) {
  double took = 0;
  run_all(config_of(kind), [&](const Environment& e) {
    TestRank rank(config_of(kind), e, 16 * static_cast<size_t>(settings["--fragments"]), {});
    for (int i = 0; i < 50; ++i) (void)rank.step(0, 1);
    const auto start = Clock::now();
    for (int i = 0; i < settings["--steps"]; ++i) (void)rank.step(0, 1);
    if (e.rank == 0) took = 1e6 * seconds_since(start) / settings["--steps"];
    rank.finish();
  });
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!settings.contains(argv[i])) return std::fprintf(stderr, "unknown: %s\n", argv[i]), 2;
    settings[argv[i]] = std::atoi(argv[i + 1]);
  }
  constexpr int kBlocks = 9;
  const std::vector<std::string> kinds{"no tier", "periodic", "delayed"};
  std::map<std::string, std::vector<double>> blocks;
  for (int block = 0; block < kBlocks; ++block)
    for (const std::string& kind : kinds) blocks[kind].push_back(microseconds(kind));
  const auto median = [&](const std::string& kind) {
    auto& all = blocks[kind];
    std::nth_element(all.begin(), all.begin() + kBlocks / 2, all.end());
    return all[kBlocks / 2];
  };
  std::printf("%d ranks, %d fragments\n", settings["--ranks"], settings["--fragments"]);
  for (const std::string& kind : kinds)
    std::printf("%-9s %8.1f us per step  %+7.1f us against no tier\n", kind.c_str(), median(kind),
                median(kind) - median("no tier"));
}
