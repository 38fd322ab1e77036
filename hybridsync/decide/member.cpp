#include "hybridsync/decide/member.h"

#include <algorithm>
#include <cassert>

namespace hybridsync {

Member::Member(int fragment, int node, Schedule schedule)
    : fragment_(fragment), node_(node), mode_(schedule.mode(0)), interval_(schedule.interval(0)) {}

Contribution Member::contribute(Contribution draft) {
  assert(!unresolved_);
  draft.node = node_;
  draft.sequence = ++sequence_;
  draft.base = version_;
  draft.mode = mode_;
  unresolved_ = draft;
  return draft;
}

MemberAction Member::on(const Result& result) {
  const std::string where = "fragment " + std::to_string(fragment_) + ", version " +
                            std::to_string(result.version) + ": ";
  if (result.version <= version_) return Ignore{where + "applied already"};
  if (!unresolved_ || result.version != version_ + 1)
    return Diverged{where + "this node is at version " + std::to_string(version_) +
                    " and has not contributed to it"};
  if (result.before != unresolved_->anchor_hash)
    return Diverged{where + "the result is based on other parameters than this node's"};
  const auto mine = [&](const RosterEntry& e) {
    return e.node == node_ && e.sequence == unresolved_->sequence;
  };
  if (std::none_of(result.roster.begin(), result.roster.end(), mine))
    return Diverged{where + "the result does not name this node's contribution"};
  return Apply{result};
}

std::optional<Diverged> Member::applied(const Result& result, uint64_t after) {
  if (after != result.after)
    return Diverged{"fragment " + std::to_string(fragment_) + ", version " +
                    std::to_string(result.version) +
                    ": this node computed other numbers than the owner (the hashes differ)"};
  version_ = result.version;
  mode_ = result.next_mode;
  interval_ = result.next_interval;
  finished_ = result.finished;
  unresolved_.reset();
  return std::nullopt;
}

}  // namespace hybridsync
