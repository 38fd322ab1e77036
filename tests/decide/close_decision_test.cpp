// When a round may close, line by line of the table in the header, each with its sentence.
#include "hybridsync/decide/close_decision.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hybridsync {
namespace {

constexpr Version kVersion = 10;
constexpr Micros kOpened = 5'000, kCalled = 6'000, kGrace = 2'000, kDeadline = 10'000;

Standing in(int node) { return {node, true, kVersion, 0, 0}; }
Standing lags(int node, int64_t versions) { return {node, false, kVersion - versions, 0, 0}; }

OpenRound round_of(std::vector<Standing> standings) {
  return {kVersion, Mode::delta, std::move(standings), true, kOpened, kCalled, true};
}

Policy stale(int staleness, Micros deadline = 0) {
  Policy policy;
  policy.staleness = staleness;
  policy.deadline = deadline;
  policy.grace = kGrace;
  return policy;
}

// A decision as one line.
std::string said(const CloseDecision& decision) {
  std::ostringstream line;
  const auto list = [&](const char* what, const std::vector<int>& nodes) {
    line << what;
    for (int node : nodes) line << ' ' << node;
  };
  if (const auto* call = std::get_if<CallFor>(&decision)) list("call", call->missing);
  if (const auto* close = std::get_if<CloseNow>(&decision)) {
    list("close without", close->missing);
    list(" skipping", close->skipped);
    line << ": " << close->why;
  }
  if (const auto* wait = std::get_if<WaitFor>(&decision)) {
    list("wait for", wait->missing);
    line << ": " << wait->why;
    if (wait->until) line << ", until " << *wait->until;
    if (wait->permission) line << ", permission";
  }
  return line.str();
}

TEST(CloseDecision, WaitsWhileNobodyIsIn) {
  EXPECT_EQ(said(close_decision(round_of({lags(0, 0), lags(1, 0)}), 0, stale(1))),
            "wait for 0 1: nobody has contributed yet");
}

TEST(CloseDecision, ClosesWhenEverybodyIsInAndNeedsNobodysPermission) {
  OpenRound round = round_of({in(0), in(1)});
  round.may_skip = false;
  round.work = false;
  round.called.reset();
  for (const int s : {0, 1})
    EXPECT_EQ(said(close_decision(round, 0, stale(s))),
              "close without skipping: every member contributed or abstained");
}

TEST(CloseDecision, ASynchronousTierWaitsForEveryMemberForEver) {
  const std::string wait = "wait for 2: a synchronous tier waits for every member";
  OpenRound round = round_of({in(0), in(1), lags(2, 0)});
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(0, kDeadline))), wait);
  round.mode = Mode::gradient;
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(3, kDeadline))), wait);
}

TEST(CloseDecision, WaitsForTheQuorum) {
  OpenRound round = round_of({in(0), lags(1, 0), lags(2, 1)});
  round.called.reset();
  Policy policy = stale(1);
  EXPECT_EQ(said(close_decision(round, 0, policy)), "wait for 1 2: the quorum is not in");
  policy.quorum = 1;
  EXPECT_EQ(said(close_decision(round, 0, policy)), "call 1 2");
  policy.quorum = kQuorumAll;
  round.standings[1].in = true;
  EXPECT_EQ(said(close_decision(round, 0, policy)), "wait for 2: the quorum is not in");
}

TEST(CloseDecision, NodesThatHaveFinishedDoNotRunAheadOfOneThatTrains) {
  OpenRound round = round_of({in(0), in(1), lags(2, 0)});
  round.work = false;
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(1, kDeadline))),
            "wait for 2: everybody who is in abstains");
}

TEST(CloseDecision, CallsBeforeAnythingElseHappensWithoutSomebody) {
  OpenRound round = round_of({in(0), in(1), lags(2, 0)});
  round.called.reset();
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(1))), "call 2");
}

TEST(CloseDecision, WhoLagsWithinTheStalenessHasTheGraceTime) {
  for (const int64_t behind : {0, 1}) {
    const OpenRound round = round_of({in(0), in(1), lags(2, behind)});
    EXPECT_EQ(said(close_decision(round, kCalled + kGrace - 1, stale(2))),
              "wait for 2: called, within the grace time, until 8000");
    EXPECT_EQ(said(close_decision(round, kCalled + kGrace, stale(2))),
              "close without 2 skipping: quorum; the others lag within the staleness");
  }
}

// Its contribution would be one version too old for the round after this one.
TEST(CloseDecision, WhoLagsByTheWholeStalenessIsWaitedFor) {
  const OpenRound round = round_of({in(0), in(1), lags(2, 2)});
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(2))),
            "wait for 2: they are further behind than they may lag, and no deadline is set");
}

TEST(CloseDecision, WhoIsFurtherBehindIsWaitedForForEverWithoutADeadline) {
  const OpenRound round = round_of({in(0), in(1), in(2), lags(3, 0), lags(4, 2)});
  EXPECT_EQ(said(close_decision(round, 1'000'000'000, stale(1))),
            "wait for 4: they are further behind than they may lag, and no deadline is set");
}

TEST(CloseDecision, WhoIsFurtherBehindIsSkippedAtTheDeadline) {
  const OpenRound round = round_of({in(0), in(1), in(2), lags(3, 0), lags(4, 2)});
  const Policy policy = stale(1, kDeadline);
  EXPECT_EQ(said(close_decision(round, kOpened + kDeadline - 1, policy)),
            "wait for 3 4: within the deadline, until 15000");
  EXPECT_EQ(said(close_decision(round, kOpened + kDeadline, policy)),
            "close without 3 4 skipping 4: deadline");
}

TEST(CloseDecision, AfterALateQuorumTheGraceTimeOutlastsTheDeadline) {
  OpenRound round = round_of({in(0), in(1), lags(2, 2)});
  round.called = kOpened + kDeadline;
  EXPECT_EQ(said(close_decision(round, kOpened + kDeadline, stale(1, kDeadline))),
            "wait for 2: within the deadline, until 17000");
}

TEST(CloseDecision, ADeadlineDoesNotConcernWhoLagsWithinTheStaleness) {
  const OpenRound round = round_of({in(0), in(1), lags(2, 1)});
  EXPECT_EQ(said(close_decision(round, kCalled + kGrace, stale(2, kDeadline))),
            "close without 2 skipping: quorum; the others lag within the staleness");
}

TEST(CloseDecision, WithoutTheCoordinatorsAnswerNobodyIsLeftOut) {
  const std::string wait =
      "wait for 2: the coordinator has not answered lately, so nobody may be skipped, permission";
  for (const int64_t behind : {1, 2}) {
    OpenRound round = round_of({in(0), in(1), lags(2, behind)});
    round.may_skip = false;
    EXPECT_EQ(said(close_decision(round, kOpened + kDeadline, stale(1, kDeadline))), wait);
  }
}

TEST(CloseDecision, OfTwoNodesOneIsAQuorum) {
  EXPECT_EQ(said(close_decision(round_of({in(0), lags(1, 1)}), kCalled + kGrace, stale(2))),
            "close without 1 skipping: quorum; the others lag within the staleness");
}

}  // namespace
}  // namespace hybridsync
