// Owner and member as machines: every order of arrival, duplicates, disagreements, and the path
// from the synchronous start to a delta strategy.
#include <gtest/gtest.h>

#include <algorithm>

#include "hybridsync/decide/member.h"
#include "hybridsync/decide/owner.h"

namespace hybridsync {
namespace {

const Schedule kPeriodic{Strategy::periodic, 0, 4};
const Schedule kStartThenPeriodic{Strategy::periodic, 2, 4};
constexpr uint64_t kAnchor = 77;

Contribution draft(double weight, bool finished = false) {
  Contribution c;
  c.weight = weight;
  c.samples = static_cast<int64_t>(weight);
  c.loss_sum = 2 * weight;
  c.loss_weight = weight;
  c.anchor_hash = kAnchor;
  c.finished = finished;
  if (weight > 0) c.values = {static_cast<uint64_t>(weight)};
  return c;
}

// One fragment between `n` members.
struct World {
  World(int n, Schedule schedule) : owner(0, n, schedule) {
    for (int i = 0; i < n; ++i) members.emplace_back(0, i, schedule);
  }
  Owner owner;
  std::vector<Member> members;
};

TEST(Round, ClosesWhenEverybodyIsThereInAnyOrderWithTheSameResult) {
  std::vector<int> order{0, 1, 2};
  std::optional<Result> first;
  do {
    World w(3, kPeriodic);
    std::optional<Close> closed;
    for (int i : order) {
      EXPECT_FALSE(closed);
      const OwnerAction action = w.owner.on(w.members[i].contribute(draft(i + 1)));
      if (const auto* c = std::get_if<Close>(&action)) closed = *c;
    }
    ASSERT_TRUE(closed);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(closed->contributions[i].node, i);
    const Result result = w.owner.publish(*closed, 5, {9}, {});
    EXPECT_EQ(result.weight, 6);
    EXPECT_EQ(result.version, 1);
    if (!first) first = result;
    EXPECT_EQ(result, *first);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Round, WaitsForTheMissingAndSaysWhom) {
  World w(3, kPeriodic);
  const OwnerAction action = w.owner.on(w.members[1].contribute(draft(1)));
  const auto* wait = std::get_if<WaitFor>(&action);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->missing, (std::vector<int>{0, 2}));
}

TEST(Round, ADuplicateChangesNothing) {
  World w(2, kPeriodic);
  const Contribution c = w.members[0].contribute(draft(1));
  (void)w.owner.on(c);
  const Owner before = w.owner;
  EXPECT_TRUE(std::holds_alternative<WaitFor>(w.owner.on(c)));
  EXPECT_EQ(w.owner, before);
}

TEST(Round, AContributionToAClosedRoundIsNotTakenAgain) {
  World w(1, kPeriodic);
  const Contribution c = w.members[0].contribute(draft(1));
  const OwnerAction action = w.owner.on(c);
  (void)w.owner.publish(std::get<Close>(action), 5, {}, {});
  EXPECT_TRUE(std::holds_alternative<WaitFor>(w.owner.on(c)));
  EXPECT_EQ(w.owner.missing(), (std::vector<int>{0}));
}

TEST(Round, OtherParametersAreADisagreementThatNamesBothNodes) {
  World w(2, kPeriodic);
  (void)w.owner.on(w.members[0].contribute(draft(1)));
  Contribution other = draft(1);
  other.anchor_hash = kAnchor + 1;
  const OwnerAction action = w.owner.on(w.members[1].contribute(other));
  const auto* d = std::get_if<Disagree>(&action);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->node, 1);
  EXPECT_NE(d->why.find("other parameters than node 0"), std::string::npos) << d->why;
}

TEST(Round, AnotherVersionIsADisagreement) {
  World w(2, kPeriodic);
  Contribution c = w.members[0].contribute(draft(1));
  c.base = 3;
  EXPECT_TRUE(std::holds_alternative<Disagree>(w.owner.on(c)));
}

TEST(Round, WhenAllAbstainOnlyTheVersionAdvances) {
  World w(2, kPeriodic);
  (void)w.owner.on(w.members[0].contribute(draft(0)));
  const OwnerAction action = w.owner.on(w.members[1].contribute(draft(0)));
  const Result r = w.owner.publish(std::get<Close>(action), 0, {}, {});
  EXPECT_EQ(r.weight, 0);
  EXPECT_EQ(r.version, 1);
  EXPECT_FALSE(r.values);
}

TEST(Round, TheRunIsFinishedWhenEveryMemberIs) {
  for (bool second : {false, true}) {
    World w(2, kPeriodic);
    (void)w.owner.on(w.members[0].contribute(draft(1, true)));
    const OwnerAction action = w.owner.on(w.members[1].contribute(draft(1, second)));
    EXPECT_EQ(w.owner.publish(std::get<Close>(action), 5, {}, {}).finished, second);
  }
}

Result round(World& w) {
  OwnerAction action = WaitFor{};
  for (Member& m : w.members) action = w.owner.on(m.contribute(draft(1)));
  return w.owner.publish(std::get<Close>(action), kAnchor, {}, {});
}

TEST(Member, AppliesOnceAndFollowsTheDirectives) {
  World w(1, kStartThenPeriodic);
  Member& m = w.members[0];
  EXPECT_EQ(m.mode(), Mode::gradient);
  EXPECT_TRUE(m.due(1));
  for (int v = 1; v <= 2; ++v) {
    const Result r = round(w);
    ASSERT_TRUE(std::holds_alternative<Apply>(m.on(r)));
    EXPECT_FALSE(m.applied(r, kAnchor));
    EXPECT_TRUE(std::holds_alternative<Ignore>(m.on(r)));
  }
  EXPECT_EQ(m.version(), 2);
  EXPECT_EQ(m.mode(), Mode::delta);
  EXPECT_FALSE(m.due(3));
  EXPECT_TRUE(m.due(4));
}

TEST(Member, AnotherHashIsReported) {
  World w(1, kPeriodic);
  const Result r = round(w);
  const auto diverged = w.members[0].applied(r, kAnchor + 1);
  ASSERT_TRUE(diverged);
  EXPECT_NE(diverged->why.find("fragment 0, version 1"), std::string::npos) << diverged->why;
}

TEST(Member, RefusesAResultOnOtherParametersOrWithoutItsContribution) {
  World w(1, kPeriodic);
  Result r = round(w);
  Result other = r;
  other.before = kAnchor + 1;
  EXPECT_TRUE(std::holds_alternative<Diverged>(w.members[0].on(other)));
  other = r;
  other.roster[0].sequence += 1;
  EXPECT_TRUE(std::holds_alternative<Diverged>(w.members[0].on(other)));
  other = r;
  other.version = 3;
  EXPECT_TRUE(std::holds_alternative<Diverged>(w.members[0].on(other)));
}

TEST(Machines, AreValues) {
  World a(2, kPeriodic);
  (void)a.owner.on(a.members[0].contribute(draft(1)));
  World b = a;
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.members[0], b.members[0]);
  (void)b.owner.on(b.members[1].contribute(draft(1)));
  EXPECT_NE(a.owner, b.owner);
}

}  // namespace
}  // namespace hybridsync
