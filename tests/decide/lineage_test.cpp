// What a lineage holds, and that its chain tells lineages apart.
#include "hybridsync/decide/lineage.h"

#include <gtest/gtest.h>

#include <functional>

namespace hybridsync {
namespace {

RosterEntry entry(int node, uint64_t sequence, uint64_t settled, uint32_t incarnation = 0) {
  return {node, incarnation, sequence, settled, 0, 1, 1};
}

Result result_on(const Lineage& lineage, std::vector<RosterEntry> roster) {
  Result r;
  r.version = lineage.version + 1;
  r.mode = r.next_mode = Mode::delta;
  r.roster = std::move(roster);
  r.weight = static_cast<double>(r.roster.size());
  r.chain = lineage.chain;
  r.before = lineage.anchor;
  r.after = lineage.anchor + 1;
  r.total_samples = lineage.total_samples + 5;
  r.next_interval = 3;
  return r;
}

TEST(Lineage, FollowsAResult) {
  Lineage l;
  Result r = result_on(l, {entry(0, 1, 1)});
  r.finished = true;
  l.extend(r);
  EXPECT_EQ(l.version, 1);
  EXPECT_EQ(l.chain, next_chain(r));
  EXPECT_EQ(l.anchor, 1u);
  EXPECT_EQ(l.mode, Mode::delta);
  EXPECT_EQ(l.interval, 3);
  EXPECT_EQ(l.total_samples, 5);
  EXPECT_TRUE(l.finished);
}

TEST(Lineage, WhenAllAbstainOrTheModeIsGradientTheAnchorStays) {
  Lineage l;
  l.anchor = 7;
  Result r = result_on(l, {entry(0, 1, 1)});
  r.weight = 0;
  l.extend(r);
  EXPECT_EQ(l.anchor, 7u);
  r = result_on(l, {entry(0, 2, 2)});
  r.mode = Mode::gradient;
  l.extend(r);
  EXPECT_EQ(l.anchor, 7u);
  EXPECT_EQ(l.version, 2);
}

TEST(Lineage, HoldsWhatWasAppliedAndWhatItsSenderHasSettled) {
  Lineage l;
  l.extend(result_on(l, {entry(0, 2, 1), entry(1, 5, 4)}));
  EXPECT_FALSE(l.holds({0, 0}, 1)) << "still open at its sender";
  EXPECT_TRUE(l.holds({0, 0}, 2));
  EXPECT_FALSE(l.holds({0, 0}, 3));
  EXPECT_TRUE(l.holds({1, 0}, 3)) << "settled";
  EXPECT_FALSE(l.holds({1, 0}, 4));
  EXPECT_FALSE(l.holds({2, 0}, 1)) << "never heard of";
  l.extend(result_on(l, {entry(0, 1, 1)}));
  EXPECT_TRUE(l.holds({0, 0}, 1)) << "in any order";
}

TEST(Lineage, RemembersNoMoreThanWhatIsOpenAtTheSender) {
  Lineage l;
  for (uint64_t s = 1; s <= 1000; ++s) {
    l.extend(result_on(l, {entry(0, s, s > 2 ? s - 2 : 1)}));
    ASSERT_LE(l.applied[0].above.size(), 3u);
  }
  EXPECT_EQ(l.applied[0].settled, 998u);
  EXPECT_EQ(l.applied[0].above, (std::vector<uint64_t>{998, 999, 1000}));
}

TEST(Lineage, AnOlderSettledNumberTakesNothingBack) {
  Lineage l;
  l.extend(result_on(l, {entry(0, 9, 9)}));
  l.extend(result_on(l, {entry(0, 8, 3)}));
  EXPECT_EQ(l.applied[0].settled, 9u);
  EXPECT_TRUE(l.holds({0, 0}, 5));
}

TEST(Lineage, ARestartedProcessIsAnotherOne) {
  Lineage l;
  l.extend(result_on(l, {entry(1, 1, 1)}));
  EXPECT_FALSE(l.holds({1, 1}, 1));
  EXPECT_FALSE(l.outdated({1, 0}));
  l.extend(result_on(l, {entry(1, 1, 1, 1)}));
  EXPECT_TRUE(l.holds({1, 1}, 1));
  EXPECT_FALSE(l.holds({1, 0}, 1)) << "one process per node is remembered, the newest";
  EXPECT_TRUE(l.outdated({1, 0}));
  EXPECT_FALSE(l.outdated({1, 1}));
  EXPECT_FALSE(l.outdated({2, 0}));
  EXPECT_EQ(l.applied.size(), 1u);
}

TEST(Lineage, AppliedIsSortedByNodeWhateverTheOrder) {
  Lineage l;
  l.extend(result_on(l, {entry(3, 1, 1)}));
  l.extend(result_on(l, {entry(0, 1, 1), entry(2, 1, 1)}));
  std::vector<int> nodes;
  for (const Applied& a : l.applied) nodes.push_back(a.process.node);
  EXPECT_EQ(nodes, (std::vector<int>{0, 2, 3}));
}

TEST(Lineage, TheChainTellsEveryDifferenceOfTheResultsButNotWhereTheirBytesAre) {
  const Result r = result_on({}, {entry(0, 1, 1)});
  const std::vector<std::function<void(Result&)>> changes = {
      [](Result& x) { ++x.version; },
      [](Result& x) { ++x.epoch; },
      [](Result& x) { x.mode = Mode::gradient; },
      [](Result& x) { ++x.roster[0].sequence; },
      [](Result& x) { ++x.roster[0].incarnation; },
      [](Result& x) { x.roster[0].weight = 2; },
      [](Result& x) { x.roster.clear(); },
      [](Result& x) { ++x.samples; },
      [](Result& x) { ++x.chain; },
      [](Result& x) { ++x.before; },
      [](Result& x) { ++x.after; },
      [](Result& x) { ++x.next_interval; },
      [](Result& x) { x.finished = true; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Result other = r;
    changes[i](other);
    EXPECT_NE(next_chain(other), next_chain(r)) << i;
  }
  Result elsewhere = r;
  elsewhere.values = elsewhere.side = {99};
  EXPECT_EQ(next_chain(elsewhere), next_chain(r));
}

}  // namespace
}  // namespace hybridsync
