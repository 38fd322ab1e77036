// Every node measures the round trip to the others and leaves when nobody needs it any more.
#include "hybridsync/sync/round_trip.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "hybridsync/wire/memory_exchange.h"

namespace hybridsync {
namespace {

constexpr auto kLong = std::chrono::seconds(60);  // only against hanging

struct Measured {
  Outcome outcome;
  Micros round_trip = -1;
};

// Nodes that are not `absent` measure, each in a thread of its own.
std::vector<Measured> measure(
    int nodes, std::chrono::milliseconds limit,
    const std::function<bool(int)>& absent = [](int) { return false; },
    const std::function<void(MemoryHub&)>& meanwhile = nullptr) {
  MemoryHub hub(nodes);
  std::vector<std::unique_ptr<Exchange>> ends;
  for (int node = 0; node < nodes; ++node) ends.push_back(hub.join(node));
  std::vector<Measured> all(static_cast<size_t>(nodes));
  std::vector<std::thread> threads;
  for (int node = 0; node < nodes; ++node) {
    if (absent(node)) continue;
    threads.emplace_back([&, node] {
      const auto n = static_cast<size_t>(node);
      Patience patience;
      patience.limit = limit;
      all[n].outcome = measure_round_trip(*ends[n], patience, all[n].round_trip);
      // Nothing of the measurement is left for what comes next.
      if (all[n].outcome.ok() && ends[n]->poll(Clock::now())) all[n].round_trip = -2;
    });
  }
  if (meanwhile) meanwhile(hub);
  for (std::thread& t : threads) t.join();
  return all;
}

TEST(RoundTrip, EveryNodeGetsOne) {
  for (const int nodes : {2, 5}) {
    for (const Measured& m : measure(nodes, kLong)) {
      EXPECT_TRUE(m.outcome.ok()) << m.outcome.why;
      EXPECT_GE(m.round_trip, 0);
    }
  }
}

TEST(RoundTrip, ANodeAloneHasNone) {
  const auto alone = measure(1, kLong);
  EXPECT_TRUE(alone[0].outcome.ok());
  EXPECT_EQ(alone[0].round_trip, 0);
}

TEST(RoundTrip, WhoDoesNotAnswerIsNamed) {
  const auto all = measure(3, std::chrono::milliseconds(200), [](int node) { return node == 1; });
  for (const int node : {0, 2}) {
    EXPECT_EQ(all[node].outcome.kind, Outcome::Kind::timed_out);
    EXPECT_EQ(all[node].outcome.why, "node 1 did not answer: measuring the round trip");
  }
}

TEST(RoundTrip, ALostNodeIsNamed) {
  const auto all = measure(
      2, kLong, [](int node) { return node == 1; },
      [](MemoryHub& hub) { hub.lose(1, "its process died"); });
  EXPECT_EQ(all[0].outcome.kind, Outcome::Kind::peer_lost);
  EXPECT_EQ(all[0].outcome.peer, 1);
  EXPECT_EQ(all[0].outcome.why, "node 1 is gone (its process died): measuring the round trip");
}

}  // namespace
}  // namespace hybridsync
