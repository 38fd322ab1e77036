// Who is waited for, what becomes of a contribution, and two seats over a wire of the test's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "hybridsync/decide/position.h"
#include "hybridsync/decide/seat.h"

namespace hybridsync {
namespace {

const Schedule kPeriodic{Strategy::periodic, 0, 4};
const Schedule kStartThenPeriodic{Strategy::periodic, 2, 4};
constexpr uint64_t kAnchor = 77;

Policy lag(int staleness, Micros deadline = 0) {
  Policy policy;
  policy.staleness = staleness;
  policy.deadline = deadline;
  return policy;
}

// --- close_decision, line by line of its header

OpenRound open_round(std::vector<bool> in) {
  OpenRound round;
  round.version = 5;
  round.mode = Mode::delta;
  round.work = true;
  round.opened = 0;
  for (size_t node = 0; node < in.size(); ++node)
    round.standings.push_back({static_cast<int>(node), in[node], 5, 5, 0});
  return round;
}

template <class T>
T decided(const OpenRound& round, Micros now, const Policy& policy) {
  const CloseDecision decision = close_decision(round, now, policy);
  const T* expected = std::get_if<T>(&decision);
  EXPECT_TRUE(expected) << "decided otherwise: " << decision.index();
  return expected ? *expected : T{};
}

TEST(CloseDecision, NobodyIsIn) {
  EXPECT_EQ(decided<WaitFor>(open_round({false, false}), 9, lag(1)).missing,
            (std::vector<int>{0, 1}));
}

TEST(CloseDecision, EverybodyIsInWhateverElse) {
  OpenRound round = open_round({true, true});
  round.may_skip = round.work = false;
  EXPECT_TRUE(decided<CloseNow>(round, 0, lag(0)).missing.empty());
}

TEST(CloseDecision, ASynchronousTierWaitsForEverybodyForEver) {
  const auto wait = decided<WaitFor>(open_round({true, true, false}), 1'000'000'000, lag(0));
  EXPECT_EQ(wait.missing, std::vector<int>{2});
  EXPECT_FALSE(wait.until);
  OpenRound gradients = open_round({true, true, false});
  gradients.mode = Mode::gradient;
  EXPECT_FALSE(decided<WaitFor>(gradients, 1'000'000'000, lag(3)).until);
}

TEST(CloseDecision, BelowTheQuorumOrWithoutWorkItWaits) {
  EXPECT_FALSE(decided<WaitFor>(open_round({true, false, false}), 9, lag(1)).until);
  OpenRound idle = open_round({true, true, false});
  idle.work = false;
  EXPECT_EQ(decided<WaitFor>(idle, 9, lag(1)).why, "everybody who is in abstains");
}

TEST(CloseDecision, TheQuorumCallsAndClosesAfterTheGraceTime) {
  OpenRound round = open_round({true, true, false});
  const Policy policy = lag(1);
  EXPECT_EQ(decided<CallFor>(round, 10, policy).missing, std::vector<int>{2});
  round.called = 10;
  EXPECT_EQ(decided<WaitFor>(round, 10, policy).until, 10 + policy.grace);
  const auto close = decided<CloseNow>(round, 10 + policy.grace, policy);
  EXPECT_EQ(close.missing, std::vector<int>{2});
  EXPECT_TRUE(close.skipped.empty());
}

TEST(CloseDecision, WhoIsFurtherBehindIsWaitedForUntilTheDeadline) {
  OpenRound round = open_round({true, true, false});
  round.called = 0;
  round.standings[2].newest = 3;  // two behind
  EXPECT_FALSE(decided<WaitFor>(round, 1'000'000'000, lag(1)).until) << "no deadline is set";
  const Policy policy = lag(1, 500'000);
  EXPECT_EQ(decided<WaitFor>(round, 400'000, policy).until, 500'000);
  EXPECT_EQ(decided<CloseNow>(round, 500'000, policy).skipped, std::vector<int>{2});
}

TEST(CloseDecision, WithoutTheCoordinatorsAnswerNobodyIsLeftOut) {
  OpenRound round = open_round({true, true, false});
  round.called = 0;
  round.may_skip = false;
  EXPECT_TRUE(decided<WaitFor>(round, 1'000'000, lag(1)).permission);
}

// --- seats over a wire of the test's own

Contribution draft(double weight, Version at = 0, bool finished = false) {
  Contribution c;
  c.base = c.at = at;
  c.weight = weight;
  c.samples = static_cast<int64_t>(weight);
  c.anchor_hash = at == 0 ? kAnchor : 0;
  c.finished = finished;
  return c;
}

// One fragment of node 0. Numbers are symbols: an anchor's hash is made of its roster.
class World {
 public:
  World(int nodes, Policy policy, Schedule schedule = kPeriodic) {
    View view{1, {}, {0}};
    for (int n = 0; n < nodes; ++n) view.members.push_back({n, 0});
    for (int n = 0; n < nodes; ++n) {
      seats.emplace_back(0, Process{n, 0}, policy, schedule);
      perform(n, seats.back().begin(view, now));
      if (schedule.mode(0) == Mode::delta) perform(n, seats.back().set_anchor(kAnchor, now));
    }
  }

  void contribute(int node, const Contribution& c) {
    perform(node, seats[static_cast<size_t>(node)].contribute(c, now));
  }
  void deliver(int to, const Message& message) {
    perform(to, seats[static_cast<size_t>(to)].on(message, now));
  }
  // Everything that is under way, in order.
  void settle() {
    while (!wire.empty()) {
      const Send sent = wire.front();
      wire.pop_front();
      deliver(sent.to, sent.message);
    }
  }
  void later(Micros by) {
    now += by;
    for (size_t n = 0; n < seats.size(); ++n) {
      seats[n].coordinator_heard(now);
      perform(static_cast<int>(n), seats[n].tick(now));
    }
  }
  const Lineage& lineage(int node) const { return seats[static_cast<size_t>(node)].lineage(); }

  std::vector<Seat> seats;
  std::deque<Send> wire;
  std::vector<Result> results;  // as published
  std::vector<Returned> returned;
  std::vector<Disagreement> disagreements;
  std::vector<Report> reports;
  int adopted = 0;
  Micros now = 0;
  uint64_t wrong = 0;  // added to the hash that node 1 computes

 private:
  void perform(int node, Actions actions) {
    for (const Action& action : actions) std::visit([&](const auto& a) { act(node, a); }, action);
  }
  Seat& seat(int node) { return seats[static_cast<size_t>(node)]; }
  void act(int, const Send& a) {
    if (a.to != kCoordinator) wire.push_back(a);
  }
  void act(int node, const CloseRound& a) {
    uint64_t after = 1000 + static_cast<uint64_t>(a.close.version);
    perform(node, seat(node).publish(a.close, after, {}, {}, now));
  }
  void act(int node, const ApplyResult& a) {
    perform(node, seat(node).applied(a.result, a.result.after + (node == 1 ? wrong : 0), now));
  }
  void act(int node, const AdoptState& a) {
    ++adopted;
    perform(node, seat(node).adopted(a.state, now));
  }
  void act(int node, const Advanced& a) {
    if (node == 0) results.push_back(a.result);
  }
  void act(int, const Adopted&) {}
  void act(int, const Returned& a) { returned.push_back(a); }
  void act(int, const Report& a) { reports.push_back(a); }
  void act(int, const Disagreement& a) { disagreements.push_back(a); }
};

TEST(Rounds, CloseWithTheSameResultInAnyOrderOfArrival) {
  std::vector<int> order{0, 1, 2};
  std::optional<Result> first;
  do {
    World w(3, lag(0));
    for (int n : order) w.contribute(n, draft(n + 1));
    w.settle();
    ASSERT_EQ(w.results.size(), 1u);
    EXPECT_EQ(w.results[0].weight, 6);
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(w.results[0].roster[static_cast<size_t>(n)].node, n);
      EXPECT_EQ(w.lineage(n), w.lineage(0));
      EXPECT_TRUE(w.seats[static_cast<size_t>(n)].member().outbox().empty());
    }
    if (!first) first = w.results[0];
    EXPECT_EQ(w.results[0], *first);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Rounds, ADuplicateIsTakenOnce) {
  World w(2, lag(1));
  w.contribute(1, draft(3));
  const Send sent = w.wire.front();
  w.settle();
  w.deliver(0, sent.message);  // waits in the inbox
  w.contribute(0, draft(1));
  w.settle();
  w.deliver(0, sent.message);  // is applied
  w.contribute(0, draft(1, 1));
  w.contribute(1, draft(1, 1));
  w.settle();
  ASSERT_EQ(w.results.size(), 2u);
  EXPECT_EQ(w.results[0].roster.size(), 2u);
  EXPECT_EQ(w.results[1].roster.size(), 2u);
  EXPECT_EQ(w.results[1].total_samples, 6);
}

TEST(Rounds, OtherParametersAtTheFirstRoundNameBothNodes) {
  World w(2, lag(0));
  Contribution other = draft(1);
  other.anchor_hash = kAnchor + 1;
  w.contribute(1, other);
  w.settle();
  ASSERT_EQ(w.disagreements.size(), 1u);
  EXPECT_EQ(w.disagreements[0].node, 1);
  EXPECT_NE(w.disagreements[0].why.find("other parameters than node 0"), std::string::npos);
}

TEST(Rounds, WhenAllAbstainOnlyTheVersionAdvances) {
  World w(2, lag(0));
  for (int n : {0, 1}) w.contribute(n, draft(0));
  w.settle();
  ASSERT_EQ(w.results.size(), 1u);
  EXPECT_EQ(w.results[0].weight, 0);
  EXPECT_EQ(w.lineage(1).version, 1);
  EXPECT_EQ(w.lineage(1).anchor, kAnchor);
}

TEST(Rounds, AreFinishedWhenEveryMemberIs) {
  for (bool second : {false, true}) {
    World w(2, lag(0));
    w.contribute(0, draft(1, 0, true));
    w.contribute(1, draft(1, 0, second));
    w.settle();
    EXPECT_EQ(w.lineage(1).finished, second);
  }
}

TEST(Rounds, FollowTheScheduleFromGradientsToDeltas) {
  World w(2, lag(2), kStartThenPeriodic);
  for (Version v = 0; v < 2; ++v) {
    EXPECT_EQ(w.lineage(0).mode, Mode::gradient);
    EXPECT_EQ(w.lineage(0).interval, 1);
    for (int n : {0, 1}) {
      Contribution c = draft(1, v);
      c.anchor_hash = 5;
      w.contribute(n, c);
      EXPECT_FALSE(w.seats[static_cast<size_t>(n)].may_contribute(v)) << "s is 0 there";
    }
    w.settle();
  }
  EXPECT_EQ(w.lineage(1).mode, Mode::delta);
  EXPECT_EQ(w.lineage(1).interval, 4);
}

TEST(Rounds, NoDeltaRoundClosesBeforeTheOwnerHasItsAnchor) {
  World w(2, lag(0), {Strategy::periodic, 1, 4});
  for (int n : {0, 1}) w.contribute(n, draft(1));
  w.settle();
  for (int n : {0, 1}) w.contribute(n, draft(1, 1));
  w.settle();
  EXPECT_EQ(w.results.size(), 1u);
  (void)w.seats[0].set_anchor(kAnchor, w.now);
  EXPECT_EQ(w.seats[0].rounds().missing(), std::vector<int>{});
}

TEST(Rounds, ALaggardIsCalledAndItsWorkTakenLaterWithItsAge) {
  World w(3, lag(2));
  for (int n : {0, 1}) w.contribute(n, draft(1));
  w.settle();
  EXPECT_TRUE(w.seats[2].called());
  w.later(Policy{}.grace);
  w.settle();
  ASSERT_EQ(w.results.size(), 1u);
  EXPECT_EQ(w.results[0].roster.size(), 2u);
  Contribution late = draft(5, 1);
  late.base = 0;
  w.contribute(2, late);
  for (int n : {0, 1}) w.contribute(n, draft(1, 1));
  w.settle();
  ASSERT_EQ(w.results.size(), 2u);
  EXPECT_EQ(w.results[1].roster[2].age, 1);
  EXPECT_EQ(w.results[1].total_samples, 9);
}

TEST(Rounds, ABusyNodeAnswersACallByAbstaining) {
  World w(3, lag(1));
  (void)w.seats[2].set_busy(true, 0);
  for (int n : {0, 1}) w.contribute(n, draft(1));
  w.settle();
  ASSERT_EQ(w.results.size(), 1u) << "nobody waits for the grace time";
  EXPECT_EQ(w.results[0].roster[2].weight, 0);
}

// Node 2 misses a round and then offers what it computed before it.
World with_late_work(Late late, int staleness) {
  Policy policy = lag(staleness);
  policy.late = late;
  World w(3, policy);
  for (int n : {0, 1}) w.contribute(n, draft(1));
  w.settle();
  w.later(policy.grace);
  w.settle();
  Contribution c = draft(5, 1);
  c.base = 0;
  w.contribute(2, c);
  w.settle();
  return w;
}

TEST(Rounds, LateWorkIsFoldedInGivenBackOrDropped) {
  EXPECT_TRUE(with_late_work(Late::fold, 1).returned.empty());
  World back = with_late_work(Late::return_, 1);
  ASSERT_EQ(back.returned.size(), 1u);
  EXPECT_EQ(back.returned[0].reason, ReturnReason::late);
  EXPECT_TRUE(back.seats[2].may_contribute(1)) << "what came back can be offered again at once";
  World dropped = with_late_work(Late::drop, 1);
  ASSERT_EQ(dropped.returned.size(), 1u);
  EXPECT_EQ(dropped.returned[0].reason, ReturnReason::dropped);
}

TEST(Rounds, WhatIsOlderThanTheBoundComesBack) {
  World w(2, lag(1));
  for (Version v = 0; v < 2; ++v) {
    w.contribute(0, draft(1, v));
    w.settle();
    w.later(Policy{}.grace);  // one of two is a quorum
    w.settle();
  }
  ASSERT_EQ(w.results.size(), 2u);
  Contribution old = draft(1, 2);
  old.base = 0;
  w.contribute(1, old);
  w.settle();
  ASSERT_EQ(w.returned.size(), 1u);
  EXPECT_EQ(w.returned[0].reason, ReturnReason::too_old);
  EXPECT_TRUE(w.seats[1].member().outbox().empty());
}

TEST(Rounds, AtMostOneContributionPerVersionAndSPlusOneOpen) {
  World w(3, lag(1));
  w.contribute(1, draft(1));
  EXPECT_FALSE(w.seats[1].may_contribute(0));
  EXPECT_EQ(w.seats[1].member().most_unresolved(), 2u);
}

TEST(Rounds, ALostResultIsFetched) {
  World w(2, lag(0));
  for (int n : {0, 1}) w.contribute(n, draft(1));
  while (!w.wire.empty()) {
    const Send sent = w.wire.front();
    w.wire.pop_front();
    if (!std::holds_alternative<Result>(sent.message.body)) w.deliver(sent.to, sent.message);
  }
  EXPECT_EQ(w.lineage(1).version, 0);
  for (int i = 0; i < 4; ++i) {
    w.later(2'000'000);
    w.settle();
  }
  EXPECT_EQ(w.lineage(1), w.lineage(0));
  EXPECT_EQ(w.lineage(1).version, 1);
}

TEST(Rounds, AWrongHashIsReportedAndMendedByState) {
  World w(2, lag(0));
  w.wrong = 1;
  for (int n : {0, 1}) w.contribute(n, draft(1));
  w.settle();
  ASSERT_FALSE(w.reports.empty());
  EXPECT_EQ(w.reports[0].kind, Report::Kind::mismatch);
  EXPECT_NE(w.reports[0].text.find("fragment 0, version 1"), std::string::npos);
  EXPECT_EQ(w.adopted, 1);
  EXPECT_EQ(w.lineage(1), w.lineage(0));
}

TEST(Rounds, MessagesOfAnotherEpochAreIgnored) {
  World w(2, lag(0));
  w.contribute(1, draft(1));
  Send sent = w.wire.front();
  w.wire.clear();
  sent.message.epoch = 2;
  w.deliver(0, sent.message);
  EXPECT_TRUE(w.seats[0].rounds().inbox().empty());
}

TEST(Machines, AreValues) {
  World a(2, lag(0));
  a.contribute(0, draft(1));
  Seat copy = a.seats[0];
  EXPECT_EQ(copy, a.seats[0]);
  a.contribute(1, draft(1));
  a.settle();
  EXPECT_NE(copy, a.seats[0]);
}

// --- Position

TEST(Position, ABaseIsTheOldestVersionOfItsSteps) {
  Position p;
  p.step({1, 1, 0, 0});
  p.move(1);
  p.step({1, 1, 0, 0});
  Contribution c = p.contribute();
  EXPECT_EQ(c.base, 0);
  EXPECT_EQ(c.at, 1);
  EXPECT_EQ(c.samples, 2);
  p.take_back(c, true);
  p.move(3);
  EXPECT_EQ(p.contribute().base, 3) << "what came back is as old as its offer";
}

TEST(Position, WaitsWithTooManyOpenOrTooFarAhead) {
  Position p;
  for (int i = 0; i < 4; ++i) p.step({1, 1, 0, 0});
  EXPECT_TRUE(p.due(4, false));
  EXPECT_TRUE(p.must_wait(4, 0));
  EXPECT_FALSE(p.must_wait(4, 1));
  (void)p.contribute();
  EXPECT_TRUE(p.must_wait(4, 0)) << "one is open";
  EXPECT_FALSE(p.must_wait(4, 1));
  for (int i = 0; i < 4; ++i) p.step({1, 1, 0, 0});
  EXPECT_TRUE(p.must_wait(4, 1)) << "two intervals after the newest result";
  p.settle(1);
  p.move(1);
  EXPECT_FALSE(p.must_wait(4, 1));
}

}  // namespace
}  // namespace hybridsync
