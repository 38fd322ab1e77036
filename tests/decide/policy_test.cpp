#include "hybridsync/decide/policy.h"

#include <gtest/gtest.h>

#include "hybridsync/config/load.h"
#include "hybridsync/decide/schedule.h"

namespace hybridsync {
namespace {

constexpr Micros kMilli = 1000, kSecond = 1000 * kMilli;

Config tier(const std::string& keys) {
  return parse("[[tier]]\n[[tier]]\nsize = 5\n" + keys, "d.toml");
}

Config delayed(const std::string& keys) { return tier("strategy = 'delayed'\n" + keys); }

TEST(Policy, ByDefaultIsThatOfASynchronousTier) {
  EXPECT_EQ(make_policy(Config{}, 0), Policy{});
  EXPECT_EQ(make_policy(tier("strategy = 'periodic'"), 0), Policy{});
  EXPECT_EQ(make_policy(delayed(""), 0), Policy{});
}

TEST(Policy, TakesTheKeys) {
  const Policy policy =
      make_policy(delayed("staleness = 2\ndeadline = '1500 ms'\nquorum = 4\nlate = 'return'"), 0);
  EXPECT_EQ(policy.staleness, 2);
  EXPECT_EQ(policy.deadline, 1500 * kMilli);
  EXPECT_EQ(policy.quorum_of(5), 4);
  EXPECT_EQ(policy.late, Late::return_);
}

TEST(Policy, ADeadlineNeverBecomesNone) {
  EXPECT_EQ(make_policy(delayed("staleness = 1\ndeadline = 1e-9"), 0).deadline, 1);
}

TEST(Policy, ShortRoundTripsLeaveTheLeastTimes) {
  const Policy policy = make_policy(delayed(""), 1 * kMilli);
  EXPECT_EQ(policy.grace, 2 * kMilli);
  EXPECT_EQ(policy.remind_after, kSecond);
  EXPECT_EQ(policy.heartbeat, 100 * kMilli);
  EXPECT_EQ(policy.suspect_after, 302 * kMilli);
}

TEST(Policy, LongRoundTripsLengthenTheTimes) {
  const Policy policy = make_policy(delayed(""), 200 * kMilli);
  EXPECT_EQ(policy.grace, 400 * kMilli);
  EXPECT_EQ(policy.remind_after, 4 * kSecond);
  EXPECT_EQ(policy.heartbeat, 200 * kMilli);
  EXPECT_EQ(policy.suspect_after, 1000 * kMilli);
}

TEST(Policy, RemindersBecomeRarer) {
  const Policy policy;
  EXPECT_EQ(policy.remind_pause(0), kSecond);
  EXPECT_EQ(policy.remind_pause(1), 2 * kSecond);
  EXPECT_EQ(policy.remind_pause(2), 4 * kSecond);
  EXPECT_EQ(policy.remind_pause(3), 8 * kSecond);
  EXPECT_EQ(policy.remind_pause(1000), 8 * kSecond);
}

TEST(Policy, QuorumOfViews) {
  const auto table = [](int quorum) {
    Policy policy;
    policy.quorum = quorum;
    std::vector<int> needed;
    for (int members = 1; members <= 5; ++members) needed.push_back(policy.quorum_of(members));
    return needed;
  };
  EXPECT_EQ(table(kQuorumMajority), (std::vector<int>{1, 1, 2, 3, 3}));
  EXPECT_EQ(table(kQuorumAll), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(table(1), (std::vector<int>{1, 1, 1, 1, 1}));
  EXPECT_EQ(table(3), (std::vector<int>{1, 2, 3, 3, 3}));
}

TEST(Policy, WhatIsKeptFollowsTheStaleness) {
  Policy policy;
  EXPECT_EQ(policy.log_results(), 2);
  EXPECT_EQ(policy.restore_results(), 8);
  policy.staleness = 3;
  EXPECT_EQ(policy.log_results(), 5);
  EXPECT_EQ(policy.restore_results(), 14);
}

std::string complaint(const std::string& deadline, Micros round_trip) {
  const Config config = delayed("staleness = 1\ndeadline = " + deadline);
  return unsuitable(config, make_policy(config, round_trip));
}

TEST(Policy, ADeadlineMustOutlastTheOthersAnswers) {
  EXPECT_EQ(complaint("'none'", kSecond), "");
  EXPECT_EQ(complaint("'101 ms'", 0), "");
  EXPECT_EQ(complaint("'100 ms'", 0),
            "d.toml: tier[1].deadline = \"100 ms\": is not longer than the time between two "
            "heartbeats: \"100 ms\"; set more than that, or \"none\"");
  EXPECT_EQ(complaint("'401 ms'", 200 * kMilli), "");
  EXPECT_EQ(
      complaint("'400 ms'", 200 * kMilli),
      "d.toml: tier[1].deadline = \"400 ms\": is not longer than the grace time, which is two "
      "round trips: \"400 ms\"; set more than that, or \"none\"");
}

TEST(Schedule, DelayedIsPeriodicInWhatRoundsCarry) {
  Config config = delayed("every = 8");
  config.start.every_step = 2;
  const Schedule schedule = make_schedule(config);
  EXPECT_EQ(schedule, (Schedule{Strategy::delayed, 2, 8}));
  EXPECT_EQ(schedule.mode(1), Mode::gradient);
  EXPECT_EQ(schedule.interval(1), 1);
  EXPECT_EQ(schedule.mode(2), Mode::delta);
  EXPECT_EQ(schedule.interval(2), 8);
}

}  // namespace
}  // namespace hybridsync
