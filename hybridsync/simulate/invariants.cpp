#include "hybridsync/simulate/invariants.h"

#include <algorithm>
#include <cassert>

namespace hybridsync {
namespace {

std::string text(const Process& p) {
  return "node " + std::to_string(p.node) +
         (p.incarnation > 0 ? " (incarnation " + std::to_string(p.incarnation) + ")" : "");
}

std::string contribution(const Process& p, uint64_t sequence) {
  return "contribution " + std::to_string(sequence) + " of " + text(p);
}

bool of(const RosterEntry& e, const Process& p) {
  return e.node == p.node && e.incarnation == p.incarnation;
}

bool contains(const std::vector<uint64_t>& all, uint64_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string place(const Fact& f) {
  return text(f.seat->self()) + ", fragment " + std::to_string(f.seat->fragment()) + ": ";
}

}  // namespace

const char* name(Rule rule) {
  static constexpr const char* kNames[] = {
      "",         "one lineage", "identical anchors", "exactly once", "the account", "bounded age",
      "progress", "bounds",      "traffic",           "agreement"};
  return kNames[static_cast<int>(rule)];
}

int Past::count(const Process& process, uint64_t sequence) const {
  int found = 0;
  for (const Past* p = this; p; p = p->before)
    for (const RosterEntry& e : p->roster) found += of(e, process) && e.sequence == sequence;
  return found;
}

int64_t Past::samples(const Process& process) const {
  int64_t sum = 0;
  for (const Past* p = this; p; p = p->before)
    for (const RosterEntry& e : p->roster)
      if (of(e, process)) sum += e.samples;
  return sum;
}

const Past* Past::at(Version wanted) const {
  const Past* p = this;
  while (p->before && p->version > wanted) p = p->before;
  return p;
}

const Past* Chronicle::find(uint64_t chain) const {
  if (chain == 0) return &beginning_;
  const auto at = pasts_.find(chain);
  return at == pasts_.end() ? nullptr : &at->second;
}

const Past* Chronicle::extend(const Past* on, const Result& r) {
  const uint64_t chain = next_chain(r);
  return &pasts_.try_emplace(chain, Past{r.version, r.epoch, chain, r.roster, on}).first->second;
}

Finding check_close(const Close& close, int staleness) {
  const int64_t most = close.mode == Mode::gradient ? 0 : staleness;
  for (const Contribution& c : close.contributions) {
    const int64_t age = close.version - 1 - c.base;
    if (age > most)
      return Violation{Rule::bounded_age, contribution({c.node, c.incarnation}, c.sequence) +
                                              " is " + std::to_string(age) +
                                              " versions old in the result " +
                                              std::to_string(close.version)};
  }
  return std::nullopt;
}

Finding check_result(const Past& past, const Past& on) {
  if (past.before != &on || past.version != on.version + 1)
    return Violation{Rule::one_lineage, "the result " + std::to_string(past.version) +
                                            " was applied on top of another predecessor"};
  for (const RosterEntry& e : past.roster) {
    const Process process{e.node, e.incarnation};
    if (past.count(process, e.sequence) > 1)
      return Violation{Rule::exactly_once, contribution(process, e.sequence) +
                                               " was applied again in the result " +
                                               std::to_string(past.version)};
  }
  return std::nullopt;
}

Finding check_exactly_once(const Fact& f) {
  const Process self = f.seat->self();
  for (uint64_t sequence = 1; sequence <= f.books->made; ++sequence) {
    const auto& outbox = f.seat->member().outbox();
    const auto open = std::count_if(outbox.begin(), outbox.end(),
                                    [&](const Contribution& c) { return c.sequence == sequence; });
    const int applied = f.past->count(self, sequence);
    const bool returned = contains(f.books->returned, sequence);
    const bool lost = contains(f.books->lost, sequence);
    if (open + applied + returned + lost == 1) continue;
    return Violation{Rule::exactly_once,
                     contribution(self, sequence) + ": in its outbox " + std::to_string(open) +
                         ", applied " + std::to_string(applied) + ", returned " +
                         std::to_string(returned) + ", lost " + std::to_string(lost),
                     open == 0 && applied == 1 && returned && !lost};
  }
  return std::nullopt;
}

Finding check_account(const Fact& f) {
  int64_t open = 0;
  for (const Contribution& c : f.seat->member().outbox()) open += c.samples;
  const int64_t applied = f.past->samples(f.seat->self());
  const int64_t sum = f.progress + open + applied + f.books->dropped + f.books->lost_samples;
  if (sum == f.books->learned) return std::nullopt;
  return Violation{Rule::account, place(f) + "learned " + std::to_string(f.books->learned) +
                                      " samples, but progress " + std::to_string(f.progress) +
                                      " + unresolved " + std::to_string(open) + " + applied " +
                                      std::to_string(applied) + " + dropped " +
                                      std::to_string(f.books->dropped + f.books->lost_samples) +
                                      " = " + std::to_string(sum)};
}

Finding check_bounds(const Fact& f, const Policy& policy, int nodes) {
  const Member& member = f.seat->member();
  const auto staleness = static_cast<size_t>(policy.staleness);
  const auto restore = static_cast<size_t>(policy.restore_results());
  struct Queue {
    const char* what;
    size_t size, most;
  };
  const auto members = static_cast<size_t>(nodes);
  const Queue queues[] = {
      {"outbox", member.outbox().size(), staleness + 1},
      {"inbox", f.seat->rounds().inbox().size(), members * (staleness + 2)},
      {"result log", member.log().size(), static_cast<size_t>(policy.log_results())},
      {"kept contributions", member.kept().size(), (restore + 1) * (staleness + 1)}};
  for (const Queue& q : queues)
    if (q.size > q.most)
      return Violation{Rule::bounds, place(f) + q.what + " of " + std::to_string(q.size) +
                                         ", not more than " + std::to_string(q.most)};
  return std::nullopt;
}

// What the lineage says about itself is what happened.
Finding check_lineage(const Fact& f) {
  const Lineage& lineage = f.seat->lineage();
  if (lineage.chain != f.past->chain || lineage.version != f.past->version)
    return Violation{Rule::one_lineage, place(f) + "its lineage is not the one it has applied"};
  for (const Past* p = f.past; p; p = p->before)
    for (const RosterEntry& e : p->roster) {
      const Process process{e.node, e.incarnation};
      if (lineage.holds(process, e.sequence) || lineage.outdated(process)) continue;
      return Violation{Rule::exactly_once, place(f) + "its lineage does not know that it holds " +
                                               contribution(process, e.sequence)};
    }
  return std::nullopt;
}

Finding check_one(const Fact& f, const Policy& policy, int nodes) {
  if (auto wrong = check_lineage(f)) return wrong;
  if (auto wrong = check_exactly_once(f)) return wrong;
  if (auto wrong = check_account(f)) return wrong;
  return check_bounds(f, policy, nodes);
}

namespace {

Finding two_results(const Fact& a, const Fact& b) {
  if (a.past == b.past) return std::nullopt;
  const Version version = std::min(a.past->version, b.past->version);
  const Past *p = a.past->at(version), *q = b.past->at(version);
  for (; p != q; p = p->before, q = q->before)
    if (p->epoch == q->epoch)
      return Violation{Rule::one_lineage, "two results " + std::to_string(p->version) +
                                              " of epoch " + std::to_string(p->epoch) + ", of " +
                                              text(a.seat->self()) + " and of " +
                                              text(b.seat->self())};
  return std::nullopt;
}

Finding returned_and_applied(const Fact& a, const Fact& b) {
  for (uint64_t sequence : a.books->returned)
    if (b.past->count(a.seat->self(), sequence) > 0)
      return Violation{Rule::exactly_once,
                       contribution(a.seat->self(), sequence) + " was returned, and " +
                           text(b.seat->self()) + " has applied it in the same epoch",
                       true};
  return std::nullopt;
}

}  // namespace

Finding check_pair(const Fact& a, const Fact& b) {
  if (auto wrong = two_results(a, b)) return wrong;
  if (!a.seat->ready() || !b.seat->ready() || a.seat->epoch() != b.seat->epoch())
    return std::nullopt;
  const Version version = std::min(a.past->version, b.past->version);
  const auto both = [&] {
    return text(a.seat->self()) + " and " + text(b.seat->self()) + ", both ready in epoch " +
           std::to_string(a.seat->epoch()) + ", ";
  };
  if (a.past->at(version) != b.past->at(version))
    return Violation{Rule::one_lineage,
                     both() + "have different lineages up to version " + std::to_string(version)};
  const bool equal = a.past->version == b.past->version;
  if (equal && a.seat->lineage().anchor != b.seat->lineage().anchor)
    return Violation{Rule::identical_anchors,
                     both() + "have different anchors at version " + std::to_string(version)};
  if (auto wrong = returned_and_applied(a, b)) return wrong;
  return returned_and_applied(b, a);
}

}  // namespace hybridsync
