// Whether an open round may close, and why: the one place where waiting is decided. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/policy.h"
#include "hybridsync/decide/schedule.h"

namespace hybridsync {

// One member as the owner sees it.
struct Standing {
  int node = -1;
  bool in = false;     // a contribution of it waits for this round
  Version newest = 0;  // version on top of which the newest one that was taken was offered
  Version has = 0;     // the newest version that it is known to keep
  Version missed = 0;  // the newest result without a contribution of it
  static void visit(auto& s, auto&& f) { f(s.node, s.in, s.newest, s.has, s.missed); }
  bool operator==(const Standing&) const = default;
};

struct OpenRound {
  Version version = 0;  // on top of which it is
  Mode mode = Mode::gradient;
  std::vector<Standing> standings;  // of all members, ascending by node
  bool work = false;                // somebody in it did not abstain
  std::optional<Micros> opened;     // when its first contribution came
  std::optional<Micros> called;     // when CALL was sent
  bool may_skip = true;             // the coordinator has answered recently
};

// The round stays open: for whom, in a sentence, and when to ask again (never: only a message can
// change it).
struct WaitFor {
  std::vector<int> missing;
  std::string why;
  std::optional<Micros> until = {};
  bool permission = false;  // of the coordinator: may come at any moment
};
// Send CALL to those that are missing, once; then ask again.
struct CallFor {
  std::vector<int> missing;
};
// It closes. skipped: members that are further behind than they may lag.
struct CloseNow {
  std::vector<int> missing;
  std::vector<int> skipped;
  std::string why;
};
using CloseDecision = std::variant<WaitFor, CallFor, CloseNow>;

// In this order:
//   nobody is in                                       wait
//   every member is in                                 close; this needs nobody's permission
//   s = 0, or gradient mode                            wait for everybody, for ever if need be
//   fewer in than the quorum, or all of them abstain   wait
//   not called yet                                     call
//   everybody missing lags by less than s versions     close after the grace time
//   a deadline is set                                  close at the deadline, skipping those
//   further behind otherwise                                          wait for those further behind
// Closing without somebody also needs may_skip: a node that is cut off must not train into a tail
// that will be dropped.
CloseDecision close_decision(const OpenRound& round, Micros now, const Policy& policy);

}  // namespace hybridsync
