// Seats over a wire of the test's own: rounds from contributions to results, what is lost on the
// way and asked about, and views that change.
#include "hybridsync/decide/seat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

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

View view_of(Epoch epoch, std::vector<Process> members, int owner) {
  return {epoch, std::move(members), {owner}};
}

// One fragment. Numbers are symbols: an anchor is the chain that led to it.
class World {
 public:
  World(int nodes, Policy policy, Schedule schedule = kPeriodic)
      : policy_(policy), schedule_(schedule) {
    View view{1, {}, {0}};
    for (int n = 0; n < nodes; ++n) view.members.push_back({n, 0});
    for (int n = 0; n < nodes; ++n) {
      seats.emplace_back(0, Process{n, 0}, policy, schedule);
      told.emplace_back();
      perform(n, seat(n).begin(view, now));
      if (schedule.mode(0) == Mode::delta) perform(n, seat(n).set_anchor(kAnchor, now));
    }
  }

  Seat& seat(int node) { return seats[static_cast<size_t>(node)]; }
  const Lineage& lineage(int node) { return seat(node).lineage(); }
  const std::vector<Contribution>& outbox(int node) { return seat(node).member().outbox(); }

  // On top of where the node is, all of it learned there.
  Contribution draft(int node, double weight = 1) {
    Contribution c;
    c.base = c.at = lineage(node).version;
    c.weight = weight;
    c.samples = static_cast<int64_t>(weight);
    c.anchor_hash = lineage(node).anchor;
    return c;
  }
  void contribute(int node, const Contribution& c) { perform(node, seat(node).contribute(c, now)); }
  void contribute(int node, double weight = 1) { contribute(node, draft(node, weight)); }
  // A round of these nodes, closed after the grace time if it has to be.
  void round(const std::vector<int>& nodes) {
    for (int n : nodes) contribute(n);
    settle();
    later(policy_.grace);
    settle();
  }

  void deliver(int to, const Message& message) { perform(to, seat(to).on(message, now)); }
  void deliver(const Send& sent) {
    if (sent.to != kCoordinator) return deliver(sent.to, sent.message);
    const Message& m = sent.message;
    deliver(m.from.node, {{}, m.epoch, m.fragment, Established{!confirms}});
  }
  // Everything that is under way, in order, but what `lost` says.
  void settle(const std::function<bool(const Send&)>& lost = [](const Send&) { return false; }) {
    while (!wire.empty()) {
      const Send sent = wire.front();
      wire.pop_front();
      if (!lost(sent)) deliver(sent);
    }
  }
  void later(Micros by) {
    now += by;
    for (size_t n = 0; n < seats.size(); ++n) {
      if (heard) seats[n].coordinator_heard(now);
      perform(static_cast<int>(n), seats[n].tick(now));
    }
  }
  void install(const View& view, const std::vector<int>& nodes) {
    for (int n : nodes) perform(n, seat(n).install(view, now));
  }
  void restart(int node, uint32_t incarnation) {
    seat(node) = Seat(0, {node, incarnation}, policy_, schedule_);
    told[static_cast<size_t>(node)] = {};
  }
  void set_busy(int node, bool busy) { perform(node, seat(node).set_busy(busy, now)); }
  void set_anchor(int node, uint64_t hash) { perform(node, seat(node).set_anchor(hash, now)); }
  void reconnected(int node, int to) { perform(node, seat(node).reconnected(to, now)); }

  // Of what is under way: how many of this kind to this node.
  template <class T>
  int under_way(int to) const {
    return static_cast<int>(std::count_if(wire.begin(), wire.end(), [&](const Send& s) {
      return s.to == to && std::holds_alternative<T>(s.message.body);
    }));
  }

  // What its training was told.
  struct Told {
    std::vector<Result> results;
    std::vector<Contribution> applied, restored;
    std::vector<Returned> returned;
    int adopted = 0;
    std::vector<Report> reports;
    std::vector<Disagreement> disagreements;
  };
  std::vector<Seat> seats;
  std::deque<Send> wire;
  std::vector<Told> told;
  Micros now = 0;
  uint64_t wrong = 0;    // added to the hash that node 1 computes
  bool heard = true;     // the coordinator answers heartbeats
  bool confirms = true;  // ... and says yes to every epoch

 private:
  Told& tell(int node) { return told[static_cast<size_t>(node)]; }
  void perform(int node, Actions actions) {
    for (const Action& action : actions) std::visit([&](const auto& a) { act(node, a); }, action);
  }
  void act(int, const Send& a) { wire.push_back(a); }
  void act(int node, const CloseRound& a) {
    const uint64_t after = lineage(node).anchor + 1 + a.close.contributions.size();
    perform(node, seat(node).publish(a.close, after, {9}, {}, now));
  }
  void act(int node, const ApplyResult& a) {
    perform(node, seat(node).applied(a.result, a.result.after + (node == 1 ? wrong : 0), now));
  }
  void act(int node, const AdoptState& a) {
    ++tell(node).adopted;
    perform(node, seat(node).adopted(a.state, now));
  }
  void act(int node, const Advanced& a) {
    tell(node).results.push_back(a.result);
    for (const Contribution& c : a.own) tell(node).applied.push_back(c);
  }
  void act(int node, const Adopted& a) {
    for (const Contribution& c : a.change.applied) tell(node).applied.push_back(c);
    for (const Contribution& c : a.change.restored) tell(node).restored.push_back(c);
  }
  void act(int node, const Returned& a) { tell(node).returned.push_back(a); }
  void act(int node, const Report& a) { tell(node).reports.push_back(a); }
  void act(int node, const Disagreement& a) { tell(node).disagreements.push_back(a); }

  Policy policy_;
  Schedule schedule_;
};

template <class T>
bool is(const Send& sent) {
  return std::holds_alternative<T>(sent.message.body);
}

std::vector<int> nodes_in(const Result& result) {
  std::vector<int> nodes;
  for (const RosterEntry& e : result.roster) nodes.push_back(e.node);
  return nodes;
}

using Nodes = std::vector<int>;

// --- rounds

TEST(Seat, ARoundSettlesTheContributionsOfEverybody) {
  World w(3, lag(0));
  for (int n : {2, 0, 1}) w.contribute(n, n + 1);
  w.settle();
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(w.lineage(n), w.lineage(0));
    EXPECT_EQ(w.lineage(n).version, 1);
    EXPECT_TRUE(w.outbox(n).empty());
    ASSERT_EQ(w.told[n].applied.size(), 1u);
    EXPECT_EQ(w.told[n].applied[0].weight, n + 1);
    EXPECT_EQ(w.told[n].results, w.told[0].results);
  }
  EXPECT_EQ(w.told[0].results[0].weight, 6);
}

TEST(Seat, ADuplicateIsTakenOnce) {
  World w(2, lag(1));
  w.contribute(1, 3);
  const Send sent = w.wire.front();
  w.settle();
  w.deliver(sent);  // waits in the inbox
  w.contribute(0);
  w.settle();
  w.deliver(sent);  // is applied
  w.settle();
  w.round({0, 1});
  const auto& results = w.told[0].results;
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(nodes_in(results[0]), (Nodes{0, 1}));
  EXPECT_EQ(nodes_in(results[1]), (Nodes{0, 1}));
  EXPECT_EQ(results[1].total_samples, 6);
}

TEST(Seat, WhatCameBackIsNotTakenWhenItComesAgain) {
  World w(3, lag(1, 10'000));
  w.contribute(2);
  const Send sent = w.wire.front();
  w.wire.clear();
  w.round({0, 1});
  w.round({0, 1});
  w.later(10'000);  // the second round skips it
  w.settle();
  for (int i = 0; i < 2; ++i) {
    w.deliver(sent);
    w.settle();
    EXPECT_EQ(w.told[2].returned.size(), 1u) << "a second RETURN changes nothing";
    EXPECT_TRUE(w.seat(0).rounds().inbox().empty());
  }
  EXPECT_EQ(w.told[2].returned[0].reason, ReturnReason::too_old);
  EXPECT_EQ(w.told[2].returned[0].contribution.sequence, 1u);
  w.contribute(2);
  EXPECT_EQ(w.outbox(2)[0].sequence, 2u) << "its work is offered again, under a new number";
}

TEST(Seat, OtherParametersAtTheFirstRoundNameBothNodes) {
  World w(2, lag(0));
  Contribution other = w.draft(1);
  ++other.anchor_hash;
  w.contribute(1, other);
  w.settle();
  ASSERT_EQ(w.told[0].disagreements.size(), 1u);
  EXPECT_EQ(w.told[0].disagreements[0].node, 1);
  EXPECT_EQ(w.told[0].disagreements[0].why,
            "fragment 0, version 0: node 1 has other parameters than node 0 (the hashes differ)");
}

TEST(Seat, AreFinishedWhenEveryMemberIs) {
  for (bool second : {false, true}) {
    World w(2, lag(0));
    for (int n : {0, 1}) {
      Contribution c = w.draft(n);
      c.finished = n == 0 || second;
      w.contribute(n, c);
    }
    w.settle();
    EXPECT_EQ(w.lineage(1).finished, second);
  }
}

TEST(Seat, FollowsTheScheduleFromGradientsToDeltas) {
  World w(2, lag(2), kStartThenPeriodic);
  for (Version v = 0; v < 2; ++v) {
    EXPECT_EQ(w.lineage(0).mode, Mode::gradient);
    EXPECT_EQ(w.lineage(0).interval, 1);
    for (int n : {0, 1}) {
      Contribution c = w.draft(n);
      c.anchor_hash = 5;
      w.contribute(n, c);
      EXPECT_FALSE(w.seat(n).may_contribute(v)) << "s is 0 there";
    }
    w.settle();
  }
  EXPECT_EQ(w.lineage(1).mode, Mode::delta);
  EXPECT_EQ(w.lineage(1).interval, 4);
}

TEST(Seat, NoDeltaRoundClosesBeforeTheOwnerHasItsAnchor) {
  World w(2, lag(0), {Strategy::periodic, 1, 4});
  for (int i = 0; i < 2; ++i) {
    for (int n : {0, 1}) w.contribute(n);
    w.settle();
  }
  EXPECT_EQ(w.lineage(0).version, 1);
  for (int n : {1, 0}) w.set_anchor(n, kAnchor);
  w.settle();
  EXPECT_EQ(w.lineage(0).version, 2);
  EXPECT_EQ(w.lineage(1), w.lineage(0));
}

TEST(Seat, NoDeltaResultIsAppliedWithoutAnAnchor) {
  World w(2, lag(0), {Strategy::periodic, 1, 4});
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  w.set_anchor(0, kAnchor);
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  EXPECT_EQ(w.lineage(0).version, 2);
  EXPECT_EQ(w.lineage(1).version, 1);
  w.set_anchor(1, kAnchor);
  w.settle();
  EXPECT_EQ(w.lineage(1), w.lineage(0)) << "it asks for what it could not take";
}

TEST(Seat, AnAnchorThatOthersDoNotHaveEndsTheRun) {
  World w(2, lag(0), {Strategy::periodic, 1, 4});
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  w.set_anchor(1, kAnchor + 1);
  w.contribute(1);
  w.settle();
  w.set_anchor(0, kAnchor);
  ASSERT_EQ(w.told[0].disagreements.size(), 1u);
  EXPECT_EQ(w.told[0].disagreements[0].node, 1);
}

// --- CALL

TEST(Seat, ALaggardIsCalledAndItsWorkTakenLaterWithItsAge) {
  World w(3, lag(2));
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  EXPECT_TRUE(w.seat(2).called());
  EXPECT_FALSE(w.seat(1).called());
  w.later(Policy{}.grace);
  w.settle();
  EXPECT_EQ(nodes_in(w.told[0].results.at(0)), (Nodes{0, 1}));
  EXPECT_TRUE(w.seat(2).called()) << "a call outlives its round";
  Contribution late = w.draft(2, 5);
  late.base = 0;
  w.contribute(2, late);
  EXPECT_FALSE(w.seat(2).called());
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  ASSERT_EQ(w.told[0].results.size(), 2u);
  EXPECT_EQ(w.told[0].results[1].roster[2].age, 1);
  EXPECT_EQ(w.told[0].results[1].total_samples, 9);
}

TEST(Seat, WhoAnswersACallInTimeIsInTheRound) {
  World w(3, lag(1));
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  ASSERT_TRUE(w.seat(2).called());
  w.contribute(2, 3);
  w.settle();
  EXPECT_EQ(nodes_in(w.told[0].results.at(0)), (Nodes{0, 1, 2}));
}

TEST(Seat, ACallForWhatIsOnItsWayOrOverIsNone) {
  World w(3, lag(1));
  const auto call = [&](Version version) {
    w.deliver(2, {{0, 0}, 1, 0, Call{version}});
    return w.seat(2).called();
  };
  w.contribute(2);
  EXPECT_FALSE(call(0)) << "it is on its way";
  w.round({0, 1});
  ASSERT_EQ(w.lineage(2).version, 1);
  EXPECT_FALSE(call(0)) << "that round is over";
  w.deliver(2, {{1, 0}, 1, 0, Call{1}});
  EXPECT_FALSE(w.seat(2).called()) << "node 1 is not the owner";
  EXPECT_TRUE(call(1));
}

TEST(Seat, ACallThatComesAfterItsRoundIsNone) {
  World w(3, lag(1));
  const auto calls = [](const Send& s) { return is<Call>(s); };
  for (int n : {0, 1}) w.contribute(n);
  w.settle(calls);
  w.later(Policy{}.grace);
  w.settle(calls);
  ASSERT_EQ(w.lineage(2).version, 1);
  w.deliver(2, {{0, 0}, 1, 0, Call{0}});
  EXPECT_FALSE(w.seat(2).called());
}

TEST(Seat, AContributionInAnothersNameIsIgnored) {
  World w(3, lag(1));
  w.contribute(1);
  const Contribution c = w.outbox(1)[0];
  w.wire.clear();
  w.deliver(0, {{2, 0}, 1, 0, c});
  Contribution older = c;
  older.incarnation = 7;
  w.deliver(0, {{1, 0}, 1, 0, older});
  EXPECT_TRUE(w.seat(0).rounds().inbox().empty());
  w.deliver(0, {{1, 0}, 1, 0, c});
  EXPECT_EQ(w.seat(0).rounds().inbox().size(), 1u);
}

TEST(Seat, AfterTheLastRoundNobodyIsCalled) {
  World w(2, lag(1));
  const auto end = [&](int node) {
    Contribution c = w.draft(node);
    c.finished = true;
    w.contribute(node, c);
  };
  end(1);
  w.deliver(1, {{0, 0}, 1, 0, Call{1}});  // overtakes the result
  ASSERT_TRUE(w.seat(1).called());
  end(0);
  w.settle();
  ASSERT_TRUE(w.lineage(1).finished);
  EXPECT_FALSE(w.seat(1).called());
}

TEST(Seat, ABusyNodeAnswersACallByAbstaining) {
  World w(3, lag(1));
  w.set_busy(2, true);
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  ASSERT_EQ(w.told[0].results.size(), 1u) << "nobody waits for the grace time";
  EXPECT_EQ(w.told[0].results[0].roster[2].weight, 0);
  w.set_busy(2, false);
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  EXPECT_EQ(w.told[0].results.size(), 1u) << "now it is waited for";
  EXPECT_TRUE(w.seat(2).called());
}

// A call travels on a channel of its own and may overtake the result that it follows.
TEST(Seat, ABusyNodeAnswersACallThatOvertookAResult) {
  World w(3, lag(2));
  for (int n : {0, 1, 2}) w.contribute(n);
  std::vector<Send> late;
  const auto lost = [&](const Send& s) {
    const bool result = s.to == 2 && is<Result>(s);
    if (result) late.push_back(s);
    return result;
  };
  w.settle(lost);
  ASSERT_EQ(late.size(), 1u);
  w.set_busy(2, true);
  for (int n : {0, 1}) w.contribute(n);
  w.settle(lost);
  EXPECT_TRUE(w.seat(2).called());
  w.deliver(late[0]);
  w.settle();
  ASSERT_EQ(w.told[0].results.size(), 2u) << "it abstained as soon as it could";
  EXPECT_EQ(w.told[0].results[1].roster[2].weight, 0);
}

TEST(Seat, WhoIsBusyWhenCalledAlreadyAbstainsAtOnce) {
  World w(3, lag(1));
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  ASSERT_TRUE(w.told[0].results.empty());
  w.set_busy(2, true);
  w.settle();
  EXPECT_EQ(w.told[0].results.size(), 1u);
}

// --- late and old work

// Node 2 misses a round and then offers what it computed before it.
World with_late_work(Late late) {
  Policy policy = lag(1);
  policy.late = late;
  World w(3, policy);
  w.round({0, 1});
  Contribution c = w.draft(2, 5);
  c.base = 0;
  w.contribute(2, c);
  w.settle();
  return w;
}

TEST(Seat, LateWorkIsFoldedInGivenBackOrDropped) {
  World folded = with_late_work(Late::fold);
  EXPECT_TRUE(folded.told[2].returned.empty());
  EXPECT_EQ(folded.seat(0).rounds().inbox().size(), 1u);
  World back = with_late_work(Late::return_);
  ASSERT_EQ(back.told[2].returned.size(), 1u);
  EXPECT_EQ(back.told[2].returned[0].reason, ReturnReason::late);
  EXPECT_TRUE(back.seat(2).may_contribute(1)) << "what came back can be offered again at once";
  World dropped = with_late_work(Late::drop);
  ASSERT_EQ(dropped.told[2].returned.size(), 1u);
  EXPECT_EQ(dropped.told[2].returned[0].reason, ReturnReason::dropped);
}

TEST(Seat, WhatIsOlderThanTheBoundComesBack) {
  World w(2, lag(2));
  for (int i = 0; i < 2; ++i) w.round({0});  // one of two is a quorum
  w.round({0, 1});
  ASSERT_EQ(w.lineage(1).version, 3);
  Contribution old = w.draft(1);
  old.base = 0;
  w.contribute(1, old);
  w.settle();
  ASSERT_EQ(w.told[1].returned.size(), 1u);
  EXPECT_EQ(w.told[1].returned[0].reason, ReturnReason::too_old);
  EXPECT_TRUE(w.outbox(1).empty());
}

TEST(Seat, TheOwnersOwnOldWorkComesBackWithoutAMessage) {
  World w(2, lag(2));
  for (int i = 0; i < 3; ++i) w.round({0, 1});
  Contribution old = w.draft(0);
  old.base = 0;
  w.contribute(0, old);
  EXPECT_TRUE(w.wire.empty());
  ASSERT_EQ(w.told[0].returned.size(), 1u);
  EXPECT_TRUE(w.outbox(0).empty());
}

TEST(Seat, ReturnOfAnotherThanTheOwnerIsIgnored) {
  World w(3, lag(1));
  w.contribute(2);
  w.deliver(2, {{1, 0}, 1, 0, Return{1, ReturnReason::late}});
  EXPECT_EQ(w.outbox(2).size(), 1u);
  EXPECT_TRUE(w.told[2].returned.empty());
}

TEST(Seat, AtMostOneContributionPerVersionAndSPlusOneOpen) {
  World w(3, lag(1, 10'000));
  const auto lose = [](const Send& s) { return s.message.from.node == 2; };
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(w.seat(2).may_contribute(i));
    w.contribute(2);
    EXPECT_FALSE(w.seat(2).may_contribute(i)) << "of this version";
    w.settle(lose);
    for (int n : {0, 1}) w.contribute(n);
    w.settle(lose);
    w.later(10'000);  // skipped
    w.settle(lose);
  }
  ASSERT_EQ(w.lineage(2).version, 2);
  EXPECT_EQ(w.outbox(2).size(), 2u);
  EXPECT_FALSE(w.seat(2).may_contribute(2));
}

// --- skipping

// Nodes 0 and 1 are in; node 2 is two versions behind, with s = 2.
World with_a_laggard(Micros deadline) {
  World w(3, lag(2, deadline));
  for (int i = 0; i < 2; ++i) w.round({0, 1});
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  return w;
}

TEST(Seat, WhoIsTooFarBehindIsWaitedForForEverWithoutADeadline) {
  World w = with_a_laggard(0);
  w.later(1'000'000'000);
  w.settle();
  EXPECT_EQ(w.lineage(0).version, 2);
  EXPECT_EQ(w.seat(0).waits_for(), Nodes{2});
  w.contribute(2);
  w.settle();
  EXPECT_EQ(w.lineage(2).version, 3);
}

TEST(Seat, WhoIsTooFarBehindIsSkippedAtTheDeadlineAndThatIsSaid) {
  World w = with_a_laggard(50'000);
  EXPECT_EQ(w.seat(0).due(Timer::close), w.now - Policy{}.grace + 2'000 + 50'000);
  w.later(49'999);
  EXPECT_EQ(w.lineage(0).version, 2);
  w.later(1);
  w.settle();
  EXPECT_EQ(w.lineage(2).version, 3);
  ASSERT_EQ(w.told[0].reports.size(), 1u);
  EXPECT_EQ(w.told[0].reports[0].kind, Report::Kind::skipped);
  EXPECT_EQ(w.told[0].reports[0].node, 2);
  EXPECT_EQ(w.told[0].reports[0].text, "fragment 0, version 3: node 2 was skipped (deadline)");
}

TEST(Seat, AnOwnerThatTheCoordinatorDoesNotAnswerLeavesNobodyOut) {
  World w(3, lag(1));
  w.heard = false;
  w.now = Policy{}.suspect_after + 1;  // since the beginning
  w.round({0, 1});
  EXPECT_EQ(w.lineage(0).version, 0);
  ASSERT_TRUE(w.seat(0).due(Timer::close)) << "it looks again";
  w.heard = true;
  w.later(Policy{}.heartbeat);
  EXPECT_EQ(w.lineage(0).version, 1);
}

TEST(Seat, WithEverybodyInNoAnswerOfTheCoordinatorIsNeeded) {
  World w(3, lag(1));
  w.heard = false;
  w.now = Policy{}.suspect_after + 1;
  for (int n : {0, 1, 2}) w.contribute(n);
  w.settle();
  EXPECT_EQ(w.lineage(2).version, 1);
}

// --- what was lost on the way

TEST(Seat, ALostContributionIsAskedAboutAndSentAgain) {
  World w(2, lag(0));
  const Micros first = Policy{}.remind_pause(0);
  w.contribute(1);
  w.wire.clear();
  w.contribute(0);
  w.settle();
  EXPECT_EQ(w.seat(1).due(Timer::remind), first);
  w.later(first - 1);
  EXPECT_EQ(w.under_way<Remind>(0), 0);
  w.later(1);
  EXPECT_EQ(w.under_way<Remind>(0), 1);
  EXPECT_EQ(w.seat(1).due(Timer::remind), w.now + Policy{}.remind_pause(1)) << "longer each time";
  w.settle();
  EXPECT_EQ(w.lineage(1).version, 1);
  EXPECT_FALSE(w.seat(1).due(Timer::remind));
}

TEST(Seat, AQuestionAboutWhatIsThereChangesNothing) {
  World w(3, lag(0));
  w.contribute(1);
  w.settle();
  const Owner before = w.seat(0).rounds();
  w.later(Policy{}.remind_after);
  w.settle([](const Send& s) { return is<Call>(s); });
  EXPECT_EQ(w.seat(0).rounds(), before);
  EXPECT_EQ(w.outbox(1).size(), 1u);
  EXPECT_TRUE(w.seat(0).called()) << "node 1 waits for it, and for node 2";
}

TEST(Seat, ResultsThatSettleYoungerContributionsDoNotPutAQuestionOff) {
  World w(3, lag(2));
  w.contribute(2);
  w.wire.clear();
  const auto due = w.seat(2).due(Timer::remind);
  w.round({0, 1});
  w.contribute(2);
  w.round({0, 1});
  ASSERT_EQ(w.outbox(2).size(), 1u);
  EXPECT_EQ(w.outbox(2)[0].sequence, 1u);
  EXPECT_EQ(w.seat(2).due(Timer::remind), due);
}

TEST(Seat, TheNextContributionIsAskedAboutAsSoonAsTheFirst) {
  World w(2, lag(0));
  w.contribute(1);
  w.later(Policy{}.remind_after);
  w.contribute(0);
  w.settle();
  ASSERT_EQ(w.lineage(1).version, 1);
  w.contribute(1);
  EXPECT_EQ(w.seat(1).due(Timer::remind), w.now + Policy{}.remind_pause(0));
}

TEST(Seat, AResultThatComesAgainChangesNothing) {
  World w(2, lag(0));
  w.round({0, 1});
  const Seat before = w.seat(1);
  w.deliver(1, {{0, 0}, 1, 0, w.told[0].results.at(0)});
  EXPECT_EQ(w.seat(1), before);
  EXPECT_TRUE(w.wire.empty());
}

TEST(Seat, ALostResultIsFetched) {
  World w(2, lag(0));
  for (int n : {0, 1}) w.contribute(n);
  w.settle(is<Result>);
  EXPECT_EQ(w.lineage(1).version, 0);
  for (int i = 0; i < 2; ++i) w.later(Policy{}.remind_after), w.settle();
  EXPECT_EQ(w.lineage(1), w.lineage(0));
  EXPECT_EQ(w.told[1].results.size(), 1u);
  EXPECT_EQ(w.told[1].adopted, 0);
}

TEST(Seat, AResultWithoutItsPredecessorIsNotAppliedAndTheGapIsFetched) {
  World w(3, lag(3));
  w.contribute(2);
  const auto to_two = [](const Send& s) { return s.to == 2 && is<Result>(s); };
  for (int i = 0; i < 2; ++i) {
    for (int n : {0, 1}) w.contribute(n);
    w.settle(to_two);
    w.later(Policy{}.grace);
    w.settle(to_two);
  }
  w.round({0, 1});
  EXPECT_EQ(w.lineage(2), w.lineage(0));
  EXPECT_EQ(w.told[2].adopted, 0);
  std::vector<Version> order;
  for (const Result& r : w.told[2].results) order.push_back(r.version);
  EXPECT_EQ(order, (std::vector<Version>{1, 2, 3}));
}

TEST(Seat, WhoMissedMoreThanTheOwnerKeepsGetsState) {
  World w(4, lag(1));
  w.contribute(3);
  const Send own = w.wire.front();
  w.settle([](const Send& s) { return is<Contribution>(s); });
  w.deliver(own);
  const auto to_three = [](const Send& s) { return s.to == 3 && !is<Return>(s); };
  const int missed = lag(1).log_results() + 1;
  for (int i = 0; i < missed; ++i) {
    for (int n : {0, 1, 2}) w.contribute(n);
    w.settle(to_three);
    w.later(Policy{}.grace);
    w.settle(to_three);
    if (w.lineage(0).version > i) continue;
    // It lags too far by now to be left out: it abstains.
    Contribution nothing = w.draft(0, 0);
    nothing.node = 3;
    nothing.sequence = 100 + static_cast<uint64_t>(i);
    nothing.settled = 1;
    nothing.mode = Mode::delta;
    w.deliver(0, {{3, 0}, 1, 0, nothing});
    w.settle(to_three);
  }
  ASSERT_EQ(w.lineage(0).version, missed);
  ASSERT_EQ(w.lineage(3).version, 0);
  for (int i = 0; i < 3; ++i) w.later(Policy{}.remind_pause(8)), w.settle();
  EXPECT_EQ(w.told[3].adopted, 1);
  EXPECT_EQ(w.lineage(3), w.lineage(0));
  ASSERT_EQ(w.told[3].applied.size(), 1u) << "STATE says that it holds the open contribution";
  EXPECT_EQ(w.told[3].applied[0].sequence, 1u);
  EXPECT_TRUE(w.outbox(3).empty());
}

TEST(Seat, AfterAReconnectionWhatIsOpenIsSentAgainToTheOwnerOnly) {
  World w(3, lag(0));
  w.contribute(2);
  w.wire.clear();
  w.reconnected(2, 1);
  EXPECT_TRUE(w.wire.empty());
  w.reconnected(2, 0);
  EXPECT_EQ(w.under_way<Contribution>(0), 1);
}

// --- other numbers

TEST(Seat, AWrongHashIsReportedAndMendedByState) {
  World w(2, lag(0));
  w.wrong = 1;
  w.round({0, 1});
  ASSERT_FALSE(w.told[1].reports.empty());
  EXPECT_EQ(w.told[1].reports[0].kind, Report::Kind::mismatch);
  EXPECT_EQ(w.told[1].reports[0].text,
            "fragment 0, version 1: this node computed other numbers than the owner (the hashes "
            "differ); it takes those of node 0");
  EXPECT_EQ(w.told[1].adopted, 1);
  EXPECT_EQ(w.lineage(1), w.lineage(0));
}

TEST(Seat, AContributionOnOtherParametersComesBackWithTheRightOnes) {
  World w(2, lag(1));
  w.round({0, 1});
  Contribution c = w.draft(1);
  ++c.anchor_hash;
  w.contribute(1, c);
  w.settle();
  ASSERT_EQ(w.told[0].reports.size(), 1u);
  EXPECT_EQ(w.told[0].reports[0].kind, Report::Kind::mismatch);
  EXPECT_EQ(w.told[0].reports[0].node, 1);
  ASSERT_EQ(w.told[1].returned.size(), 1u);
  EXPECT_EQ(w.told[1].returned[0].reason, ReturnReason::mismatch);
  EXPECT_EQ(w.told[1].adopted, 1);
  EXPECT_EQ(w.lineage(1), w.lineage(0));
}

// --- views

TEST(Seat, MessagesOfAnotherEpochAreIgnored) {
  World w(2, lag(1));
  w.contribute(1);
  const Contribution c = w.outbox(1)[0];
  Result r;
  r.version = 1;
  r.roster = {{1, 0, 1, 1, 0, 1, 1}};
  const std::vector<MessageBody> bodies = {
      c,
      Remind{c},
      r,
      Return{1, ReturnReason::late},
      Resend{1},
      Call{0},
      Fetch{0, 99, true},
      State{Lineage{3, 5, 7, Mode::delta, 4, 0, false, {}}, {}, {}, {}},
      Start{3, 5},
      Established{}};
  w.wire.clear();
  for (int node : {0, 1})
    for (const MessageBody& body : bodies)
      for (Epoch epoch : {0, 2}) {
        const Seat before = w.seat(node);
        w.deliver(node, {{1 - node, 0}, epoch, 0, body});
        EXPECT_EQ(w.seat(node), before) << body.index();
        EXPECT_TRUE(w.wire.empty()) << body.index();
      }
}

TEST(Seat, AnOlderViewChangesNothing) {
  World w(2, lag(1));
  const Seat before = w.seat(0);
  w.install(view_of(1, {{0, 0}}, 0), {0});
  EXPECT_EQ(w.seat(0), before);
}

TEST(Seat, AnEpochBeginsWithLastFromEverybodyAndTheCoordinatorsWord) {
  World w(3, lag(1));
  w.confirms = false;
  w.contribute(2);
  w.wire.clear();
  const View next = view_of(2, {{0, 0}, {1, 0}, {2, 0}}, 1);
  w.install(next, {0, 1});
  w.settle();
  EXPECT_FALSE(w.seat(1).ready());
  EXPECT_EQ(w.seat(1).waits_for(), Nodes{2});
  EXPECT_FALSE(w.seat(0).may_contribute(0)) << "nobody contributes meanwhile";
  w.install(next, {2});
  w.settle();
  EXPECT_FALSE(w.seat(1).ready()) << "refused";
  EXPECT_EQ(w.seat(1).waits_for(), Nodes{kCoordinator});
  w.confirms = true;
  w.later(Policy{}.remind_pause(8));
  w.settle();
  for (int n : {0, 1, 2}) {
    EXPECT_TRUE(w.seat(n).ready()) << n;
    EXPECT_EQ(w.seat(n).ready_epoch(), 2u) << n;
  }
  ASSERT_EQ(w.seat(1).rounds().inbox().size(), 1u) << "what was open is offered again";
  EXPECT_EQ(w.seat(1).rounds().inbox()[0].node, 2);
  for (int n : {0, 1}) w.contribute(n);
  w.settle();
  EXPECT_EQ(nodes_in(w.told[1].results.at(0)), (Nodes{0, 1, 2}));
  EXPECT_EQ(w.lineage(0), w.lineage(1));
}

TEST(Seat, ALastThatComesBeforeItsViewCounts) {
  World w(2, lag(1));
  const View next = view_of(2, {{0, 0}, {1, 0}}, 0);
  w.install(next, {1});
  w.settle();
  w.install(next, {0});
  w.settle();
  EXPECT_TRUE(w.seat(0).ready());
  EXPECT_TRUE(w.seat(1).ready());
}

TEST(Seat, TheGreatestReadyEpochThenVersionGoesOn) {
  struct Case {
    Last one, two;
    int from;
  };
  for (const Case& c : {Case{{1, 5, 50}, {2, 3, 30}, 2}, Case{{2, 3, 30}, {1, 5, 50}, 1},
                        Case{{2, 4, 40}, {2, 3, 30}, 1}, Case{{2, 3, 30}, {2, 4, 40}, 2}}) {
    World w(3, lag(1));
    w.install(view_of(3, {{0, 0}, {1, 0}, {2, 0}}, 0), {0});
    w.deliver(0, {{1, 0}, 3, 0, c.one});
    w.deliver(0, {{2, 0}, 3, 0, c.two});
    EXPECT_EQ(w.seat(0).waits_for(), Nodes{c.from});
    EXPECT_EQ(w.under_way<Fetch>(c.from), 1);
    EXPECT_EQ(w.under_way<Fetch>(3 - c.from), 0);
  }
}

TEST(Seat, LastNamesTheEpochInWhichItWasReadyNotThatOfItsNewestResult) {
  World w(2, lag(1));
  w.round({0, 1});
  w.install(view_of(2, {{0, 0}, {1, 0}}, 0), {0, 1});
  w.settle();
  ASSERT_TRUE(w.seat(1).ready());
  w.install(view_of(3, {{0, 0}, {1, 0}}, 0), {1});
  ASSERT_EQ(w.under_way<Last>(0), 1);
  const Last last = std::get<Last>(w.wire.back().message.body);
  EXPECT_EQ(last, (Last{2, 1, w.lineage(1).chain})) << "no round closed in epoch 2";
}

TEST(Seat, AnOwnerThatIsBehindCatchesUpFirst) {
  World w(3, lag(1));
  for (int n : {0, 1, 2}) w.contribute(n);
  w.settle([](const Send& s) { return s.to == 1 && is<Result>(s); });
  ASSERT_EQ(w.lineage(1).version, 0);
  w.install(view_of(2, {{1, 0}, {2, 0}}, 1), {1, 2});
  w.settle();
  EXPECT_TRUE(w.seat(1).ready());
  EXPECT_EQ(w.lineage(1).version, 1);
  EXPECT_EQ(w.lineage(1), w.lineage(2));
  EXPECT_TRUE(w.outbox(1).empty()) << "its contribution was in the result";
}

TEST(Seat, WhatADroppedTailHeldBecomesProgressAgain) {
  World w(3, lag(1));
  for (int n : {0, 1, 2}) w.contribute(n);
  w.settle(is<Result>);  // only the owner has version 1
  ASSERT_EQ(w.told[0].applied.size(), 1u);
  w.install(view_of(2, {{1, 0}, {2, 0}}, 1), {1, 2});
  w.settle();
  ASSERT_EQ(w.lineage(1).version, 1) << "what was open there makes another version 1";
  ASSERT_NE(w.lineage(1).chain, w.lineage(0).chain);
  w.install(view_of(3, {{0, 0}, {1, 0}, {2, 0}}, 1), {0, 1, 2});
  w.settle();
  EXPECT_EQ(w.told[0].adopted, 1);
  ASSERT_EQ(w.told[0].restored.size(), 1u);
  EXPECT_EQ(w.told[0].restored[0].sequence, 1u);
  EXPECT_EQ(w.lineage(0), w.lineage(1));
  EXPECT_TRUE(w.seat(0).ready());
  for (int n : {1, 2}) EXPECT_EQ(w.told[n].applied.size(), 1u) << n;
}

TEST(Seat, AProcessOutsideTheViewFollowsTheOwner) {
  World w(3, lag(1));
  w.round({0, 1, 2});
  w.restart(2, 1);
  const View without = view_of(2, {{0, 0}, {1, 0}}, 0);
  w.install(without, {0, 1, 2});
  EXPECT_EQ(w.seat(2).status().version, -2) << "it has no numbers";
  for (int i = 0; i < 2; ++i) w.settle(), w.later(Policy{}.remind_pause(8));
  w.settle();
  EXPECT_EQ(w.told[2].adopted, 1);
  w.round({0, 1});
  EXPECT_EQ(w.told[2].adopted, 1);
  EXPECT_EQ(w.told[2].results.size(), 1u) << "then it gets results";
  EXPECT_EQ(w.lineage(2), w.lineage(0));
  EXPECT_FALSE(w.seat(2).ready());
  EXPECT_EQ(w.seat(2).ready_epoch(), 0u) << "it has never been";
  EXPECT_FALSE(w.seat(2).may_contribute(w.lineage(2).version));
}

TEST(Seat, ARestartedProcessIsANewSender) {
  World w(2, lag(1));
  w.contribute(1);
  const Message old = w.wire.front().message;
  w.settle();
  w.contribute(0);
  w.settle();
  w.restart(1, 1);
  w.install(view_of(2, {{0, 0}, {1, 1}}, 0), {0, 1});
  w.settle();
  ASSERT_TRUE(w.seat(1).ready());
  ASSERT_EQ(w.lineage(1), w.lineage(0));
  Message ghost = old;
  ghost.epoch = 2;
  std::get<Contribution>(ghost.body).sequence = 7;
  w.deliver(0, ghost);
  EXPECT_TRUE(w.seat(0).rounds().inbox().empty()) << "the process before it";
  w.contribute(1);
  EXPECT_EQ(w.outbox(1)[0].sequence, 1u);
  w.settle();
  ASSERT_EQ(w.seat(0).rounds().inbox().size(), 1u) << "not that of the process before it";
  EXPECT_EQ(w.seat(0).rounds().inbox()[0].incarnation, 1u);
}

TEST(Seat, IsAValue) {
  World w(2, lag(0));
  w.contribute(0);
  const Seat copy = w.seat(0);
  EXPECT_EQ(copy, w.seat(0));
  w.contribute(1);
  w.settle();
  EXPECT_NE(copy, w.seat(0));
}

}  // namespace
}  // namespace hybridsync
