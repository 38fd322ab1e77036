// A node's side of a fragment: which contributions are open, what it keeps and for how long, and
// what a lineage that it takes over does to them.
#include "hybridsync/decide/member.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

constexpr Process kSelf{1, 0};
const Schedule kPeriodic{Strategy::periodic, 0, 4};
const Schedule kStartThenPeriodic{Strategy::periodic, 2, 4};

Policy stale(int staleness) {
  Policy policy;
  policy.staleness = staleness;
  return policy;
}

Contribution draft(Version at, Version base) {
  Contribution c;
  c.at = at;
  c.base = base;
  c.weight = 1;
  c.anchor_hash = 77;
  c.values = {5};
  return c;
}
Contribution draft(Version at) { return draft(at, at); }

// On top of where the member is, with these contributions of it.
Result next(const Member& m, std::vector<uint64_t> own, Version stable = 0) {
  const Lineage& l = m.lineage();
  Result r;
  r.version = l.version + 1;
  r.mode = r.next_mode = Mode::delta;
  r.next_interval = 4;
  r.roster = {{0, 0, static_cast<uint64_t>(r.version), static_cast<uint64_t>(r.version), 0, 1, 1}};
  for (uint64_t s : own) r.roster.push_back({kSelf.node, kSelf.incarnation, s, s, 0, 1, 1});
  r.weight = 1;
  r.chain = l.chain;
  r.before = l.anchor;
  r.after = 100 + static_cast<uint64_t>(r.version);
  r.stable = stable;
  r.values = {9};
  return r;
}

std::vector<uint64_t> sequences(const std::vector<Contribution>& all) {
  std::vector<uint64_t> s;
  for (const Contribution& c : all) s.push_back(c.sequence);
  return s;
}

using Sequences = std::vector<uint64_t>;

TEST(Member, CompletesADraft) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.extend(next(m, {}), true);
  const Contribution c = m.contribute(draft(1, 0));
  EXPECT_EQ(c.node, 1);
  EXPECT_EQ(c.incarnation, 0u);
  EXPECT_EQ(c.sequence, 1u);
  EXPECT_EQ(c.settled, 1u);
  EXPECT_EQ(c.has, 1);
  EXPECT_EQ(c.mode, Mode::delta);
  EXPECT_EQ(sequences(m.outbox()), (Sequences{1}));
}

TEST(Member, ContributesOncePerVersion) {
  Member m(kSelf, stale(3), kPeriodic);
  EXPECT_TRUE(m.may_contribute(0));
  (void)m.contribute(draft(0));
  EXPECT_FALSE(m.may_contribute(0));
  EXPECT_TRUE(m.may_contribute(1));
}

TEST(Member, KeepsAtMostOneMoreOpenThanTheStaleness) {
  for (const int s : {0, 1, 3}) {
    Member m(kSelf, stale(s), kPeriodic);
    for (int i = 0; i <= s; ++i) {
      ASSERT_TRUE(m.may_contribute(i)) << s;
      (void)m.contribute(draft(i));
      (void)m.extend(next(m, {}), false);
    }
    EXPECT_FALSE(m.may_contribute(s + 1)) << s;
    (void)m.extend(next(m, {1}), false);
    EXPECT_TRUE(m.may_contribute(s + 1)) << s;
  }
}

TEST(Member, InGradientModeOneIsOpenWhateverTheStaleness) {
  Member m(kSelf, stale(3), kStartThenPeriodic);
  EXPECT_EQ(m.lineage().mode, Mode::gradient);
  EXPECT_EQ(m.lineage().interval, 1);
  (void)m.contribute(draft(0));
  EXPECT_FALSE(m.may_contribute(1));
}

TEST(Member, FollowsTheDirectivesOfAResult) {
  Member m(kSelf, stale(0), kStartThenPeriodic);
  (void)m.extend(next(m, {}), false);
  EXPECT_EQ(m.lineage().mode, Mode::delta);
  EXPECT_EQ(m.lineage().interval, 4);
}

TEST(Member, AResultSettlesWhatItNamesAndNothingElse) {
  Member m(kSelf, stale(2), kPeriodic);
  for (int i = 0; i < 3; ++i) {
    (void)m.contribute(draft(i));
    (void)m.extend(next(m, {}), false);
  }
  EXPECT_EQ(sequences(m.extend(next(m, {2}), false)), (Sequences{2}));
  EXPECT_EQ(sequences(m.outbox()), (Sequences{1, 3}));
  Result others = next(m, {});
  others.roster.push_back({kSelf.node, 7, 1, 1, 0, 1, 1});
  EXPECT_TRUE(m.extend(others, false).empty()) << "of another process of this node";
}

TEST(Member, WhatIsSentAgainSaysWhatIsSettledByNow) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {}), false);
  (void)m.contribute(draft(1));
  (void)m.extend(next(m, {1}), false);
  const auto again = m.resend();
  ASSERT_EQ(sequences(again), (Sequences{2}));
  EXPECT_EQ(again[0].settled, 2u);
  EXPECT_EQ(again[0].has, 2);
}

TEST(Member, TakesBackOnce) {
  Member m(kSelf, stale(1), kPeriodic);
  const Contribution c = m.contribute(draft(0));
  const auto back = m.take_back(c.sequence);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->values, Payload{5});
  EXPECT_FALSE(m.take_back(c.sequence));
  EXPECT_FALSE(m.take_back(17));
  EXPECT_TRUE(m.outbox().empty());
  EXPECT_TRUE(m.may_contribute(0)) << "its version is open again";
  EXPECT_EQ(m.contribute(draft(0)).sequence, 2u) << "under a new number";
}

TEST(Member, KeepsAppliedContributionsUntilEverybodyHasTheirResult) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {1}), false);
  (void)m.contribute(draft(1));
  (void)m.extend(next(m, {2}, 0), false);
  ASSERT_EQ(m.kept().size(), 2u);
  (void)m.extend(next(m, {}, 1), false);
  ASSERT_EQ(m.kept().size(), 1u);
  EXPECT_EQ(m.kept()[0].contribution.sequence, 2u);
  EXPECT_EQ(m.kept()[0].version, 2);
}

TEST(Member, LogAndKeptAreBounded) {
  const Policy policy = stale(2);
  Member m(kSelf, policy, kPeriodic);
  for (Version v = 0; v < 100; ++v) {
    (void)m.contribute(draft(v));
    (void)m.extend(next(m, {m.made()}), true);
    ASSERT_LE(m.log().size(), static_cast<size_t>(policy.log_results()));
    ASSERT_LE(m.kept().size(), static_cast<size_t>(policy.restore_results()));
  }
  EXPECT_EQ(m.log().size(), static_cast<size_t>(policy.log_results()));
  EXPECT_EQ(m.log().back().version, 100);
}

TEST(Member, OnlyWhoMayBeAskedKeepsTheNumbers) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.extend(next(m, {}), true);
  EXPECT_TRUE(m.log().back().values);
  (void)m.extend(next(m, {}), false);
  EXPECT_FALSE(m.log().back().values);
}

// --- catching others up

TEST(Member, GivesTheResultsAfterAPointOfItsOwnLineage) {
  Member m(kSelf, stale(1), kPeriodic);
  std::vector<uint64_t> chains{0};
  for (int i = 0; i < 4; ++i) {
    (void)m.extend(next(m, {}), true);
    chains.push_back(m.lineage().chain);
  }
  const auto two = m.results_after(2, chains[2]);
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ(two->at(0).version, 3);
  EXPECT_EQ(two->at(1).version, 4);
  EXPECT_FALSE(m.results_after(2, chains[2] + 1)) << "another lineage";
  EXPECT_FALSE(m.results_after(0, chains[0])) << "too long ago";
  EXPECT_FALSE(m.results_after(4, chains[4])) << "nothing came after";
}

TEST(Member, DoesNotGiveResultsWithoutTheirNumbers) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.extend(next(m, {}), false);
  EXPECT_FALSE(m.results_after(0, 0));
  Result nothing = next(m, {});
  nothing.weight = 0;
  nothing.values = {};
  const uint64_t chain = m.lineage().chain;
  (void)m.extend(nothing, false);
  EXPECT_TRUE(m.results_after(1, chain)) << "one in which everybody abstained has none";
}

// --- another lineage

TEST(Member, ALineageThatHoldsOpenContributionsSettlesThem) {
  Member m(kSelf, stale(1), kPeriodic), ahead = m;
  for (Member* one : {&m, &ahead}) (void)one->contribute(draft(0));
  (void)ahead.extend(next(ahead, {1}), true);
  const auto change = m.adopt(ahead.lineage());
  EXPECT_EQ(sequences(change.applied), (Sequences{1}));
  EXPECT_TRUE(change.restored.empty());
  EXPECT_FALSE(change.lost);
  EXPECT_TRUE(m.outbox().empty());
  EXPECT_EQ(m.lineage(), ahead.lineage());
  ASSERT_EQ(m.kept().size(), 1u) << "that lineage may be dropped, too";
  EXPECT_EQ(m.kept()[0].version, 1);
}

TEST(Member, WhatADroppedTailHeldIsRestored) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {1}), false);
  const Lineage one = m.lineage();
  (void)m.contribute(draft(1));
  (void)m.extend(next(m, {2}), false);
  const auto change = m.adopt(one);
  EXPECT_EQ(sequences(change.restored), (Sequences{2}));
  EXPECT_TRUE(change.applied.empty());
  EXPECT_FALSE(change.lost);
  ASSERT_EQ(m.kept().size(), 1u);
  EXPECT_EQ(m.kept()[0].contribution.sequence, 1u);
  EXPECT_TRUE(m.adopt(Lineage{}).restored.size() == 1) << "and once only";
  EXPECT_TRUE(m.adopt(Lineage{}).restored.empty());
}

TEST(Member, WhatNobodyHeldStaysOpenAndFitsTheLineage) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.extend(next(m, {}), false);
  const Lineage one = m.lineage();
  (void)m.extend(next(m, {}), false);
  (void)m.contribute(draft(2));
  EXPECT_TRUE(m.adopt(one).applied.empty());
  ASSERT_EQ(sequences(m.outbox()), (Sequences{1}));
  EXPECT_EQ(m.outbox()[0].at, 1);
  EXPECT_EQ(m.outbox()[0].base, 1);
  EXPECT_EQ(m.outbox()[0].anchor_hash, 0u) << "what it was offered on is gone";
}

TEST(Member, WhatWasForgottenAndIsNotHeldIsLostAndSaidOnce) {
  Member m(kSelf, stale(1), kPeriodic);
  const Lineage start = m.lineage();
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {1}), false);
  (void)m.extend(next(m, {}, 1), false);
  ASSERT_TRUE(m.kept().empty());
  Member same = m;
  EXPECT_FALSE(same.adopt(m.lineage()).lost);
  EXPECT_TRUE(m.adopt(start).lost);
  EXPECT_FALSE(m.adopt(start).lost);
}

TEST(Member, WhatWasStableInADroppedTailIsNotSoInTheNextOne) {
  Member m(kSelf, stale(1), kPeriodic);
  const Lineage start = m.lineage();
  for (int i = 0; i < 3; ++i) (void)m.extend(next(m, {}, i), false);
  (void)m.adopt(start);
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {1}), false);
  EXPECT_EQ(m.kept().size(), 1u);
}

TEST(Member, AfterALineageItsVersionsAreOpenAndItsLogIsEmpty) {
  Member m(kSelf, stale(1), kPeriodic);
  (void)m.contribute(draft(0));
  (void)m.extend(next(m, {1}), true);
  (void)m.adopt(Lineage{0, 0, 77, Mode::delta, 4, 0, false, {}});
  EXPECT_TRUE(m.may_contribute(0));
  EXPECT_TRUE(m.log().empty());
}

TEST(Member, IsAValue) {
  Member a(kSelf, stale(1), kPeriodic);
  (void)a.contribute(draft(0));
  Member b = a;
  EXPECT_EQ(a, b);
  (void)b.extend(next(b, {1}), false);
  EXPECT_NE(a, b);
  EXPECT_EQ(a.outbox().size(), 1u);
}

}  // namespace
}  // namespace hybridsync
