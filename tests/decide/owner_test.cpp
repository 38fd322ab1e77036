// The owner's side: every order of arrival gives the same result, and every contribution one
// verdict.
#include "hybridsync/decide/owner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hybridsync {
namespace {

const Schedule kPeriodic{Strategy::periodic, 0, 4};
const Schedule kStartThenPeriodic{Strategy::periodic, 2, 4};
constexpr uint64_t kAnchor = 77;

struct Setup {
  int nodes = 3;
  int staleness = 1;
  Late late = Late::fold;
  Schedule schedule = kPeriodic;
};

// Node 0 owns the fragment; everybody has what it has.
struct Rounds {
  explicit Rounds(Setup setup = {})
      : policy(policy_of(setup)),
        owner(0, 0, policy, setup.schedule),
        member({0, 0}, policy, setup.schedule) {
    for (int i = 0; i < setup.nodes; ++i) view.members.push_back({i, 0});
    view.epoch = 1;
    member.set_anchor(kAnchor);
    owner.open(view, member.lineage());
  }

  static Policy policy_of(const Setup& setup) {
    Policy policy;
    policy.staleness = setup.staleness;
    policy.late = setup.late;
    return policy;
  }

  // Of a node that stands where the lineage is.
  Contribution make(int node, double weight = 1) {
    Contribution c;
    c.node = node;
    c.sequence = ++sequences[node];
    c.settled = c.sequence;
    c.base = c.at = c.has = member.lineage().version;
    c.mode = member.lineage().mode;
    c.weight = weight;
    c.samples = static_cast<int64_t>(weight) + 1;
    c.loss_sum = 2 * weight;
    c.loss_weight = weight;
    c.anchor_hash = member.lineage().anchor;
    if (weight > 0) c.values = {c.sequence};
    return c;
  }
  Owner::Verdict on(const Contribution& c) { return owner.on(c, member, now); }
  bool takes(const Contribution& c) { return std::holds_alternative<Owner::Accepted>(on(c)); }

  // Closes with what is in.
  Result close() {
    const Close close = owner.close(member.lineage(), CloseNow{owner.missing(), {}, ""});
    const Result r =
        owner.publish(close, member.lineage(), view.epoch, member.lineage().anchor + 1, {9}, {})
            .result;
    (void)member.extend(r, true);
    return r;
  }
  // A round of these nodes.
  Result round(const std::vector<int>& nodes) {
    for (int node : nodes) EXPECT_TRUE(takes(make(node)));
    return close();
  }

  Policy policy;
  Owner owner;
  Member member;
  View view;
  Micros now = 100;
  std::map<int, uint64_t> sequences;
};

std::optional<ReturnReason> refusal(const Owner::Verdict& verdict) {
  const auto* refused = std::get_if<Owner::Refused>(&verdict);
  return refused ? std::optional(refused->reason) : std::nullopt;
}

std::string disagreement(const Owner::Verdict& verdict) {
  const auto* disagrees = std::get_if<Owner::Disagrees>(&verdict);
  return disagrees ? disagrees->why : "none";
}

TEST(Owner, EveryOrderOfArrivalGivesTheSameResult) {
  std::vector<int> order{0, 1, 2};
  std::optional<Result> first;
  do {
    Rounds w;
    for (int node : order) ASSERT_TRUE(w.takes(w.make(node, node + 1)));
    const auto decision = w.owner.decide(w.member.lineage(), w.now, true);
    ASSERT_TRUE(std::holds_alternative<CloseNow>(decision));
    const Result r = w.close();
    EXPECT_EQ(r.version, 1);
    EXPECT_EQ(r.weight, 6);
    EXPECT_EQ(r.samples, 9);
    EXPECT_EQ(r.loss_sum, 12);
    EXPECT_EQ(r.loss_weight, 6);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(r.roster[i].node, i);
    if (!first) first = r;
    EXPECT_EQ(r, *first);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Owner, TheSumIsByNodeThenSequence) {
  Rounds w;
  const Contribution early = w.make(1), later = w.make(1);
  ASSERT_TRUE(w.takes(later));
  ASSERT_TRUE(w.takes(w.make(2)));
  ASSERT_TRUE(w.takes(early));
  ASSERT_TRUE(w.takes(w.make(0)));
  const Result r = w.close();
  std::vector<std::pair<int, uint64_t>> order;
  for (const RosterEntry& e : r.roster) order.emplace_back(e.node, e.sequence);
  EXPECT_EQ(order, (std::vector<std::pair<int, uint64_t>>{{0, 1}, {1, 1}, {1, 2}, {2, 1}}));
}

TEST(Owner, SaysWhoIsMissing) {
  Rounds w;
  (void)w.on(w.make(1));
  EXPECT_EQ(w.owner.missing(), (std::vector<int>{0, 2}));
  (void)w.on(w.make(0));
  EXPECT_EQ(w.owner.missing(), (std::vector<int>{2}));
}

TEST(Owner, JudgingChangesNothing) {
  Rounds w;
  const Owner before = w.owner;
  EXPECT_TRUE(std::holds_alternative<Owner::Accepted>(w.owner.judge(w.make(1), w.member)));
  EXPECT_EQ(w.owner, before);
}

TEST(Owner, ADuplicateInTheInboxChangesNothing) {
  Rounds w;
  const Contribution c = w.make(1);
  ASSERT_TRUE(w.takes(c));
  const Owner before = w.owner;
  w.now += 5;
  EXPECT_TRUE(std::holds_alternative<Owner::Waits>(w.on(c)));
  EXPECT_EQ(w.owner, before);
}

TEST(Owner, AContributionToAClosedRoundIsSettled) {
  Rounds w;
  const Contribution c = w.make(1);
  ASSERT_TRUE(w.takes(c));
  (void)w.round({0, 2});
  EXPECT_TRUE(std::holds_alternative<Owner::Settled>(w.on(c)));
  EXPECT_TRUE(w.owner.inbox().empty());
  EXPECT_EQ(w.owner.missing(), (std::vector<int>{0, 1, 2}));
}

TEST(Owner, WhatWasReturnedIsReturnedAgain) {
  Rounds w;
  const Contribution c = w.make(2);
  (void)w.round({0, 1});
  (void)w.round({0, 1});
  EXPECT_EQ(refusal(w.on(c)), ReturnReason::too_old);
  EXPECT_EQ(refusal(w.on(c)), ReturnReason::too_old);
  EXPECT_TRUE(w.owner.inbox().empty());
}

TEST(Owner, TakesWorkUpToTheStalenessAndNamesItsAge) {
  for (const int s : {1, 2, 4}) {
    Rounds w({.staleness = s});
    const Contribution oldest = w.make(2);
    (void)w.round({0, 1});
    const Contribution next = w.make(1);
    for (int i = 1; i < s; ++i) (void)w.round({0});
    EXPECT_TRUE(w.takes(oldest)) << s;
    ASSERT_TRUE(w.takes(next));
    const Result r = w.round({0});
    EXPECT_EQ(r.roster[2].age, s);
    EXPECT_EQ(r.roster[1].age, s - 1);
    EXPECT_EQ(r.roster[0].age, 0);
  }
}

TEST(Owner, ReturnsWhatIsOlder) {
  Rounds w({.staleness = 2});
  Contribution c = w.make(2);
  for (int i = 0; i < 3; ++i) (void)w.round({0, 1});
  c.at = c.has = 3;  // offered on top of the newest, with a step that is older
  c.anchor_hash = w.member.lineage().anchor;
  EXPECT_EQ(refusal(w.on(c)), ReturnReason::too_old);
}

TEST(Owner, AgeCountsFromTheOldestStepNotFromTheOffer) {
  Rounds w;
  (void)w.round({0, 1, 2});
  Contribution c = w.make(2);
  c.base = 0;
  ASSERT_TRUE(w.takes(c));
  EXPECT_EQ(w.close().roster[0].age, 1);
}

// --- late work

TEST(Owner, LateWorkByConfiguration) {
  const std::vector<std::pair<Late, std::optional<ReturnReason>>> table = {
      {Late::fold, std::nullopt},
      {Late::return_, ReturnReason::late},
      {Late::drop, ReturnReason::dropped}};
  for (const auto& [late, reason] : table) {
    Rounds w({.staleness = 2, .late = late});
    const Contribution c = w.make(2);
    (void)w.round({0, 1});
    EXPECT_EQ(refusal(w.on(c)), reason);
    EXPECT_TRUE(w.takes(w.make(2))) << "on top of the newest it is not late";
  }
}

TEST(Owner, WorkForARoundThatIsOpenIsNotLateHoweverOldItsBase) {
  Rounds w({.staleness = 2, .late = Late::return_});
  (void)w.round({0, 1, 2});
  Contribution c = w.make(2);
  c.base = 0;  // of a round that had a contribution of it
  EXPECT_TRUE(w.takes(c));
}

TEST(Owner, AnAbstentionIsNeverLate) {
  Rounds w({.late = Late::drop});
  const Contribution nothing = w.make(2, 0);
  (void)w.round({0, 1});
  EXPECT_TRUE(w.takes(nothing));
}

// --- hashes

TEST(Owner, OtherParametersAreReturned) {
  Rounds w;
  (void)w.round({0, 1, 2});
  Contribution c = w.make(1);
  ++c.anchor_hash;
  EXPECT_EQ(refusal(w.on(c)), ReturnReason::mismatch);
}

TEST(Owner, TheHashIsThatOfTheVersionThatItIsOfferedOn) {
  Rounds w;
  (void)w.round({0, 1, 2});
  const Contribution old = w.make(2);
  (void)w.round({0, 1});
  EXPECT_TRUE(w.takes(old));
  Contribution wrong = w.make(1);
  wrong.at = 1;
  EXPECT_EQ(refusal(w.on(wrong)), ReturnReason::mismatch);
  wrong.anchor_hash = 0;
  EXPECT_TRUE(w.takes(wrong)) << "0: what it was offered on is gone";
}

TEST(Owner, AtTheFirstDeltaRoundOtherParametersEndTheRun) {
  Rounds w;
  Contribution c = w.make(1);
  ++c.anchor_hash;
  EXPECT_EQ(disagreement(w.on(c)),
            "fragment 0, version 0: node 1 has other parameters than node 0 (the hashes differ)");
  Rounds after_start({.schedule = kStartThenPeriodic});
  for (int i = 0; i < 2; ++i) (void)after_start.round({0, 1, 2});
  c = after_start.make(2);
  ++c.anchor_hash;
  EXPECT_EQ(disagreement(after_start.on(c)),
            "fragment 0, version 2: node 2 has other parameters than node 0 (the hashes differ)");
}

TEST(Owner, InGradientModeOtherParametersEndTheRun) {
  Rounds w({.schedule = kStartThenPeriodic});
  ASSERT_TRUE(w.takes(w.make(2)));
  Contribution c = w.make(1);
  ++c.anchor_hash;
  EXPECT_EQ(disagreement(w.on(c)),
            "fragment 0, version 0: node 1 has other parameters than node 2 (the hashes differ)");
}

TEST(Owner, AnotherModeEndsTheRunUnlessItIsOld) {
  Rounds w({.schedule = kStartThenPeriodic});
  Contribution c = w.make(1);
  c.mode = Mode::delta;
  EXPECT_EQ(disagreement(w.on(c)), "fragment 0, version 0: node 1 sent a delta, a gradient is due");
  const Contribution old = w.make(1);
  for (int i = 0; i < 2; ++i) (void)w.round({0, 2});
  EXPECT_EQ(refusal(w.on(old)), ReturnReason::mode);
}

TEST(Owner, GradientsOfAnotherStepAreReturned) {
  Rounds w({.schedule = kStartThenPeriodic});
  const Contribution old = w.make(1);
  (void)w.round({0, 2});
  EXPECT_EQ(refusal(w.on(old)), ReturnReason::too_old) << "whatever the staleness of delta rounds";
}

// --- the result

TEST(Owner, SaysWhatTheNextRoundIs) {
  Rounds w({.schedule = kStartThenPeriodic});
  const Result one = w.round({0, 1, 2});
  EXPECT_EQ(one.mode, Mode::gradient);
  EXPECT_EQ(one.next_mode, Mode::gradient);
  EXPECT_EQ(one.next_interval, 1);
  const Result two = w.round({0, 1, 2});
  EXPECT_EQ(two.next_mode, Mode::delta);
  EXPECT_EQ(two.next_interval, 4);
}

TEST(Owner, NamesWhatItIsBasedOn) {
  Rounds w;
  const Lineage before = w.member.lineage();
  const Result r = w.round({0, 1, 2});
  EXPECT_EQ(r.chain, before.chain);
  EXPECT_EQ(r.before, before.anchor);
  EXPECT_EQ(r.after, before.anchor + 1);
  EXPECT_EQ(r.epoch, 1u);
  EXPECT_EQ(r.values, Payload{9});
}

TEST(Owner, AGradientRoundIsBasedOnTheParametersThatEverybodyNamed) {
  Rounds w({.schedule = kStartThenPeriodic});
  for (int node : {0, 1, 2}) {
    Contribution c = w.make(node);
    c.anchor_hash = 5;
    ASSERT_TRUE(w.takes(c));
  }
  EXPECT_EQ(w.close().before, 5u);
}

TEST(Owner, TheDeadlineCountsFromTheFirstContribution) {
  Rounds w({.nodes = 4});
  w.policy.deadline = 10'000;
  w.owner = Owner(0, 0, w.policy, kPeriodic);
  w.owner.open(w.view, w.member.lineage());
  for (int i = 0; i < 2; ++i) (void)w.round({0, 1, 2});
  const Micros first = w.now;
  for (int node : {0, 1, 2}) {
    ASSERT_TRUE(w.takes(w.make(node)));
    w.now += 1'000;
  }
  w.owner.called(w.now);
  const auto decision = w.owner.decide(w.member.lineage(), w.now, true);
  ASSERT_TRUE(std::holds_alternative<WaitFor>(decision));
  EXPECT_EQ(std::get<WaitFor>(decision).until, first + 10'000);
}

TEST(Owner, CountsAllSamplesOfTheLineage) {
  Rounds w;
  EXPECT_EQ(w.round({0, 1, 2}).total_samples, 6);
  EXPECT_EQ(w.round({0}).total_samples, 8);
}

TEST(Owner, WhenAllAbstainOnlyTheVersionAdvances) {
  Rounds w;
  for (int node : {0, 1, 2}) ASSERT_TRUE(w.takes(w.make(node, 0)));
  const Result r = w.close();
  EXPECT_EQ(r.weight, 0);
  EXPECT_EQ(r.version, 1);
  EXPECT_EQ(r.samples, 3) << "also steps that were skipped have samples";
  EXPECT_EQ(w.member.lineage().anchor, kAnchor);
}

TEST(Owner, IsFinishedWhenEverybodyIsInAndHasFinished) {
  for (int still : {-1, 0, 1, 2}) {
    Rounds w;
    for (int node : {0, 1, 2}) {
      Contribution c = w.make(node);
      c.finished = node != still;
      ASSERT_TRUE(w.takes(c));
    }
    EXPECT_EQ(w.close().finished, still == -1) << still;
  }
  Rounds without_one;
  for (int node : {0, 1}) {
    Contribution c = without_one.make(node);
    c.finished = true;
    ASSERT_TRUE(without_one.takes(c));
  }
  EXPECT_FALSE(without_one.close().finished);
}

TEST(Owner, StableIsWhatEverybodyElseIsKnownToHave) {
  Rounds w;
  EXPECT_EQ(w.round({0, 1, 2}).stable, 0);
  EXPECT_EQ(w.round({0, 1, 2}).stable, 1);
  EXPECT_EQ(w.round({0, 1}).stable, 1);
  EXPECT_EQ(w.round({0, 1}).stable, 1) << "node 2 has not said more";
  EXPECT_EQ(w.round({0, 2}).stable, 3) << "now node 1 holds it up";
  Rounds alone({.nodes = 1});
  EXPECT_EQ(alone.round({0}).stable, 1);
}

TEST(Owner, ARoundBeginsEmptyAndUncalled) {
  Rounds w;
  ASSERT_TRUE(w.takes(w.make(0)));
  ASSERT_TRUE(w.takes(w.make(1)));
  w.owner.called(w.now);
  (void)w.close();
  EXPECT_TRUE(w.owner.inbox().empty());
  ASSERT_TRUE(w.takes(w.make(0)));
  ASSERT_TRUE(w.takes(w.make(1)));
  EXPECT_TRUE(std::holds_alternative<CallFor>(w.owner.decide(w.member.lineage(), w.now, true)));
}

// Otherwise a node whose work is always late would never be waited for.
TEST(Owner, WhatCameBackDoesNotCountAsTaken) {
  Rounds w({.staleness = 2, .late = Late::return_});
  (void)w.round({0, 1});
  Contribution c = w.make(2);
  c.base = 0;
  ASSERT_EQ(refusal(w.on(c)), ReturnReason::late);
  EXPECT_EQ(w.owner.missing(), (std::vector<int>{0, 1, 2}));
  (void)w.round({0, 1});
  ASSERT_TRUE(w.takes(w.make(0)));
  ASSERT_TRUE(w.takes(w.make(1)));
  w.owner.called(w.now);
  const auto decision = w.owner.decide(w.member.lineage(), w.now + w.policy.grace, true);
  ASSERT_TRUE(std::holds_alternative<WaitFor>(decision));
  EXPECT_EQ(std::get<WaitFor>(decision).missing, std::vector<int>{2});
  ASSERT_TRUE(w.takes(w.make(2))) << "what it does now is in time";
}

TEST(Owner, IsAValue) {
  Rounds a;
  (void)a.on(a.make(0));
  Rounds b = a;
  EXPECT_EQ(a.owner, b.owner);
  (void)b.on(b.make(1));
  EXPECT_NE(a.owner, b.owner);
}

// --- the interval

const Schedule kGrows{Strategy::periodic, 0, 4, 0, {Adapt::qsr, 1, 64, 100}};

// A round whose steps had this learning rate; the result is applied.
Published round_of(Rounds& w, double lr) {
  for (int node = 0; node < 3; ++node) {
    Contribution c = w.make(node);
    c.lr = lr;
    c.squared_norm = 2;
    EXPECT_TRUE(w.takes(c));
  }
  const Close close = w.owner.close(w.member.lineage(), CloseNow{});
  const Published p =
      w.owner.publish(close, w.member.lineage(), w.view.epoch, kAnchor + 1, {9}, {}, {1, 4});
  (void)w.member.extend(p.result, true);
  return p;
}

TEST(OwnerInterval, IsInTheResultAndTheLineage) {
  Rounds w{{.schedule = kGrows}};
  EXPECT_EQ(round_of(w, 0.2).result.next_interval, 4);
  const Published grown = round_of(w, 0.1);
  EXPECT_EQ(grown.result.next_interval, 16);
  EXPECT_EQ(grown.interval, "K = 16, was 4: the learning rate is 0.5 of its peak");
  EXPECT_EQ(w.member.lineage().interval, 16);
  EXPECT_EQ(grown.result.drift, 0.5);
}

TEST(OwnerInterval, ANewOwnerGoesOnFromThatOfTheLineage) {
  Rounds w{{.schedule = kGrows}};
  (void)round_of(w, 0.2);
  (void)round_of(w, 0.1);
  w.owner.open(w.view, w.member.lineage());
  EXPECT_EQ(round_of(w, 0.1).result.next_interval, 16);
  EXPECT_EQ(round_of(w, 0.2).result.next_interval, 16) << "the peak that it knows";
  EXPECT_EQ(round_of(w, 0.1).result.next_interval, 64);
}

TEST(OwnerInterval, OtherFragmentsHaveNoneOfTheirOwn) {
  Rounds w{{.schedule = kGrows}};
  w.owner = Owner(1, 0, w.policy, kGrows);
  w.owner.open(w.view, w.member.lineage());
  (void)round_of(w, 0.2);
  const Published second = round_of(w, 0.1);
  EXPECT_EQ(second.result.next_interval, 4);
  EXPECT_EQ(second.interval, "");
  EXPECT_EQ(second.result.drift, 0);
}

TEST(OwnerInterval, BeginsWithTheStrategy) {
  Schedule schedule = kGrows;
  schedule.synchronous_rounds = 1;
  Rounds w{{.schedule = schedule}};
  Contribution c;
  for (int node = 0; node < 3; ++node) {
    c = w.make(node);
    c.mode = Mode::gradient;
    EXPECT_TRUE(w.takes(c));
  }
  EXPECT_EQ(w.close().next_interval, 4);
}

}  // namespace
}  // namespace hybridsync
