#include "hybridsync/decide/close_decision.h"

#include <algorithm>

#include "hybridsync/decide/planted.h"

namespace hybridsync {
namespace {

std::vector<int> missing_in(const OpenRound& round) {
  std::vector<int> missing;
  for (const Standing& s : round.standings)
    if (!s.in) missing.push_back(s.node);
  return missing;
}

// What a node works on may be as old as its newest contribution. Were this round closed without it
// when that is s versions back, the next one could not take it any more.
std::vector<int> too_far_behind(const OpenRound& round, int staleness) {
  std::vector<int> nodes;
  for (const Standing& s : round.standings)
    if (!s.in && round.version - s.newest >= staleness) nodes.push_back(s.node);
  return nodes;
}

}  // namespace

CloseDecision close_decision(const OpenRound& round, Micros now, const Policy& policy) {
  const std::vector<int> missing = missing_in(round);
  const auto members = static_cast<int>(round.standings.size());
  const int in = members - static_cast<int>(missing.size());
  if (in == 0) return WaitFor{missing, "nobody has contributed yet"};
  if (missing.empty()) return CloseNow{{}, {}, "every member contributed or abstained"};
  if (policy.staleness == 0 || round.mode == Mode::gradient)
    return WaitFor{missing, "a synchronous tier waits for every member"};
  if (in < policy.quorum_of(members)) return WaitFor{missing, "the quorum is not in"};
  // Nodes that have finished would run ahead of one that still trains.
  if (!round.work) return WaitFor{missing, "everybody who is in abstains"};
  if (!round.called) return CallFor{missing};
  const std::vector<int> behind = too_far_behind(round, policy.staleness);
  Micros until = *round.called + policy.grace;
  if (!behind.empty()) {
    if (policy.deadline == 0)
      return WaitFor{behind, "they are further behind than they may lag, and no deadline is set"};
    until = std::max(until, *round.opened + policy.deadline);
  }
  if (now < until || planted(Bug::call_forever))
    return WaitFor{missing,
                   behind.empty() ? "called, within the grace time" : "within the deadline", until};
  if (!round.may_skip)
    return WaitFor{
        missing, "the coordinator has not answered lately, so nobody may be skipped", {}, true};
  if (behind.empty()) return CloseNow{missing, {}, "quorum; the others lag within the staleness"};
  return CloseNow{missing, behind, "deadline"};
}

}  // namespace hybridsync
