#include "hybridsync/decide/owner.h"

#include <algorithm>
#include <cassert>

#include "hybridsync/decide/planted.h"

namespace hybridsync {
namespace {

// What the lineage's anchor was at this version; 0: unknown.
uint64_t anchor_at(Version version, const Member& member) {
  if (version == member.lineage().version) return member.lineage().anchor;
  for (const Result& r : member.log())
    if (r.version == version + 1) return r.before;
  return 0;
}

const char* name(Mode mode) { return mode == Mode::gradient ? "gradient" : "delta"; }

std::string place(int fragment, Version version, int node) {
  return "fragment " + std::to_string(fragment) + ", version " + std::to_string(version) +
         ": node " + std::to_string(node);
}

bool before(const Contribution& a, const Contribution& b) {
  return std::pair(a.node, a.sequence) < std::pair(b.node, b.sequence);
}

}  // namespace

Owner::Owner(int fragment, int self, Policy policy, Schedule schedule)
    : fragment_(fragment), self_(self), policy_(policy), schedule_(schedule), interval_(schedule) {}

void Owner::open(const View& view, const Lineage& lineage) {
  standings_.clear();
  for (const Process& p : view.members)
    standings_.push_back({p.node, false, lineage.version, 0, 0});
  inbox_.clear();
  opened_.reset();
  called_.reset();
  interval_ = Interval(schedule_);
}

Standing* Owner::standing(int node) {
  for (Standing& s : standings_)
    if (s.node == node) return &s;
  return nullptr;
}

std::vector<int> Owner::missing() const {
  std::vector<int> nodes;
  for (const Standing& s : standings_)
    if (!s.in) nodes.push_back(s.node);
  return nodes;
}

// Everybody must be offering on top of the same numbers.
std::optional<Owner::Verdict> Owner::check_numbers(const Contribution& c,
                                                   const Member& member) const {
  if (c.anchor_hash == 0) return std::nullopt;
  const std::string where = place(fragment_, member.lineage().version, c.node);
  if (c.mode == Mode::gradient) {
    for (const Contribution& other : inbox_)
      if (other.anchor_hash != c.anchor_hash)
        return Disagrees{where + " has other parameters than node " + std::to_string(other.node) +
                         " (the hashes differ)"};
    return std::nullopt;
  }
  const uint64_t anchor = anchor_at(c.at, member);
  if (anchor == 0 || anchor == c.anchor_hash) return std::nullopt;
  const bool first_round = c.at == 0 || schedule_.mode(c.at - 1) == Mode::gradient;
  if (first_round)
    return Disagrees{where + " has other parameters than node " + std::to_string(self_) +
                     " (the hashes differ)"};
  return Refused{ReturnReason::mismatch};
}

// A round that its steps could have been for closed without its node.
bool Owner::is_late(const Contribution& c) const {
  return std::any_of(standings_.begin(), standings_.end(),
                     [&](const Standing& s) { return s.node == c.node && s.missed > c.base; });
}

Owner::Verdict Owner::judge(const Contribution& c, const Member& member) const {
  const Lineage& lineage = member.lineage();
  if (lineage.holds({c.node, c.incarnation}, c.sequence) && !planted(Bug::no_dedup))
    return Settled{};
  const auto same = [&](const Contribution& other) {
    return other.node == c.node && other.sequence == c.sequence;
  };
  if (std::any_of(inbox_.begin(), inbox_.end(), same) && !planted(Bug::no_inbox_dedup))
    return Waits{};
  if (c.mode != lineage.mode) {
    if (c.at < lineage.version) return Refused{ReturnReason::mode};
    return Disagrees{place(fragment_, lineage.version, c.node) + " sent a " + name(c.mode) +
                     ", a " + name(lineage.mode) + " is due"};
  }
  const int64_t most = lineage.mode == Mode::gradient ? 0 : policy_.staleness;
  const bool late = c.weight > 0 && is_late(c);
  if (late && policy_.late == Late::drop) return Refused{ReturnReason::dropped};
  if (late && policy_.late == Late::return_) return Refused{ReturnReason::late};
  if (lineage.version - c.base > most && !planted(Bug::no_age_limit))
    return Refused{ReturnReason::too_old};
  if (auto wrong = check_numbers(c, member)) return *wrong;
  return Accepted{};
}

Owner::Verdict Owner::on(const Contribution& c, const Member& member, Micros now) {
  Standing* from = standing(c.node);
  assert(from);
  from->has = std::max(from->has, c.has);
  const Verdict verdict = judge(c, member);
  if (std::holds_alternative<Accepted>(verdict))
    from->newest = std::max(from->newest, std::min(c.at, member.lineage().version));
  const auto* refused = std::get_if<Refused>(&verdict);
  const bool also_taken = refused && planted(Bug::return_and_take);
  if (!std::holds_alternative<Accepted>(verdict) && !also_taken) return verdict;
  inbox_.insert(std::upper_bound(inbox_.begin(), inbox_.end(), c, before), c);
  from->in = true;
  if (!opened_) opened_ = now;
  return verdict;
}

CloseDecision Owner::decide(const Lineage& lineage, Micros now, bool may_skip) const {
  const bool work =
      std::any_of(inbox_.begin(), inbox_.end(), [](const Contribution& c) { return c.weight > 0; });
  return close_decision(
      {lineage.version, lineage.mode, standings_, work, opened_, called_, may_skip}, now, policy_);
}

Close Owner::close(const Lineage& lineage, const CloseNow& decision) const {
  return {lineage.version + 1, lineage.mode, inbox_, decision.skipped, decision.why};
}

// Every other member has this version; without others, this node has all.
Version Owner::stable(Version own) const {
  Version least = own;
  if (planted(Bug::stable_at_once)) return own;
  for (const Standing& s : standings_)
    if (s.node != self_) least = std::min(least, s.has);
  return least;
}

// Where the interval adapts it goes on from that of the lineage.
Wish Owner::next_interval(const Close& close, const Lineage& lineage, const SquaredNorms& norms) {
  const bool follows = schedule_.adapts() && fragment_ == 0 && close.mode == Mode::delta;
  if (!follows) return {schedule_.interval(close.version)};
  const auto nodes = static_cast<int64_t>(standings_.size());
  return interval_.next(
      facts_of(close.contributions, lineage, norms, nodes, schedule_.adaptation.steps));
}

Published Owner::publish(const Close& close, const Lineage& lineage, Epoch epoch, uint64_t after,
                         Payload values, Payload side, const SquaredNorms& norms) {
  assert(close.version == lineage.version + 1);
  Result r;
  r.version = close.version;
  r.epoch = epoch;
  r.mode = close.mode;
  r.chain = lineage.chain;
  r.before = lineage.anchor;
  r.finished = missing().empty();
  for (const Contribution& c : close.contributions) {
    const int64_t age = std::max<int64_t>(0, lineage.version - c.base);
    r.roster.push_back({c.node, c.incarnation, c.sequence, c.settled, age, c.weight, c.samples});
    r.weight += c.weight;
    r.samples += c.samples;
    r.loss_sum += c.loss_sum;
    r.loss_weight += c.loss_weight;
    if (close.mode == Mode::gradient) r.before = c.anchor_hash;
    r.finished = r.finished && c.finished;
  }
  r.total_samples = lineage.total_samples + r.samples;
  r.after = after;
  r.stable = stable(close.version);
  r.values = values;
  r.side = side;
  r.next_mode = schedule_.mode(close.version);
  const Wish wish = next_interval(close, lineage, norms);
  r.next_interval = wish.interval;
  if (fragment_ == 0) r.drift = drift(close.contributions, norms).value_or(0);
  const Published published{r, wish.why, wish.warning};
  if (planted(Bug::close_twice)) return published;
  for (Standing& s : standings_) {
    if (!s.in) s.missed = close.version;
    s.in = false;
  }
  inbox_.clear();
  opened_.reset();
  called_.reset();
  return published;
}

}  // namespace hybridsync
