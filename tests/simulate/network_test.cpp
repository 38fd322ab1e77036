#include "hybridsync/simulate/network.h"

#include <gtest/gtest.h>

#include "hybridsync/simulate/virtual_clock.h"

namespace hybridsync {
namespace {

constexpr Channel kControl = Channel::control, kBulk = Channel::bulk;

Network network(Link link, int nodes = 3) { return Network(nodes, link, Random(1)); }

TEST(Network, DelayAndJitterBoundTheArrival) {
  Network n = network({.delay = 1000, .jitter = 200});
  Micros earliest = 1 << 30, latest = 0;
  for (Micros at = 0; at < 1'000'000; at += 5000) {
    const Micros taken = n.send(0, 1, kControl, 10, at).at - at;
    earliest = std::min(earliest, taken);
    latest = std::max(latest, taken);
  }
  EXPECT_GE(earliest, 1000);
  EXPECT_LE(latest, 1200);
  EXPECT_LT(earliest, latest);
}

TEST(Network, OneChannelKeepsItsOrderAndTwoDoNot) {
  Network n = network({.delay = 1000, .jitter = 900, .straggling = 0.2});
  Micros before[2] = {0, 0};
  bool overtaken = false;
  for (Micros at = 0; at < 200'000; at += 100) {
    const Micros control = n.send(0, 1, kControl, 10, at).at;
    const Micros bulk = n.send(0, 1, kBulk, 10, at).at;
    EXPECT_GE(control, before[0]);
    EXPECT_GE(bulk, before[1]);
    overtaken = overtaken || before[1] > control;
    before[0] = control;
    before[1] = bulk;
  }
  EXPECT_TRUE(overtaken);
}

TEST(Network, AnUplinkIsSharedByAllWhoGetSomething) {
  Network n = network({.delay = 0, .bytes_per_second = 1e6});
  EXPECT_EQ(n.send(0, 1, kBulk, 1000, 0).at, 1000 + 1000);  // out of here, and in there
  EXPECT_EQ(n.send(0, 2, kBulk, 1000, 0).at, 2000 + 1000);
  EXPECT_EQ(n.send(1, 2, kBulk, 1000, 0).at, 4000);  // the way in is taken until 3000
  EXPECT_EQ(n.send(0, 1, kControl, 0, 0).at, 0);     // a heartbeat does not wait behind that
}

TEST(Network, ACutLosesWhatIsOnItsWayAndWhatIsSent) {
  Network n = network({.delay = 1000});
  const auto before = n.send(0, 1, kControl, 1, 0);
  const auto elsewhere = n.send(0, 2, kControl, 1, 0);
  n.cut(1, 0);
  EXPECT_FALSE(n.arrives(0, 1, before));
  EXPECT_TRUE(n.arrives(0, 2, elsewhere));
  EXPECT_TRUE(n.send(0, 1, kControl, 1, 10).lost);
  EXPECT_TRUE(n.send(1, 0, kBulk, 1, 10).lost);
  n.cut(0, 1);
  n.heal(0, 1);
  EXPECT_TRUE(n.is_cut(0, 1)) << "two cuts need two ends";
  n.heal(0, 1);
  EXPECT_TRUE(n.arrives(0, 1, n.send(0, 1, kControl, 1, 20)));
  EXPECT_FALSE(n.arrives(0, 1, before));
}

TEST(Network, WhatWasSentToADeadProcessIsLostAndWhatItSentIsNot) {
  Network n = network({.delay = 1000});
  const auto to = n.send(0, 1, kControl, 1, 0);
  const auto from = n.send(1, 0, kControl, 1, 0);
  n.lose_to(1);
  EXPECT_FALSE(n.arrives(0, 1, to));
  EXPECT_TRUE(n.arrives(1, 0, from));
  EXPECT_EQ(n.quiet_after(1, 0, 0), from.at);
  n.lose_from(1);
  EXPECT_FALSE(n.arrives(1, 0, from));
}

TEST(VirtualClock, GainsAndLoses) {
  VirtualClock clock(500, 1000);
  EXPECT_EQ(clock.shows(0), 500);
  EXPECT_EQ(clock.shows(1'000'000), 500 + 1'001'000);
  clock.set_rate(-500, 2'000'000);
  EXPECT_EQ(clock.shows(2'000'000), 500 + 2'002'000);
  EXPECT_EQ(clock.shows(3'000'000), 500 + 2'002'000 + 999'500);
}

TEST(VirtualClock, TheMomentOfATimeIsTheFirstThatShowsIt) {
  for (int64_t parts : {-1000, -1, 0, 1, 999, 100'000}) {
    const VirtualClock clock(123, parts);
    for (Micros moment = 1; moment < 3'000'000; moment += 98'765) {
      const Micros shown = clock.shows(moment), when = clock.when(shown, 0);
      EXPECT_EQ(clock.shows(when), shown);
      EXPECT_LT(clock.shows(when - 1), shown);
    }
    EXPECT_EQ(clock.when(0, 777), 777) << "not before now";
  }
}

}  // namespace
}  // namespace hybridsync
