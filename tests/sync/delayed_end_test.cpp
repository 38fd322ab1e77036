// The end of training where nodes may lag: in runs of every shape, all ranks come to it, hold the
// same numbers, and no sample is missing or counted twice. HYBRIDSYNC_SEEDS=n tries more.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

// One run, drawn from a seed. Nodes stop after different numbers of steps, at different speeds.
struct Shape {
  explicit Shape(uint64_t seed) : random(seed) {
    ranks = 1 + draw(2);
    nodes = 2 + draw(2);
    config = two_tiers(ranks, nodes, Strategy::delayed, 1 + draw(4));
    TierConfig& tier = config.tiers[1];
    tier.staleness = draw(4);
    tier.fragment_bytes = 32 + 32 * draw(3);
    const Late late[] = {Late::fold, Late::return_, Late::drop};
    tier.late = late[tier.staleness > 0 ? draw(3) : 0];
    std::mt19937_64 other(seed + 1000);  // which disturbs nothing else
    tier.adapt = static_cast<Adapt>(other() % 6);
    tier.every_max = 4 * tier.every;
    config.train.steps = 24;
    config.learning_rate.schedule = LrSchedule::cosine;
    for (int n = 0; n < nodes; ++n) {
      steps.push_back(draw(4) == 0 ? draw(3) : 4 + draw(20));
      pause.push_back(std::chrono::microseconds(draw(3) == 0 ? 3000 : 200 * draw(4)));
    }
  }
  int draw(int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); }

  std::mt19937_64 random;
  int ranks = 1, nodes = 2;
  Config config;
  std::vector<int> steps;
  std::vector<std::chrono::microseconds> pause;
};

struct End {
  std::vector<float> theta;
  int64_t samples = 0;
  LedgerRecord ledger;
};

// Empty: as it should be.
std::string wrong_in(const Shape& shape, const std::vector<End>& ends) {
  int64_t trained = 0, dropped = 0;
  for (int node = 0; node < shape.nodes; ++node) {
    const LedgerRecord& l = ends[static_cast<size_t>(node * shape.ranks)].ledger;
    trained += 8 * shape.ranks * shape.steps[static_cast<size_t>(node)];
    dropped += l.dropped;
    if (l.contributed != l.applied + l.returned + l.dropped) return "an account is not balanced";
    if (l.mismatches > 0) return "hashes differed";
  }
  for (const End& end : ends) {
    if (end.theta != ends[0].theta) return "ranks end with different numbers";
    if (end.samples != ends[0].samples) return "ranks count different samples";
  }
  if (dropped == 0 && ends[0].samples != trained)
    return std::to_string(ends[0].samples) + " samples instead of " + std::to_string(trained);
  return "";
}

std::string run(uint64_t seed) {
  const Shape shape(seed);
  std::vector<End> ends(static_cast<size_t>(shape.config.ranks()));
  const auto errors = run_world(shape.config, [&](const Environment& e) {
    TestRank rank(shape.config, e, 40, {});
    End& end = ends[static_cast<size_t>(e.rank)];
    rank.on_record = [&](const StepRecord& r) { end.ledger = r.ledger; };
    const auto node = static_cast<size_t>(e.node);
    for (int step = 0; step < shape.steps[node]; ++step) {
      std::this_thread::sleep_for(shape.pause[node]);
      (void)rank.step(0.01f * static_cast<float>(1 + e.node), 8);
    }
    rank.finish();
    end.theta = rank.replica.theta;
    end.samples = rank.sync.samples();
  });
  for (const std::string& error : errors)
    if (!error.empty()) return error;
  return wrong_in(shape, ends);
}

TEST(DelayedEnd, EveryRunComesToItWithEverySampleOnce) {
  const char* more = std::getenv("HYBRIDSYNC_SEEDS");
  const uint64_t seeds = more ? std::strtoull(more, nullptr, 10) : 60;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    // A run that hangs is ended by the test's limit: this says which one.
    std::cerr << "seed " << seed << "\r";
    EXPECT_EQ(run(seed), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hybridsync
