#include "hybridsync/decide/member.h"

#include <algorithm>
#include <cassert>

#include "hybridsync/decide/planted.h"

namespace hybridsync {

Member::Member(Process self, Policy policy, Schedule schedule) : self_(self), policy_(policy) {
  lineage_.mode = schedule.mode(0);
  lineage_.interval = schedule.interval(0);
}

size_t Member::most_unresolved() const {
  return lineage_.mode == Mode::gradient ? 1 : static_cast<size_t>(policy_.staleness) + 1;
}

bool Member::may_contribute(Version at) const {
  return at > last_at_ && outbox_.size() < most_unresolved();
}

Contribution Member::contribute(Contribution draft) {
  assert(may_contribute(draft.at) && draft.base <= draft.at && draft.at <= lineage_.version);
  draft.node = self_.node;
  draft.incarnation = self_.incarnation;
  draft.sequence = ++sequence_;
  draft.mode = lineage_.mode;
  last_at_ = draft.at;
  outbox_.push_back(draft);
  return current(draft);
}

Contribution Member::current(Contribution contribution) const {
  contribution.settled = outbox_.front().sequence;
  contribution.has = lineage_.version;
  return contribution;
}

std::vector<Contribution> Member::resend() const {
  std::vector<Contribution> all;
  for (const Contribution& c : outbox_) all.push_back(current(c));
  return all;
}

std::optional<Contribution> Member::take_back(uint64_t sequence) {
  const auto at = std::find_if(outbox_.begin(), outbox_.end(),
                               [&](const Contribution& c) { return c.sequence == sequence; });
  if (at == outbox_.end()) return std::nullopt;
  Contribution taken = *at;
  // Otherwise, when everybody's offer came back, nobody could offer anything.
  last_at_ = std::min(last_at_, taken.at - 1);
  if (!planted(Bug::keep_returned)) outbox_.erase(at);
  return taken;
}

std::vector<Contribution> Member::extend(const Result& result, bool keep_values) {
  lineage_.extend(result);
  log_.push_back(result);
  if (!keep_values) log_.back().values = log_.back().side = {};
  const auto most = static_cast<size_t>(policy_.log_results());
  if (log_.size() > most && !planted(Bug::unbounded_log)) log_.erase(log_.begin());
  std::vector<Contribution> settled;
  for (const RosterEntry& e : result.roster) {
    const bool mine = e.node == self_.node &&
                      (e.incarnation == self_.incarnation || planted(Bug::no_incarnation));
    const auto at = std::find_if(outbox_.begin(), outbox_.end(), [&](const Contribution& c) {
      return mine && c.sequence == e.sequence;
    });
    if (at == outbox_.end()) continue;
    settled.push_back(*at);
    if (!planted(Bug::ignore_stable)) kept_.push_back({result.version, *at});
    outbox_.erase(at);
  }
  forget_stable(result.stable);
  return settled;
}

void Member::forget_stable(Version stable) {
  stable_ = std::max(stable_, stable);
  const Version oldest = std::max(stable_, lineage_.version - policy_.restore_results());
  for (const Kept& k : kept_) {
    if (k.version > oldest || k.version < forgotten_) continue;
    forgotten_ = k.version;
    forgotten_sequence_ = k.contribution.sequence;
  }
  std::erase_if(kept_, [&](const Kept& k) { return k.version <= oldest; });
}

Member::Change Member::adopt(const Lineage& lineage) {
  Change change;
  // Whether that lineage goes back to the newest of what nobody could give back any more.
  change.lost = forgotten_sequence_ != 0 && !lineage.holds(self_, forgotten_sequence_);
  if (change.lost) forgotten_ = 0, forgotten_sequence_ = 0;
  std::vector<Kept> kept;
  for (const Kept& k : kept_) {
    if (lineage.holds(self_, k.contribution.sequence))
      kept.push_back(k);
    else if (!planted(Bug::no_restore))
      change.restored.push_back(k.contribution);
  }
  std::vector<Contribution> open;
  for (Contribution& c : outbox_) {
    if (lineage.holds(self_, c.sequence) && !planted(Bug::state_keeps_outbox)) {
      change.applied.push_back(c);
      kept.push_back({lineage.version, c});
      continue;
    }
    // What it was computed on may be gone: then it is offered on top of what there is.
    if (lineage.chain != lineage_.chain) c.anchor_hash = 0;
    c.at = std::min(c.at, lineage.version);
    c.base = std::min(c.base, lineage.version);
    open.push_back(c);
  }
  lineage_ = lineage;
  if (planted(Bug::state_without_past)) lineage_.applied.clear();
  outbox_ = std::move(open);
  kept_ = std::move(kept);
  log_.clear();
  last_at_ = -1;
  stable_ = std::min(stable_, lineage.version);
  return change;
}

std::optional<std::vector<Result>> Member::results_after(Version version, uint64_t chain) const {
  const auto from = std::find_if(log_.begin(), log_.end(),
                                 [&](const Result& r) { return r.version == version + 1; });
  if (from == log_.end() || from->chain != chain) return std::nullopt;
  const bool whole =
      std::all_of(from, log_.end(), [](const Result& r) { return r.weight == 0 || r.values; });
  if (!whole) return std::nullopt;
  return std::vector<Result>(from, log_.end());
}

}  // namespace hybridsync
