// The coordinator and a node's pulse as machines: each rule as a small script of events, and random
// scripts that check what must hold whatever happens.
#include "hybridsync/decide/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "hybridsync/decide/digest.h"
#include "hybridsync/decide/planted.h"
#include "hybridsync/decide/pulse.h"

namespace hybridsync {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Micros kBeat = 100'000, kSilence = 300'000;
using Nodes = std::vector<int>;

View view_of(int members, int fragments) {
  View view{1, {}, {}};
  for (int i = 0; i < members; ++i) view.members.push_back({i, 1});
  for (int f = 0; f < fragments; ++f) view.owners.push_back(f % members);
  return view;
}

CoordinatorConfig config_of(int fragments) {
  CoordinatorConfig config;
  config.fragments = fragments;
  config.policy.heartbeat = kBeat;
  config.policy.suspect_after = kSilence;
  return config;
}

// A coordinator, the nodes as it hears them, and what it did.
struct Script {
  explicit Script(int members, int fragments = 1)
      : Script(config_of(fragments), view_of(members, fragments)) {}
  Script(const CoordinatorConfig& config, const View& first, bool restarted = false)
      : fragments(config.fragments), coordinator(config, first, restarted, 0) {
    for (const Process& p : first.members) {
      incarnation[p.node] = p.incarnation;
      status[p.node].assign(fragments, {first.epoch, 0});
    }
  }

  void take(const CoordinatorActions& actions) {
    last = actions;
    for (const auto& action : actions) {
      if (const auto* event = std::get_if<ViewEvent>(&action)) events.push_back(*event);
    }
  }
  void say(Process from, MessageBody body, Epoch epoch = 0, int fragment = -1) {
    take(coordinator.on({from, epoch, fragment, std::move(body)}, now));
  }
  void say(int node, MessageBody body) { say({node, incarnation[node]}, std::move(body), epoch()); }
  void establish(int node, Epoch epoch, int fragment = 0) {
    say({node, incarnation[node]}, Establish{}, epoch, fragment);
  }
  void beat(int node) {
    status[node].resize(fragments);
    say(node, Heartbeat{++counter, status[node]});
  }
  void ready(int node, Epoch epoch, Version version = 0) {
    status[node].assign(fragments, {epoch, version});
    beat(node);
  }
  void remove(int node) { take(coordinator.remove(node, "told", now)); }
  void tick() { take(coordinator.tick(now)); }
  // Heartbeats of these nodes and a tick, every heartbeat.
  void run(Micros duration, const Nodes& heard, const std::function<void()>& each = {}) {
    for (const Micros end = now + duration; now < end;) {
      now += kBeat;
      for (int node : heard) beat(node);
      if (each) each();
      tick();
    }
  }

  Epoch epoch() const { return coordinator.view().epoch; }
  Nodes members() const {
    Nodes nodes;
    for (const Process& p : coordinator.view().members) nodes.push_back(p.node);
    return nodes;
  }
  const Nodes& owners() const { return coordinator.view().owners; }
  template <class Body>
  Nodes sent() const {
    Nodes to;
    for (const auto& action : last) {
      const auto* send = std::get_if<CoordinatorSend>(&action);
      if (send && std::holds_alternative<Body>(send->message.body)) to.push_back(send->to);
    }
    return to;
  }
  const Message& first_sent() const { return std::get<CoordinatorSend>(last.at(0)).message; }
  bool refused() const { return std::get<Established>(first_sent().body).refused; }

  int fragments;
  Coordinator coordinator;
  Micros now = 0;
  uint64_t counter = 0;
  std::map<int, uint32_t> incarnation;
  std::map<int, std::vector<FragmentStatus>> status;
  CoordinatorActions last;
  std::vector<ViewEvent> events;
};

// --- heartbeats and silence

TEST(Coordinator, AnswersAHeartbeatWithItsCounterAndTheEpoch) {
  Script s(2);
  s.say({1, 1}, Heartbeat{41, {{1, 0}}}, 1);
  ASSERT_EQ(s.last.size(), 1u);
  EXPECT_EQ(s.first_sent().epoch, 1u);
  EXPECT_EQ(std::get<HeartbeatAnswer>(s.first_sent().body).counter, 41u);
}

TEST(Coordinator, SendsTheViewAgainToWhoeverSpeaksOfAnOlderEpoch) {
  Script s(3);
  s.remove(0);
  s.say({1, 1}, Heartbeat{1, {{1, 0}}}, 1);
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(1));
  s.say({1, 1}, Heartbeat{2, {{1, 0}}}, 2);
  EXPECT_THAT(s.sent<ViewMessage>(), IsEmpty());
}

TEST(Coordinator, RemovesWhoWasSilentForSuspectAfterAndNoSooner) {
  Script s(3, 3);
  s.run(kSilence, {0, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 2}));
  s.run(kBeat, {0, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 2}));
  EXPECT_EQ(s.epoch(), 2u);
  EXPECT_THAT(s.events.at(0).why, HasSubstr("node 1 was not heard for 300 ms"));
  EXPECT_FALSE(s.events.at(0).lossy);
}

TEST(Coordinator, WritesTheViewDownBeforeItTellsAnybody) {
  Script s(3);
  s.beat(7);
  s.remove(1);
  ASSERT_TRUE(std::holds_alternative<Persist>(s.last.at(0)));
  EXPECT_EQ(std::get<Persist>(s.last.at(0)).view, s.coordinator.view());
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(0, 1, 2, 7));
}

TEST(Coordinator, RemovesEverybodySilentInOneView) {
  Script s(4);
  s.run(kSilence + kBeat, {0, 3});
  EXPECT_EQ(s.members(), (Nodes{0, 3}));
  EXPECT_EQ(s.epoch(), 2u);
}

TEST(Coordinator, NeverMakesAnEmptyView) {
  Script s(2);
  s.run(2 * kSilence, {});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  EXPECT_EQ(s.epoch(), 1u);
  s.run(kBeat, {1});
  EXPECT_EQ(s.members(), (Nodes{1}));
}

TEST(Coordinator, RestartsItsTimersAfterAPauseOfItsOwn) {
  Script s(2);
  s.run(kBeat, {0, 1});
  s.say(0, Suspect{1});
  s.now += kSilence + kBeat;
  s.tick();
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.run(2 * kBeat, {0});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.run(kBeat, {0});
  EXPECT_EQ(s.members(), (Nodes{0})) << "it is still suspected";
}

TEST(Coordinator, ThatRemovesNobodyAnswersAndConfirmsOnly) {
  CoordinatorConfig config = config_of(1);
  config.removes = false;
  Script s(config, view_of(2, 1));
  s.run(3 * kSilence, {0});
  s.remove(1);
  s.say(1, Leave{});
  s.say({1, 2}, Join{});
  s.beat(5);
  s.tick();
  EXPECT_EQ(s.coordinator.view(), view_of(2, 1));
  s.beat(0);
  EXPECT_THAT(s.sent<HeartbeatAnswer>(), ElementsAre(0));
  s.establish(0, 1);
  EXPECT_FALSE(s.refused());
}

// --- establishing

TEST(Coordinator, ConfirmsTheCurrentEpochToItsOwnerOnly) {
  Script s(3);
  s.remove(0);
  ASSERT_THAT(s.owners(), ElementsAre(1));
  s.establish(1, 1);
  EXPECT_TRUE(s.refused());
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(1));
  s.establish(2, 2);
  EXPECT_TRUE(s.refused());
  s.establish(0, 2);
  EXPECT_TRUE(s.refused());
  EXPECT_EQ(s.coordinator.established(0), 1u);
  s.establish(1, 2);
  EXPECT_FALSE(s.refused());
  EXPECT_EQ(s.coordinator.established(0), 2u);
}

TEST(Coordinator, TheAnswerNamesTheEpochAndFragmentThatWereAskedFor) {
  Script s(3, 2);
  s.remove(0);
  s.establish(1, 1, 1);
  EXPECT_EQ(s.first_sent().epoch, 1u);
  EXPECT_EQ(s.first_sent().fragment, 1);
}

TEST(Coordinator, ConfirmsAgainAndForgetsNobodyByThat) {
  Script s(3);
  s.remove(0);
  s.establish(1, 2);
  s.ready(2, 2);
  s.establish(1, 2);
  EXPECT_FALSE(s.refused());
  s.remove(1);
  EXPECT_FALSE(s.events.back().lossy);
}

TEST(Coordinator, AHeartbeatEstablishesNothing) {
  Script s(3);
  s.remove(0);
  s.ready(1, 2);
  EXPECT_EQ(s.coordinator.established(0), 1u);
}

TEST(Coordinator, IgnoresAFragmentThatDoesNotExist) {
  Script s(2);
  s.establish(0, 1, 3);
  EXPECT_THAT(s.last, IsEmpty());
}

// --- overlap

TEST(Coordinator, SaysWhichFragmentsAreLostWithTheLastThatWasReady) {
  Script s(3, 2);
  s.remove(0);
  ASSERT_THAT(s.owners(), ElementsAre(2, 1));
  s.establish(1, 2, 1);
  s.remove(1);
  EXPECT_EQ(s.members(), (Nodes{2}));
  EXPECT_TRUE(s.events.back().lossy);
  EXPECT_THAT(s.events.back().lost, ElementsAre(1));
  EXPECT_THAT(s.events.back().why, HasSubstr("fragments 1 is lost"));
}

TEST(Coordinator, LosesNothingWhileAnotherIsKnownToBeReady) {
  Script s(3);
  s.remove(0);
  s.establish(1, 2);
  s.ready(2, 2);
  s.remove(1);
  EXPECT_FALSE(s.events.back().lossy);
}

TEST(Coordinator, MeasuresASecondChangeAgainstTheLastEstablishedEpoch) {
  Script s(4);
  s.remove(0);
  s.establish(1, 2);
  s.ready(2, 2);
  s.remove(1);  // epoch 3 is never established
  s.ready(3, 1);
  s.remove(2);
  EXPECT_EQ(s.epoch(), 4u);
  EXPECT_TRUE(s.events.back().lossy);
}

TEST(Coordinator, BringsBackWhoIsHeardWhenOnlyThatPreventsALoss) {
  Script s(4);
  s.remove(0);
  s.establish(1, 2);
  s.ready(2, 2);
  s.remove(1);
  s.beat(1);
  EXPECT_EQ(s.members(), (Nodes{2, 3}));
  s.remove(2);
  EXPECT_EQ(s.members(), (Nodes{1, 3}));
  EXPECT_FALSE(s.events.back().lossy);
}

TEST(Coordinator, BringsBackNobodyWhoIsNotHeard) {
  Script s(4);
  s.remove(0);
  s.establish(1, 2);
  s.ready(2, 2);
  s.remove(1);
  s.remove(2);
  EXPECT_EQ(s.members(), (Nodes{3}));
  EXPECT_TRUE(s.events.back().lossy);
}

TEST(Coordinator, AProcessThatWasStartedAgainIsNotReady) {
  Script s(2);
  s.say({0, 2}, Join{});
  EXPECT_EQ(s.members(), (Nodes{1}));
  s.remove(1);
  EXPECT_EQ(s.epoch(), 2u) << "1 may come back";
  s.say({1, 2}, Join{});
  EXPECT_EQ(s.coordinator.view().members, (std::vector<Process>{{0, 2}}));
  EXPECT_TRUE(s.events.back().lossy);
}

// --- owners

TEST(Coordinator, OwnersAreStickyAndOrphansGoToTheLeastLoaded) {
  Script s(4, 7);
  ASSERT_THAT(s.owners(), ElementsAre(0, 1, 2, 3, 0, 1, 2));
  s.remove(1);
  EXPECT_THAT(s.owners(), ElementsAre(0, 3, 2, 3, 0, 0, 2));
}

TEST(Coordinator, WhoJoinsOwnsNothingUntilSomethingIsOrphaned) {
  Script s(2, 4);
  s.run(kBeat, {0, 1, 5});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 5}));
  EXPECT_THAT(s.owners(), ElementsAre(0, 1, 0, 1));
  s.remove(1);
  EXPECT_THAT(s.owners(), ElementsAre(0, 5, 0, 5));
}

TEST(Coordinator, ANewProcessDoesNotInheritWhatItsNodeOwned) {
  CoordinatorConfig config = config_of(4);
  config.min_members = 2;
  View first = view_of(2, 4);
  first.owners = {1, 1, 1, 0};
  Script s(config, first);
  s.say({1, 2}, Join{});
  EXPECT_EQ(s.coordinator.view().members, (std::vector<Process>{{0, 1}, {1, 2}}));
  EXPECT_THAT(s.owners(), ElementsAre(1, 0, 1, 0)) << "by load";
  EXPECT_FALSE(s.events.back().lossy);
}

// --- suspicion

TEST(Coordinator, ConfirmsASuspicionWhenTheNodeIsNotHeardForTwoHeartbeats) {
  Script s(3);
  s.run(kBeat, {0, 1, 2});
  s.say(0, Suspect{1});
  s.run(2 * kBeat, {0, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 2}));
  s.now += 1;
  s.tick();
  EXPECT_EQ(s.members(), (Nodes{0, 2}));
  EXPECT_THAT(s.events.back().why, HasSubstr("node 1 lost a connection"));
}

TEST(Coordinator, ASuspectThatIsHeardStays) {
  Script s(3);
  s.say(0, Suspect{1});
  s.run(5 * kSilence, {0, 1, 2});
  EXPECT_EQ(s.epoch(), 1u);
}

TEST(Coordinator, OnlyMembersSuspectMembers) {
  Script s(2);
  s.beat(5);
  const Coordinator before = s.coordinator;
  s.say(5, Suspect{1});
  s.say(0, Suspect{5});
  s.say(0, Suspect{0});
  EXPECT_EQ(s.coordinator, before);
}

TEST(Coordinator, OfACutTheOneThatMostSuspectIsRemoved) {
  Script s(3);
  const auto accuse = [&] {
    s.say(1, Suspect{0});
    s.say(2, Suspect{0});
    s.say(0, Suspect{1});
  };
  s.run(kSilence, {0, 1, 2}, accuse);
  EXPECT_EQ(s.epoch(), 1u);
  s.run(kBeat, {0, 1, 2}, accuse);
  EXPECT_EQ(s.members(), (Nodes{1, 2}));
  EXPECT_THAT(s.events.back().why, HasSubstr("node 0 and other members cannot reach each other"));
}

TEST(Coordinator, OfACutBetweenEqualsTheGreaterNodeIsRemoved) {
  Script s(3);
  s.run(kSilence + kBeat, {0, 1, 2}, [&] {
    s.say(1, Suspect{2});
    s.say(2, Suspect{1});
  });
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
}

TEST(Coordinator, OfACutBetweenEqualsTheOneWhoseRemovalLosesNothingIsRemoved) {
  Script s(3);
  s.remove(0);
  ASSERT_THAT(s.owners(), ElementsAre(1));
  s.remove(1);
  s.beat(1);
  s.establish(2, 3);
  s.ready(2, 3);
  s.run(kBeat, {1, 2});
  ASSERT_EQ(s.members(), (Nodes{1, 2}));
  s.run(kSilence + kBeat, {1, 2}, [&] {
    s.say(1, Suspect{2});
    s.say(2, Suspect{1});
  });
  EXPECT_EQ(s.members(), (Nodes{2}));
}

TEST(Coordinator, ItsOwnNodeIsNeverBlamedForACut) {
  CoordinatorConfig config = config_of(1);
  config.self = {2, 1};
  Script s(config, view_of(3, 1));
  s.run(kSilence + kBeat, {0, 1, 2}, [&] {
    s.say(0, Suspect{2});
    s.say(2, Suspect{0});
  });
  EXPECT_EQ(s.members(), (Nodes{1, 2}));
}

TEST(Coordinator, ASuspicionThatIsNotRenewedIsForgotten) {
  Script s(3);
  s.run(kSilence, {0, 1, 2}, [&] { s.say(1, Suspect{2}); });
  s.run(kSilence + kBeat, {0, 1, 2});
  s.run(kSilence, {0, 1, 2}, [&] { s.say(1, Suspect{2}); });
  EXPECT_EQ(s.epoch(), 1u);
}

TEST(Coordinator, WhoWasRemovedForACutStaysOutForAWhile) {
  Script s(3);
  s.run(kSilence + kBeat, {0, 1, 2}, [&] { s.say(1, Suspect{2}); });
  ASSERT_EQ(s.members(), (Nodes{0, 1}));
  s.establish(0, 2);
  s.run(10 * kSilence - kBeat, {0, 1, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.run(kBeat, {0, 1, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 2}));
}

// --- joining and leaving

TEST(Coordinator, AJoinerIsSentTheViewAndWaitsAsALearner) {
  Script s(2);
  s.say({5, 3}, Join{});
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(5));
  s.run(kBeat, {0, 1});
  EXPECT_EQ(s.members(), (Nodes{0, 1})) << "it has reported nothing yet";
}

TEST(Coordinator, LearnersAreLetInTogetherWhenWithinOneVersion) {
  Script s(2, 2);
  s.status[1] = {{1, 9}, {1, 4}};
  s.status[5] = {{0, 7}, {0, 4}};
  s.status[6] = {{0, 8}, {0, 3}};
  s.status[7] = {{0, 9}, {0, 9}};
  s.run(kBeat, {0, 1, 5, 6, 7});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 6, 7}));
  EXPECT_EQ(s.epoch(), 2u);
  EXPECT_FALSE(s.events.back().lossy);
  EXPECT_EQ(s.events.back().why, "node 6 joins; node 7 joins");
}

TEST(Coordinator, LearnersWaitUntilEveryFragmentIsEstablished) {
  Script s(3, 2);
  s.remove(2);
  s.establish(0, 2, 0);
  s.run(kBeat, {0, 1, 5});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.establish(1, 2, 1);
  s.run(kBeat, {0, 1, 5});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 5}));
}

TEST(Coordinator, ASilentLearnerIsNotLetIn) {
  Script s(3);
  s.remove(2);
  s.beat(5);
  s.run(kSilence + kBeat, {0, 1});
  s.establish(0, 2);
  s.run(kBeat, {0, 1});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
}

TEST(Coordinator, ARemovedMemberThatIsHeardAgainIsALearner) {
  Script s(3);
  s.remove(2);
  s.establish(0, 2);
  s.run(kBeat, {0, 1});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.run(kBeat, {0, 1, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1, 2}));
}

TEST(Coordinator, ANewerProcessOfAMembersNodeMeansThatTheOlderIsDead) {
  Script s(2);
  s.say({1, 2}, Join{});
  EXPECT_EQ(s.members(), (Nodes{0}));
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(0, 1));
  EXPECT_EQ(s.events.back().why, "node 1 was started again");
}

TEST(Coordinator, AnOlderProcessIsIgnoredAltogether) {
  Script s(2);
  s.say({1, 2}, Join{});
  const Coordinator before = s.coordinator;
  s.say({1, 1}, Heartbeat{9, {{1, 0}}}, 1);
  s.say({1, 1}, Establish{}, 2, 0);
  EXPECT_THAT(s.last, IsEmpty());
  EXPECT_EQ(s.coordinator, before);
}

TEST(Coordinator, TheOnlyMembersNewProcessStartsAlone) {
  Script s(1, 2);
  s.say({0, 2}, Join{});
  EXPECT_EQ(s.coordinator.view().members, (std::vector<Process>{{0, 2}}));
  EXPECT_THAT(s.events.back().lost, ElementsAre(0, 1));
}

TEST(Coordinator, WhoLeavesIsRemovedAtOnceAndNoLearner) {
  Script s(3);
  s.run(kBeat, {0, 1, 2});
  s.say(2, Leave{});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(s.events.back().why, "node 2 left");
  s.beat(2);
  EXPECT_THAT(s.last, IsEmpty());
  s.establish(0, 2);
  s.run(kBeat, {0, 1, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  s.remove(1);
  EXPECT_THAT(s.sent<ViewMessage>(), ElementsAre(0, 1));
}

TEST(Coordinator, TheLastOneMayNotLeaveTheView) {
  Script s(1);
  s.say(0, Leave{});
  EXPECT_EQ(s.members(), (Nodes{0}));
}

TEST(Coordinator, WhoLeavesIsKeptUntilNothingIsLostByThat) {
  Script s(3);
  s.remove(0);
  s.establish(1, 2);
  s.say(1, Leave{});
  EXPECT_EQ(s.members(), (Nodes{1, 2}));
  s.run(kBeat, {1, 2, 5});
  EXPECT_EQ(s.members(), (Nodes{1, 2})) << "and nobody comes meanwhile";
  s.ready(2, 2);
  s.tick();
  EXPECT_EQ(s.members(), (Nodes{2}));
  EXPECT_FALSE(s.events.back().lossy);
}

TEST(Coordinator, WhoLeavesAndFallsSilentIsNotWaitedFor) {
  Script s(3);
  s.remove(0);
  s.establish(1, 2);
  s.say(1, Leave{});
  s.run(kSilence + kBeat, {2});
  EXPECT_EQ(s.members(), (Nodes{2}));
  EXPECT_TRUE(s.events.back().lossy);
}

// --- too few

TEST(Coordinator, DoesNotGoBelowMinMembersAndTakesBackWhoIsHeard) {
  CoordinatorConfig config = config_of(1);
  config.min_members = 2;
  Script s(config, view_of(2, 1));
  s.run(2 * kSilence, {0});
  EXPECT_EQ(s.epoch(), 1u);
  s.run(2 * kSilence, {0, 1});
  EXPECT_EQ(s.epoch(), 1u);
}

TEST(Coordinator, ALearnerTakesTheMissingPlaceAtOnceTheFurthestFirst) {
  CoordinatorConfig config = config_of(1);
  config.min_members = 2;
  Script s(config, view_of(2, 1));
  s.status[0] = {{1, 30}};
  s.status[5] = {{0, 3}};
  s.status[6] = {{0, 4}};
  s.run(kSilence + kBeat, {0, 5, 6});
  EXPECT_EQ(s.members(), (Nodes{0, 6}));
  EXPECT_FALSE(s.events.back().lossy);
}

TEST(Coordinator, OnlyALearnerThatKnowsAsMuchReplacesASilentLastMember) {
  Script behind(1);
  behind.ready(0, 1, 9);
  behind.ready(5, 0, 3);
  behind.remove(0);
  EXPECT_EQ(behind.members(), (Nodes{0}));
  behind.ready(5, 0, 8);
  behind.tick();
  EXPECT_EQ(behind.members(), (Nodes{5}));
  EXPECT_TRUE(behind.events.back().lossy);
}

// --- a restart of the coordinator

struct Restarted : testing::Test {
  static View written() {
    View view = view_of(3, 1);
    view.epoch = 4;
    return view;
  }
  Script s{config_of(1), written(), true};
};

TEST_F(Restarted, ChangesNothingUntilSuspectAfterHasPassed) {
  s.say({1, 2}, Join{});
  s.incarnation[1] = 2;
  s.run(kSilence - kBeat, {0, 1, 2});
  EXPECT_EQ(s.epoch(), 4u);
  s.run(kBeat, {0, 1, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 2}));
  EXPECT_EQ(s.epoch(), 5u);
}

TEST_F(Restarted, AddsAPauseOfItsOwnToThat) {
  s.say({1, 2}, Join{});
  s.run(kBeat, {0, 2});
  s.now += kSilence + kBeat;
  s.tick();
  s.run(kSilence - kBeat, {0, 2});
  EXPECT_EQ(s.epoch(), 4u);
  s.run(kBeat, {0, 2});
  EXPECT_EQ(s.members(), (Nodes{0, 2}));
}

TEST_F(Restarted, RelearnsWhatWasEstablished) {
  s.status[0] = {{4, 7}};
  s.status[1] = {{3, 7}};
  s.status[2] = {{4, 6}};
  s.run(kSilence, {0, 1, 2});
  EXPECT_EQ(s.coordinator.established(0), 4u);
  s.remove(0);
  EXPECT_FALSE(s.events.back().lossy);
  s.remove(2);
  EXPECT_TRUE(s.events.back().lossy);
}

TEST_F(Restarted, AnOlderEpochCountsWhenEverybodyIsHeard) {
  s.status[0] = s.status[1] = s.status[2] = {{3, 7}};
  s.run(kSilence, {0, 1, 2});
  s.remove(0);
  EXPECT_FALSE(s.events.back().lossy);
}

TEST_F(Restarted, NobodyIsReadyInAnUnknownEpoch) {
  s.status[0] = s.status[1] = s.status[2] = {{0, 7}};
  s.run(kSilence, {0, 1, 2});
  s.remove(0);
  EXPECT_TRUE(s.events.back().lossy);
}

TEST_F(Restarted, SaysLossyWhenTheUnheardMayHaveKnownMore) {
  s.status[0] = s.status[1] = {{3, 7}};
  s.run(kSilence + kBeat, {0, 1});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  EXPECT_TRUE(s.events.back().lossy);
}

TEST_F(Restarted, SaysSoAgainUntilTheFragmentIsEstablished) {
  s.status[0] = s.status[1] = {{3, 7}};
  s.run(kSilence + kBeat, {0, 1});
  s.remove(1);
  EXPECT_EQ(s.epoch(), 6u);
  EXPECT_TRUE(s.events.back().lossy);
}

TEST_F(Restarted, LosesNothingWhenTheNewestEpochIsAmongTheHeard) {
  s.status[0] = {{3, 7}};
  s.status[1] = {{4, 7}};
  s.run(kSilence + kBeat, {0, 1});
  EXPECT_EQ(s.members(), (Nodes{0, 1}));
  EXPECT_FALSE(s.events.back().lossy);
}

// --- as a value

TEST(Coordinator, TheOrderOfHeartbeatsDoesNotMatter) {
  Script a(2), b(2);
  for (Script* s : {&a, &b}) {
    s->status[0] = {{1, 4}};
    s->status[1] = {{1, 5}};
  }
  a.beat(0);
  a.beat(1);
  a.beat(1);
  b.beat(1);
  b.status[1] = {{1, 3}};
  b.beat(1);  // late
  b.beat(0);
  EXPECT_EQ(a.coordinator, b.coordinator);
  EXPECT_EQ(Digest().add(a.coordinator).value(), Digest().add(b.coordinator).value());
}

TEST(Coordinator, TheDigestSeesEveryField) {
  std::set<uint64_t> seen;
  Script s(3);
  const auto differs = [&] { return seen.insert(Digest().add(s.coordinator).value()).second; };
  EXPECT_TRUE(differs());
  s.ready(1, 1, 1);
  EXPECT_TRUE(differs());
  s.say(1, Suspect{2});
  EXPECT_TRUE(differs());
  s.now += 1;
  s.tick();
  EXPECT_TRUE(differs());
  s.beat(0);
  EXPECT_TRUE(differs());
  s.remove(0);
  EXPECT_TRUE(differs());
  s.establish(1, 2);
  EXPECT_TRUE(differs());
  s.say(2, Leave{});
  EXPECT_TRUE(differs());
}

// --- planted bugs

struct Planted : testing::Test {
  ~Planted() override { planted_bug = Bug::none; }
};

TEST_F(Planted, NoConfirmConfirmsAnOldEpoch) {
  planted_bug = Bug::no_confirm;
  Script s(3);
  s.remove(0);
  s.establish(0, 1);
  EXPECT_FALSE(s.refused());
}

TEST_F(Planted, NoOverlapTakesEverybodyForReady) {
  planted_bug = Bug::no_overlap;
  Script s(3);
  s.remove(0);
  s.establish(1, 2);
  s.remove(1);
  EXPECT_FALSE(s.events.back().lossy);
}

// --- whatever happens

// Nodes that do what nodes may do, in any order, and an account of what the coordinator was told.
class Chaos {
 public:
  explicit Chaos(unsigned seed) : random_(seed) {
    const int members = pick(1, 4);
    config_ = config_of(pick(1, 3));
    config_.min_members = pick(1, std::min(2, members));
    if (pick(0, 1)) config_.self = {0, 1};
    const View first = view_of(members, config_.fragments);
    coordinator_.emplace(config_, first, false, 0);
    written_ = seen_ = first;
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back({{i, 1}, std::vector<FragmentStatus>(config_.fragments)});
      for (auto& status : nodes_[i].status) status.ready_epoch = i < members ? 1 : 0;
    }
    established_.assign(config_.fragments, 1);
    for (const Process& p : first.members) {
      for (int f = 0; f < config_.fragments; ++f) known_.insert({p.node, p.incarnation, f, 1});
    }
  }

  void step() {
    static constexpr int kWeights[] = {30, 14, 10, 6, 3, 2, 2, 2, 6, 1};
    std::discrete_distribution<int> what(std::begin(kWeights), std::end(kWeights));
    Node& node = nodes_[pick(0, kNodes - 1)];
    switch (what(random_)) {
      case 0:
        return beat(node);
      case 1:
        return tick();
      case 2:
        return establish();
      case 3:
        return become_ready(node);
      case 4:
        return say(node.process, Suspect{pick(0, kNodes - 1)});
      case 5:
        return restart(node);
      case 6:
        return say(node.process, Leave{});
      case 7:
        return check(coordinator_->remove(node.process.node, "told", now_));
      case 8:
        ++node.status[pick(0, config_.fragments - 1)].version;
        return;
      default:
        return restart_coordinator();
    }
  }

  int views() const { return views_; }
  int lossy() const { return lossy_; }

 private:
  static constexpr int kNodes = 6;
  struct Node {
    Process process;
    std::vector<FragmentStatus> status;
  };
  using Known = std::tuple<int, uint32_t, int, Epoch>;

  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  void say(const Process& from, MessageBody body, int fragment = -1) {
    say(from, std::move(body), fragment, seen_.epoch - pick(0, 1));
  }
  void say(const Process& from, MessageBody body, int fragment, Epoch epoch) {
    check(coordinator_->on({from, epoch, fragment, std::move(body)}, now_));
  }
  void beat(Node& node) {
    for (int f = 0; f < config_.fragments; ++f) {
      known_.insert({node.process.node, node.process.incarnation, f, node.status[f].ready_epoch});
    }
    say(node.process, Heartbeat{1, node.status});
  }
  void tick() {
    now_ += pick(0, 12) == 0 ? kSilence + kBeat : pick(0, 1) * kBeat;
    check(coordinator_->tick(now_));
  }
  void establish() {
    const int f = pick(0, config_.fragments - 1);
    Node& owner = nodes_[pick(0, 4) ? seen_.owners[f] : pick(0, kNodes - 1)];
    const Epoch asked = seen_.epoch - (pick(0, 4) == 0);
    const bool right =
        asked == seen_.epoch && seen_.has(owner.process) && seen_.owners[f] == owner.process.node;
    confirmed_.reset();
    say(owner.process, Establish{}, f, asked);
    if (confirmed_ && *confirmed_) {
      EXPECT_TRUE(right);
      established_[f] = asked;
      owner.status[f].ready_epoch = asked;
      known_.insert({owner.process.node, owner.process.incarnation, f, asked});
    }
  }
  // By START of the last established epoch, which may be older than the view.
  void become_ready(Node& node) {
    const int f = pick(0, config_.fragments - 1);
    if (seen_.has(node.process) && established_[f] == seen_.epoch) {
      node.status[f].ready_epoch = established_[f];
    }
  }
  void restart(Node& node) {
    if (pick(0, 1)) return say({node.process.node, node.process.incarnation - 1}, Join{});
    ++node.process.incarnation;
    std::fill(node.status.begin(), node.status.end(), FragmentStatus{});
    say(node.process, Join{});
  }
  void restart_coordinator() {
    coordinator_.emplace(config_, written_, true, now_);
    ++restarts_;
    said_before_.merge(said_);
  }

  void check(const CoordinatorActions& actions) {
    const ViewEvent* event = nullptr;
    for (const auto& action : actions) {
      if (const auto* persist = std::get_if<Persist>(&action)) written_ = persist->view;
      if (const auto* e = std::get_if<ViewEvent>(&action)) event = e;
      const auto* send = std::get_if<CoordinatorSend>(&action);
      if (!send) continue;
      if (const auto* view = std::get_if<ViewMessage>(&send->message.body)) {
        EXPECT_EQ(view->view, written_) << "sent before it was written down";
      }
      if (const auto* e = std::get_if<Established>(&send->message.body)) confirmed_ = !e->refused;
    }
    const View& view = coordinator_->view();
    ASSERT_EQ(view, written_);
    if (view == seen_) return;
    check_change(view, event);
    seen_ = view;
  }

  void check_change(const View& view, const ViewEvent* event) {
    ++views_;
    ASSERT_EQ(view.epoch, seen_.epoch + 1);
    ASSERT_GE(static_cast<int>(view.members.size()), config_.min_members);
    for (size_t i = 1; i < view.members.size(); ++i) {
      ASSERT_LT(view.members[i - 1].node, view.members[i].node);
    }
    ASSERT_EQ(static_cast<int>(view.owners.size()), config_.fragments);
    for (int f = 0; f < config_.fragments; ++f) check_owner(view, f);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->epoch, view.epoch);
    ASSERT_FALSE(event->why.empty());
    ASSERT_EQ(event->lossy, !event->lost.empty());
    lossy_ += event->lossy;
    for (int f = 0; f < config_.fragments; ++f) {
      const bool lost = std::count(event->lost.begin(), event->lost.end(), f) > 0;
      check_overlap(view, f, lost);
    }
  }
  void check_owner(const View& view, int f) {
    ASSERT_TRUE(view.find(view.owners[f])) << "fragment " << f << " has no owner";
    const Process* before = seen_.find(seen_.owners[f]);
    if (view.has(*before)) {
      EXPECT_EQ(view.owners[f], before->node) << "owners are sticky";
    }
  }
  // After its own restart the coordinator may know less than it was told before, and is careful;
  // but it does not remember what it said before.
  void check_overlap(const View& view, int f, bool lost) {
    const auto known = [&](const Process& p) {
      return known_.contains({p.node, p.incarnation, f, established_[f]});
    };
    const bool held = std::any_of(view.members.begin(), view.members.end(), known);
    const bool said = said_before_.contains({f, established_[f]});
    if (!lost) {
      EXPECT_TRUE(held || said) << "fragment " << f << " lost in silence";
    }
    if (restarts_ == 0 && held) {
      EXPECT_FALSE(lost) << "fragment " << f << " is not lost";
    }
    if (lost) said_.insert({f, established_[f]});
  }

  std::mt19937 random_;
  CoordinatorConfig config_;
  std::optional<Coordinator> coordinator_;
  std::vector<Node> nodes_;
  View written_, seen_;
  std::vector<Epoch> established_;
  std::set<Known> known_;  // (node, incarnation, fragment, epoch): ready, as far as was said
  std::set<std::pair<int, Epoch>> said_, said_before_;  // (fragment, epoch): lost
  std::optional<bool> confirmed_;
  Micros now_ = 0;
  int restarts_ = 0;
  int views_ = 0, lossy_ = 0;
};

TEST(Coordinator, HoldsItsPromisesInRandomScripts) {
  int views = 0, lossy = 0;
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    Chaos chaos(seed);
    for (int i = 0; i < 80; ++i) chaos.step();
    views += chaos.views();
    lossy += chaos.lossy();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(views, 20'000);
  EXPECT_GT(lossy, 1'000);
  EXPECT_GT(views - lossy, 10'000);
}

// --- pulse

struct PulseTest : testing::Test {
  static Policy policy() { return config_of(1).policy; }
  Pulse pulse{policy(), 1000};
};

TEST_F(PulseTest, BeatsAtOnceAndThenEveryHeartbeat) {
  EXPECT_EQ(pulse.tick(1000), 1u);
  EXPECT_EQ(pulse.tick(1000 + kBeat - 1), std::nullopt);
  EXPECT_EQ(pulse.tick(1000 + kBeat), 2u);
}

TEST_F(PulseTest, BeatsOnceAfterAPause) {
  EXPECT_EQ(pulse.tick(1000), 1u);
  EXPECT_EQ(pulse.tick(1000 + 7 * kBeat), 2u);
  EXPECT_EQ(pulse.tick(1000 + 7 * kBeat + 1), std::nullopt);
}

TEST_F(PulseTest, TheLeaseCountsFromWhenTheAnsweredHeartbeatWasSent) {
  EXPECT_FALSE(pulse.heard(1000));
  EXPECT_EQ(pulse.answered_at(), Pulse::kNever);
  EXPECT_EQ(pulse.tick(2000), 1u);
  pulse.answered(1, 50'000);
  EXPECT_EQ(pulse.answered_at(), 2000);
  EXPECT_TRUE(pulse.heard(2000 + kSilence));
  EXPECT_FALSE(pulse.heard(2000 + kSilence + 1));
}

TEST_F(PulseTest, LateRepeatedAndUnknownAnswersDoNoHarm) {
  EXPECT_EQ(pulse.tick(0 + 1000), 1u);
  EXPECT_EQ(pulse.tick(1000 + kBeat), 2u);
  pulse.answered(2, 1000 + kBeat + 10);
  pulse.answered(1, 1000 + kBeat + 20);
  EXPECT_EQ(pulse.answered_at(), 1000 + kBeat);
  const Pulse before = pulse;
  pulse.answered(2, 1000 + 2 * kBeat);
  pulse.answered(77, 1000 + 2 * kBeat);
  EXPECT_EQ(pulse, before);
}

TEST_F(PulseTest, SmoothsTheRoundTrip) {
  EXPECT_EQ(pulse.round_trip(), 0);
  EXPECT_EQ(pulse.tick(1000), 1u);
  pulse.answered(1, 1000 + 8000);
  EXPECT_EQ(pulse.round_trip(), 8000);
  EXPECT_EQ(pulse.tick(1000 + kBeat), 2u);
  pulse.answered(2, 1000 + kBeat + 16'000);
  EXPECT_EQ(pulse.round_trip(), 9000);
}

TEST_F(PulseTest, KeepsNoMoreThanSuspectAfterOfUnansweredBeats) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(pulse.tick(1000 + i * kBeat));
  pulse.answered(46, 1000 + 49 * kBeat);
  EXPECT_EQ(pulse.answered_at(), Pulse::kNever);
  pulse.answered(47, 1000 + 49 * kBeat);
  EXPECT_EQ(pulse.answered_at(), 1000 + 46 * kBeat);
}

}  // namespace
}  // namespace hybridsync
