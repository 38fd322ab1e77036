#include "hybridsync/decide/policy.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "hybridsync/config/place.h"
#include "hybridsync/config/units.h"

namespace hybridsync {
namespace {

constexpr Micros kMilli = 1000, kSecond = 1000 * kMilli;
constexpr int kMostDoublings = 3;

// 0 is none, and a duration that somebody set never becomes that.
Micros micros(double seconds) {
  return seconds > 0 ? std::max<Micros>(1, std::llround(seconds * 1e6)) : 0;
}

std::string text_of(Micros duration) {
  return quantity_text(static_cast<double>(duration) / 1e6, duration_units());
}

}  // namespace

int Policy::quorum_of(int members) const {
  if (quorum != kQuorumMajority) return std::min(quorum, members);
  return members == 2 ? 1 : members / 2 + 1;
}

Micros Policy::remind_pause(int reminders) const {
  return remind_after << std::clamp(reminders, 0, kMostDoublings);
}

Policy make_policy(const Config& config, Micros round_trip) {
  assert(round_trip >= 0);
  const TierConfig tier = config.outer_tier();
  Policy policy;
  policy.staleness = tier.staleness;
  policy.deadline = micros(tier.deadline);
  policy.quorum = tier.quorum;
  policy.late = tier.late;
  policy.grace = std::max(2 * kMilli, 2 * round_trip);
  policy.remind_after = std::max(kSecond, 20 * round_trip);
  policy.heartbeat = std::max(100 * kMilli, round_trip);
  policy.suspect_after = 3 * policy.heartbeat + 2 * round_trip;
  return policy;
}

std::string unsuitable(const Config& config, const Policy& policy) {
  const Micros least = std::max(policy.grace, policy.heartbeat);
  if (policy.deadline == 0 || policy.deadline > least) return "";
  const std::string what = policy.grace > policy.heartbeat
                               ? "the grace time, which is two round trips: "
                               : "the time between two heartbeats: ";
  return message(
      config.source, "tier[1].deadline", text_of(policy.deadline),
      "is not longer than " + what + text_of(least) + "; set more than that, or \"none\"");
}

}  // namespace hybridsync
