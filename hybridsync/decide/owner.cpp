#include "hybridsync/decide/owner.h"

#include <cassert>

namespace hybridsync {
namespace {

std::vector<int> absent(const std::vector<std::optional<Contribution>>& inbox) {
  std::vector<int> missing;
  for (size_t node = 0; node < inbox.size(); ++node)
    if (!inbox[node]) missing.push_back(static_cast<int>(node));
  return missing;
}

std::string name(int fragment, Version version) {
  return "fragment " + std::to_string(fragment) + ", version " + std::to_string(version);
}

const char* name(Mode mode) { return mode == Mode::gradient ? "gradient" : "delta"; }

}  // namespace

OwnerAction close_decision(Version version, const std::vector<std::optional<Contribution>>& inbox) {
  if (std::vector<int> missing = absent(inbox); !missing.empty())
    return WaitFor{missing, "a synchronous tier waits for every member"};
  Close close{version + 1, {}, "every member contributed or abstained"};
  for (const auto& contribution : inbox) close.contributions.push_back(*contribution);
  return close;
}

Owner::Owner(int fragment, int members, Schedule schedule)
    : fragment_(fragment), schedule_(schedule), inbox_(static_cast<size_t>(members)) {}

std::vector<int> Owner::missing() const { return absent(inbox_); }

std::optional<Disagree> Owner::check(const Contribution& c) const {
  const std::string where = name(fragment_, version_) + ": node " + std::to_string(c.node);
  if (c.base != version_)
    return Disagree{c.node, where + " contributed on top of version " + std::to_string(c.base)};
  if (c.mode != schedule_.mode(version_))
    return Disagree{c.node, where + " sent a " + name(c.mode) + ", a " +
                                name(schedule_.mode(version_)) + " is due"};
  for (const auto& other : inbox_)
    if (other && other->anchor_hash != c.anchor_hash)
      return Disagree{c.node, where + " has other parameters than node " +
                                  std::to_string(other->node) + " (the hashes differ)"};
  return std::nullopt;
}

OwnerAction Owner::on(const Contribution& c) {
  assert(c.node >= 0 && static_cast<size_t>(c.node) < inbox_.size());
  auto& slot = inbox_[static_cast<size_t>(c.node)];
  const bool seen_before = c.base < version_ || (slot && slot->sequence == c.sequence);
  if (!seen_before) {
    if (auto disagreement = check(c)) return *disagreement;
    slot = c;
  }
  return close_decision(version_, inbox_);
}

Result Owner::publish(const Close& closed, uint64_t after, Payload values, Payload side) {
  assert(closed.version == version_ + 1);
  Result result;
  result.version = closed.version;
  result.mode = schedule_.mode(version_);
  result.finished = true;
  for (const Contribution& c : closed.contributions) {
    result.roster.push_back({c.node, c.sequence, version_ - c.base, c.weight});
    result.weight += c.weight;
    result.samples += c.samples;
    result.loss_sum += c.loss_sum;
    result.loss_weight += c.loss_weight;
    result.before = c.anchor_hash;
    result.finished = result.finished && c.finished;
  }
  result.after = after;
  result.values = values;
  result.side = side;
  result.next_mode = schedule_.mode(closed.version);
  result.next_interval = schedule_.interval(closed.version);
  version_ = closed.version;
  for (auto& slot : inbox_) slot.reset();
  return result;
}

}  // namespace hybridsync
