// Bugs that tests plant: each leaves one rule of the protocol out, so that the simulator and the
// explorer can be seen to find it. Only tests that define HYBRIDSYNC_PLANTED_BUGS have them; in
// every other build planted() is the constant false.
#pragma once

#include <string_view>

namespace hybridsync {

enum class Bug {
  none,
  no_fence,            // messages of another epoch are taken
  no_dedup,            // a contribution that the lineage holds is taken again
  no_inbox_dedup,      // ... or that waits in the inbox already
  no_restore,          // own contributions of a dropped tail are forgotten
  no_overlap,          // a view without a ready member of the last established epoch
  no_confirm,          // an owner becomes ready without asking the coordinator
  by_version,          // the lineage with the greatest version wins, whatever its epoch
  by_result_epoch,     // ... with the greatest epoch of its last result
  close_twice,         // a second result for the same version
  no_age_limit,        // contributions older than s are taken
  return_and_take,     // a contribution is returned and taken
  keep_returned,       // a returned contribution stays unresolved as well
  forget_outbox,       // outboxes are not sent again in a new epoch
  no_incarnation,      // a restarted process is taken for the old one
  ignore_stable,       // own applied contributions are forgotten at once
  state_keeps_outbox,  // STATE does not settle what it holds
  call_forever,        // CALL is sent but the round is not closed afterwards
  no_gap_check,        // a result is applied on top of another version than its predecessor
  learner_votes,       // a process that was never ready counts as ready at a view change
  unbounded_log,       // results are kept for ever
  blank_joins,         // a restarted process takes part without numbers
  stable_at_once,      // the owner says that everybody has what it has just made
  state_without_past,  // STATE does not say which contributions it holds
  lose_returned,       // what comes back does not become progress again
};

#ifdef HYBRIDSYNC_PLANTED_BUGS
inline thread_local Bug planted_bug = Bug::none;
inline bool planted(Bug bug) { return planted_bug == bug; }
#else
constexpr bool planted(Bug) { return false; }
#endif

}  // namespace hybridsync
