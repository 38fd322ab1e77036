// Lanes of several nodes in one thread: real bytes and arithmetic, a wire and a clock of the test's
// own.
#include "hybridsync/sync/lane.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/math/outer.h"
#include "hybridsync/sync/account.h"

namespace hybridsync {
namespace {

constexpr int64_t kCount = 5;
constexpr size_t kBytes = kCount * sizeof(float);
const Schedule kPeriodic{Strategy::delayed, 0, 2};
const Schedule kSynchronous{Strategy::every_step, 0, 1};

using Vector = std::vector<float>;

struct Setup {
  int nodes = 2;
  int staleness = 0;
  Late late = Late::fold;
  Micros deadline = 0;
  Schedule schedule = kPeriodic;
  OuterConfig outer = {};
  int coordinator = -1;  // where it is; none: without heartbeats
};

// A message as it is on the wire.
struct Letter {
  int from = -1;
  int to = -1;
  Channel channel = Channel::control;
  Bytes header;
  Bytes body;
};

// One fragment, owned by node 0; every node with its lane, its account and its parameters.
class Net {
 public:
  explicit Net(const Setup& setup) : setup_(setup) {
    table_ = {setup.nodes, 1, {{0, Real::f32, 0, kCount}}};
    for (int n = 0; n < setup.nodes; ++n) view_.members.push_back({n, 0});
    for (int n = 0; n < setup.nodes; ++n) nodes.push_back(std::make_unique<Node>(*this, n));
    run();
  }

  struct Node {
    Node(Net& net, int self)
        : theta(kCount, 1.0f),
          desk(net.table_, {0}),
          account(net.table_.fragments[0], self, net.setup_.staleness, net.setup_.schedule, desk,
                  [](Values) {}),
          lane(net.options(self), desk,
               [&net, self](int to, Channel channel, Bytes h, SharedBytes b) {
                 net.wire.push_back({self, to, channel, std::move(h), b ? *b : Bytes{}});
               }) {
      if (net.setup_.coordinator == self)
        lane.host(Coordinator({1, 1, false, {self, 0}, net.policy()}, net.view_, false, 0),
                  [](const View&) {});
      lane.begin(net.view_, 0);
      if (net.setup_.schedule.mode(0) == Mode::delta) account.set_anchor(theta);
    }
    // An optimizer step that takes this off every parameter; a contribution if it is due.
    void step(float by, double weight = 1, const SideData* side = nullptr) {
      for (float& x : theta) x -= by;
      account.step({weight, static_cast<int64_t>(weight), 0, 0});
      if (account.wants_to_contribute())
        account.contribute(std::span<const float>(theta), false, side);
    }
    Account::Change apply() {
      Vector out(kCount);
      const auto change = account.apply(std::span<const float>(theta), std::span<float>(out));
      if (change.moved || account.mode() == Mode::gradient) theta = out;
      return change;
    }
    Vector anchor() const {
      const auto s = std::get<0>(account.anchor());
      return {s.begin(), s.end()};
    }
    const Lineage& lineage() const { return lane.seats().at(0).lineage(); }

    Vector theta;  // gradient mode: the newest mean
    Desk desk;
    Account account;
    Lane lane;
  };

  using Loses = std::function<bool(const Letter&)>;
  // Ticks and delivers until nothing is under way.
  void run(const Loses& loses = [](const Letter&) { return false; }) {
    for (auto& n : nodes) n->lane.tick(now);
    while (!wire.empty()) {
      Letter letter = std::move(wire.front());
      wire.pop_front();
      if (loses(letter)) continue;
      bytes_sent += letter.body.size();
      deliver(letter);
      for (auto& n : nodes) n->lane.tick(now);
    }
  }
  void later(
      Micros by, const Loses& loses = [](const Letter&) { return false; }) {
    now += by;
    run(loses);
  }
  void deliver(const Letter& letter) {
    nodes[letter.to]->lane.on(Received{letter.from, letter.header, letter.body}, now);
  }
  // Two steps of each of these nodes, the second of which contributes.
  void round(const std::vector<std::pair<int, float>>& learned) {
    for (const auto& [n, by] : learned)
      for (int i = 0; i < 2; ++i) nodes[n]->step(by);
    run();
  }
  void apply() {
    for (auto& n : nodes) (void)n->apply();
  }

  Policy policy() const {
    Policy policy;
    policy.staleness = setup_.staleness;
    policy.late = setup_.late;
    policy.deadline = setup_.deadline;
    return policy;
  }
  Lane::Options options(int self) const {
    Lane::Options o;
    o.run_id = "lane";
    o.self = {self, 0};
    o.table = table_;
    o.schedule = setup_.schedule;
    o.policy = policy();
    o.outer = setup_.outer;
    o.heartbeats = setup_.coordinator >= 0;
    o.coordinator = std::max(0, setup_.coordinator);
    return o;
  }
  // From `from` to node 0, with a body of so many bytes of values and of side data.
  Letter letter(int from, const Message& message, uint64_t values, uint64_t side = 0) const {
    const Bytes body(values + side);
    return {from, 0, Channel::bulk, encode({message, {values, side}}, run_hash("lane"), body),
            body};
  }

  std::vector<std::unique_ptr<Node>> nodes;
  std::deque<Letter> wire;
  Micros now = 0;
  size_t bytes_sent = 0;

 private:
  Setup setup_;
  FragmentTable table_;
  View view_{1, {}, {0}};
};

// --- arithmetic

// What nodes of equal weight agree on, step by step, computed in one place.
struct Reference {
  OuterConfig outer;
  Vector anchor = Vector(kCount, 1.0f);
  Vector momentum = outer.momentum != 0 ? Vector(kCount) : Vector{};
  void round(const std::vector<float>& learned) {
    std::vector<Vector> deltas;
    for (float by : learned) {
      Vector theta = anchor;
      for (int i = 0; i < 2; ++i)
        for (float& x : theta) x -= by;
      Vector delta(kCount);
      subtract(std::span<const float>(anchor), std::span<const float>(theta),
               std::span<float>(delta));
      deltas.push_back(delta);
    }
    std::vector<ConstValues> terms(deltas.begin(), deltas.end());
    Vector mean(kCount);
    weighted_mean(terms, std::vector<double>(learned.size(), 2.0), std::span<float>(mean));
    outer_step(outer, std::span<const float>(mean), std::span<float>(anchor),
               std::span<float>(momentum));
  }
};

TEST(Lane, SynchronousRoundsGiveThePlainPeriodicAverageToTheBit) {
  for (const OuterConfig& outer : {OuterConfig{}, OuterConfig{0.7, 0.9, true}}) {
    Net net({.nodes = 3, .outer = outer});
    Reference reference{outer};
    for (int i = 1; i <= 4; ++i) {
      const std::vector<float> learned = {0.1f * i, 0.03f, -0.07f / i};
      net.round({{0, learned[0]}, {1, learned[1]}, {2, learned[2]}});
      net.apply();
      reference.round(learned);
      for (const auto& n : net.nodes) {
        EXPECT_EQ(n->theta, reference.anchor) << i;
        EXPECT_EQ(n->anchor(), reference.anchor) << i;
      }
    }
  }
}

TEST(Lane, WeightsAreThoseOfTheContributions) {
  Net net({});
  for (int i = 0; i < 2; ++i) net.nodes[0]->step(0.25f, 3), net.nodes[1]->step(1.25f, 1);
  net.run();
  net.apply();
  EXPECT_EQ(net.nodes[1]->theta, Vector(kCount, 1 - 2 * 0.5f));
}

TEST(Lane, GradientRoundsGiveEverybodyTheMean) {
  Net net({.schedule = kSynchronous});
  const auto give = [&](int node, double weight, float value) {
    Contribution draft;
    draft.weight = weight;
    draft.anchor_hash = 7;
    net.nodes[node]->account.step({weight, static_cast<int64_t>(weight), 0, 0});
    net.nodes[node]->account.contribute_gradient(draft, Vector(kCount, value), nullptr);
  };
  give(0, 1, 1.0f);
  give(1, 3, 5.0f);
  net.run();
  net.apply();
  for (const auto& n : net.nodes) EXPECT_EQ(n->theta, Vector(kCount, 4.0f));
  give(0, 0, NAN);
  give(1, 1, 2.0f);
  net.run();
  net.apply();
  for (const auto& n : net.nodes) EXPECT_EQ(n->theta, Vector(kCount, 2.0f)) << "one abstained";
}

TEST(Lane, WhenAllAbstainTheVersionAdvancesAndNothingMoves) {
  Net net({});
  for (auto& n : net.nodes)
    for (int i = 0; i < 2; ++i) n->step(0, 0);
  net.run();
  for (auto& n : net.nodes) {
    EXPECT_EQ(n->apply().rounds, 0);
    EXPECT_EQ(n->lineage().version, 1);
    EXPECT_EQ(n->theta, Vector(kCount, 1.0f));
  }
  EXPECT_EQ(net.bytes_sent, 0u) << "no numbers travel";
}

TEST(Lane, SendsOneContributionUpAndOneResultDown) {
  Net net({.nodes = 4});
  net.round({{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  EXPECT_EQ(net.bytes_sent, 2 * 3 * kBytes);
}

// --- not everybody

TEST(Lane, WorkThatWasLateIsAppliedOnce) {
  Net net({.nodes = 3, .staleness = 1});
  net.nodes[2]->step(4);
  net.round({{0, 1}, {1, 1}});
  net.later(net.policy().grace);
  net.apply();
  EXPECT_EQ(net.nodes[2]->lineage().version, 1);
  EXPECT_EQ(net.nodes[2]->theta, Vector(kCount, 1 - 2 - 4)) << "the others' mean, and its own work";
  net.nodes[2]->step(4);  // called
  net.round({{0, 1}, {1, 1}});
  EXPECT_EQ(net.nodes[2]->apply().age, 1);
  net.apply();
  for (const auto& n : net.nodes) {
    EXPECT_EQ(n->theta, Vector(kCount, -5)) << "-1 - (2 + 2 + 8) / 3";
    EXPECT_EQ(n->desk.ledger().contributed, n->desk.ledger().applied);
    EXPECT_EQ(n->desk.ledger().rounds, 2);
  }
}

TEST(Lane, WhatCameBackIsContributedAgain) {
  Net net({.nodes = 3, .staleness = 1, .late = Late::return_});
  net.nodes[2]->step(4);
  net.round({{0, 1}, {1, 1}});
  net.later(net.policy().grace);
  net.nodes[2]->step(4);  // does not know of the result yet
  net.run();
  Ledger ledger = net.nodes[2]->desk.ledger();
  EXPECT_EQ(ledger.contributed, (Count{1, 2}));
  EXPECT_EQ(ledger.returned, (Count{1, 2}));
  net.apply();
  EXPECT_EQ(net.nodes[2]->theta, Vector(kCount, 1 - 2 - 8)) << "the result, and its own work";
  net.round({{0, 1}, {1, 1}, {2, 0}});
  net.apply();
  for (const auto& n : net.nodes) EXPECT_EQ(n->theta, net.nodes[0]->theta);
  ledger = net.nodes[2]->desk.ledger();
  EXPECT_EQ(ledger.contributed, (Count{2, 5}));
  EXPECT_EQ(ledger.applied, (Count{1, 3}));
}

TEST(Lane, WhatIsDroppedIsCountedAndGone) {
  Net net({.nodes = 3, .staleness = 1, .late = Late::drop});
  net.nodes[2]->step(4);
  net.round({{0, 1}, {1, 1}});
  net.later(net.policy().grace);
  net.nodes[2]->step(4);
  net.run();
  net.apply();
  const Ledger ledger = net.nodes[2]->desk.ledger();
  EXPECT_EQ(ledger.dropped, (Count{1, 2}));
  EXPECT_EQ(ledger.returned, Count{});
  EXPECT_EQ(net.nodes[2]->theta, Vector(kCount, -1));
}

TEST(Lane, ABusyNodesAbstentionIsInTheLedger) {
  Net net({.nodes = 3, .staleness = 1});
  net.nodes[2]->desk.set_busy(true);
  net.round({{0, 1}, {1, 1}});
  EXPECT_EQ(net.nodes[0]->lineage().version, 1) << "without the grace time";
  const Ledger ledger = net.nodes[2]->desk.ledger();
  EXPECT_EQ(ledger.contributed, (Count{1, 0}));
  EXPECT_EQ(ledger.applied, (Count{1, 0}));
  (void)net.nodes[2]->apply();
  EXPECT_EQ(net.nodes[2]->account.position().unresolved(), 0);
}

TEST(Lane, AnOwnerLeavesNobodyOutWhileTheCoordinatorIsOutOfReach) {
  Net net({.nodes = 3, .staleness = 1, .coordinator = 2});
  const auto cut = [](const Letter& l) { return l.from == 2; };
  net.later(net.policy().suspect_after + 1, cut);
  for (const int n : {0, 1})
    for (int i = 0; i < 2; ++i) net.nodes[n]->step(1);
  net.run(cut);
  net.later(net.policy().heartbeat, cut);
  EXPECT_EQ(net.nodes[0]->lineage().version, 0);
  net.later(net.policy().heartbeat);
  net.later(net.policy().heartbeat);
  EXPECT_EQ(net.nodes[0]->lineage().version, 1);
}

TEST(Lane, WhoIsSkippedIsCountedAtTheOwnerAndReported) {
  Net net({.nodes = 3, .staleness = 2, .deadline = 50'000});
  for (int i = 0; i < 2; ++i) {
    net.round({{0, 1}, {1, 1}});
    net.later(net.policy().grace);
    net.apply();
  }
  net.round({{0, 1}, {1, 1}});
  net.later(50'000);
  EXPECT_EQ(net.nodes[0]->lineage().version, 3);
  EXPECT_EQ(net.nodes[0]->desk.ledger().skipped, (std::vector<int64_t>{0, 0, 1}));
  const auto reports = net.nodes[0]->desk.reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind, Report::Kind::skipped);
  EXPECT_TRUE(net.nodes[0]->desk.reports().empty()) << "told once";
}

// --- what is lost on the way

bool has_body(const Letter& l) { return !l.body.empty(); }

TEST(Lane, WhatWasLostIsSentAgainWithItsNumbers) {
  Net net({});
  for (auto& n : net.nodes)
    for (int i = 0; i < 2; ++i) n->step(1);
  net.run(has_body);  // the contribution
  net.later(net.policy().remind_after, [](const Letter& l) { return l.from == 0 && has_body(l); });
  EXPECT_EQ(net.nodes[0]->lineage().version, 1);
  EXPECT_EQ(net.nodes[1]->lineage().version, 0) << "the result was lost, too";
  for (int i = 0; i < 3; ++i) net.later(8 * net.policy().remind_after);
  net.apply();
  EXPECT_EQ(net.nodes[1]->theta, Vector(kCount, -1));
}

TEST(Lane, OtherNumbersAreMendedByState) {
  Net net({});
  net.round({{0, 0.5f}, {1, 0.25f}});
  net.apply();
  std::get<0>(net.nodes[1]->desk.anchor(0))[3] += 1;  // a bit that flipped
  net.round({{0, 0.5f}, {1, 0.25f}});
  net.apply();
  EXPECT_EQ(net.nodes[1]->desk.ledger().mismatches, 1);
  EXPECT_EQ(net.nodes[1]->anchor(), net.nodes[0]->anchor());
  EXPECT_EQ(net.nodes[1]->theta, net.nodes[0]->theta);
}

TEST(Lane, WhoMissedTooMuchGetsTheAnchorWithItsMomentum) {
  Net net({.staleness = 1, .deadline = 50'000, .outer = {0.7, 0.9, true}});
  const auto cut = [](const Letter& l) { return l.to == 1 || l.from == 1; };
  for (int i = 0; i < 2; ++i) net.nodes[1]->step(0.25f);
  net.run(cut);
  const int missed = net.policy().log_results() + 1;
  for (int i = 0; i < missed; ++i) {
    for (int k = 0; k < 2; ++k) net.nodes[0]->step(0.5f);
    net.run(cut);
    net.later(50'000, cut);
    net.apply();
  }
  ASSERT_EQ(net.nodes[0]->lineage().version, missed);
  ASSERT_EQ(net.nodes[1]->lineage().version, 0);
  for (int i = 0; i < 2; ++i) net.later(8 * net.policy().remind_after);
  net.apply();
  ASSERT_EQ(net.nodes[1]->lineage().version, missed);
  EXPECT_EQ(net.nodes[1]->anchor(), net.nodes[0]->anchor());
  net.round({{0, 0.5f}, {1, 0.25f}});
  net.apply();
  EXPECT_EQ(net.nodes[1]->lineage().version, missed + 1);
  EXPECT_EQ(net.nodes[1]->anchor(), net.nodes[0]->anchor()) << "which took the momentum";
  EXPECT_EQ(net.nodes[1]->desk.ledger().mismatches, 0);
}

TEST(Lane, KeepsABoundedNumberOfPayloads) {
  Net net({.nodes = 3, .staleness = 2});
  size_t most = 0;
  for (int i = 0; i < 60; ++i) {
    net.round({{0, 1}, {1, 1}});
    if (i % 2 == 0) net.round({{2, 1}});
    net.later(net.policy().grace);
    net.apply();
    for (const auto& n : net.nodes) most = std::max(most, n->lane.payloads(0));
  }
  EXPECT_GE(net.nodes[0]->lineage().version, 50);
  // Results, what is restored from them, and the inbox or the outbox.
  const Policy policy = net.policy();
  EXPECT_LE(most, static_cast<size_t>(policy.log_results() + policy.restore_results() + 3 * 3));
}

// --- side data

TEST(Lane, SideDataIsMergedWithoutThatOfLateContributions) {
  Net net({.nodes = 3, .staleness = 1});
  const auto side = [](double mean) { return SideData{{1}, {{1, {mean}, {0}}}, {3}}; };
  const auto steps = [&](int node, const SideData& s) {
    for (int i = 0; i < 2; ++i) net.nodes[node]->step(1, 1, &s);
  };
  net.nodes[2]->step(1);
  steps(0, side(2));
  steps(1, side(4));
  net.run();
  net.later(net.policy().grace);
  const SideData late = side(100);
  net.nodes[2]->step(1, 1, &late);  // on top of version 0
  auto change = net.nodes[1]->apply();
  ASSERT_TRUE(change.side);
  EXPECT_EQ(change.side->batch_norm[0].mean, (std::vector<double>{3}));
  (void)net.nodes[0]->apply();
  steps(0, side(6));
  steps(1, side(8));
  net.run();
  change = net.nodes[1]->apply();
  ASSERT_TRUE(change.side);
  EXPECT_EQ(change.newest.roster.size(), 3u);
  EXPECT_EQ(change.side->batch_norm[0].mean, (std::vector<double>{7}));
}

TEST(Lane, SideDataOfDifferentModelsEndsTheRun) {
  Net net({});
  const SideData one{{1}, {}, {}}, other{{1, 1}, {}, {}};
  for (int i = 0; i < 2; ++i) net.nodes[0]->step(1, 1, &one), net.nodes[1]->step(1, 1, &other);
  net.run();
  EXPECT_EQ(net.nodes[0]->desk.failure().kind, Outcome::Kind::mismatch);
}

// --- what no member sends

Contribution a_contribution(int node, double weight) {
  Contribution c;
  c.node = node;
  c.sequence = c.settled = 1;
  c.mode = Mode::delta;
  c.weight = weight;
  return c;
}

Message about(int from, int fragment, MessageBody body) {
  return {{from, 0}, 1, fragment, std::move(body)};
}

TEST(Lane, RefusesMessagesThatDoNotFit) {
  Result result;
  result.version = 1;
  result.weight = 1;
  struct Case {
    const char* what;
    Message message;
    uint64_t values, side;
  };
  const std::vector<Case> cases = {
      {"too short", about(1, 0, a_contribution(1, 1)), kBytes - 4, 0},
      {"too long", about(1, 0, a_contribution(1, 1)), kBytes + 4, 0},
      {"without numbers", about(1, 0, a_contribution(1, 1)), 0, 0},
      {"numbers of who abstains", about(1, 0, a_contribution(1, 0)), kBytes, 0},
      {"of another node", about(1, 0, a_contribution(2, 1)), kBytes, 0},
      {"no such fragment", about(1, 1, a_contribution(1, 0)), 0, 0},
      {"a negative fragment", about(1, -2, a_contribution(1, 0)), 0, 0},
      {"a result without numbers", about(1, 0, result), 0, 0},
      {"STATE without an anchor", about(1, 0, State{}), 0, 0},
      {"STATE with momentum that nobody has", about(1, 0, State{}), kBytes, kBytes},
      {"CALL with a body", about(1, 0, Call{0}), kBytes, 0},
      {"a heartbeat with a body", about(1, -1, Heartbeat{}), 0, 4},
  };
  for (const Case& c : cases) {
    Net net({.nodes = 3});
    net.deliver(net.letter(1, c.message, c.values, c.side));
    const Outcome failure = net.nodes[0]->desk.failure();
    EXPECT_EQ(failure.kind, Outcome::Kind::mismatch) << c.what;
    EXPECT_EQ(failure.peer, 1) << c.what;
    EXPECT_EQ(net.nodes[0]->lane.payloads(0), 0u) << c.what;
  }
}

TEST(Lane, TakesTheSameMessagesWhenTheyFit) {
  Net net({.nodes = 3});
  net.deliver(net.letter(1, about(1, 0, a_contribution(1, 1)), kBytes));
  EXPECT_TRUE(net.nodes[0]->desk.failure().ok());
  EXPECT_EQ(net.nodes[0]->lane.payloads(0), 1u);
  EXPECT_EQ(net.nodes[0]->lane.seats().at(0).rounds().inbox().size(), 1u);
}

TEST(Lane, RefusesWhatIsNoMessageOfThisSenderAndRun) {
  const Message message = about(1, 0, a_contribution(1, 1));
  const Bytes body(kBytes);
  const auto failure_of = [&](const Letter& letter) {
    Net net({.nodes = 3});
    net.deliver(letter);
    return net.nodes[0]->desk.failure().why;
  };
  Letter good = Net({.nodes = 3}).letter(1, message, kBytes);
  EXPECT_EQ(failure_of(good), "");
  Letter other_sender = good;
  other_sender.from = 2;
  EXPECT_NE(failure_of(other_sender), "");
  Letter flipped = good;
  flipped.body[2] = std::byte{1};
  EXPECT_NE(failure_of(flipped), "");
  Letter cut = good;
  cut.header.resize(cut.header.size() - 1);
  EXPECT_NE(failure_of(cut), "");
  Letter other_run = good;
  other_run.header = encode({message, {kBytes, 0}}, run_hash("another"), body);
  EXPECT_NE(failure_of(other_run), "");
}

// --- peers that go

TEST(Lane, ALostPeerEndsTheRunAndTheMessageSaysTheMoment) {
  Net net({});
  net.nodes[0]->lane.on(PeerLost{1, "broken"}, 0);
  EXPECT_EQ(net.nodes[0]->desk.failure().why,
            "node 1 is gone (broken) while this node was training");
  Net waiting({});
  waiting.round({{0, 1}});
  waiting.nodes[0]->lane.on(PeerLost{1, "broken"}, 0);
  const Outcome failure = waiting.nodes[0]->desk.failure();
  EXPECT_EQ(failure.kind, Outcome::Kind::peer_lost);
  EXPECT_EQ(failure.peer, 1);
  EXPECT_EQ(failure.why,
            "node 1 is gone (broken) while this node waited for fragment 0, version 1");
}

TEST(Lane, WhoLeftInOrderIsNotLost) {
  Net net({});
  net.nodes[1]->lane.leave();
  net.run();
  net.nodes[0]->lane.on(PeerLost{1, "closed"}, 0);
  EXPECT_TRUE(net.nodes[0]->desk.failure().ok());
}

TEST(Lane, WhoStillWaitsForANodeThatLeftKnowsIt) {
  Net net({});
  net.nodes[1]->lane.leave();
  net.run();
  net.round({{0, 1}});
  const Outcome failure = net.nodes[0]->desk.failure();
  EXPECT_EQ(failure.kind, Outcome::Kind::peer_lost);
  EXPECT_EQ(failure.why,
            "node 1 left before training had finished, while this node waited for fragment 0, "
            "version 1");
}

TEST(Lane, OneOfTwoFarewellsIsNotEnough) {
  Net net({});
  net.nodes[1]->lane.leave();
  net.run([](const Letter& l) { return l.channel == Channel::bulk; });
  net.round({{0, 1}});
  EXPECT_TRUE(net.nodes[0]->desk.failure().ok()) << "a contribution may still be on its way";
}

TEST(Lane, IsFinishedWhenEveryMemberIs) {
  Net net({});
  const auto end = [&](int node) {
    auto& n = *net.nodes[node];
    n.account.contribute(std::span<const float>(n.theta), true, nullptr);
    net.run();
  };
  end(0);
  EXPECT_FALSE(net.nodes[0]->lane.finished());
  end(1);
  for (const auto& n : net.nodes) {
    EXPECT_TRUE(n->lane.finished());
    (void)n->apply();
    EXPECT_TRUE(n->account.finished());
  }
}

}  // namespace
}  // namespace hybridsync
