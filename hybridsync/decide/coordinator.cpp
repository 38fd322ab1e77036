// The coordinator: who is heard, who is ready, and the next view.
#include "hybridsync/decide/coordinator.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "hybridsync/decide/planted.h"

namespace hybridsync {
namespace {

// Under suspicion a node has this many heartbeats to be heard.
constexpr int kSuspectedHeartbeats = 2;
// Who was removed for a cut stays out for this many times suspect_after. If the cut is still there
// its return stalls every round for about suspect_after, so no more than a tenth of the time is
// lost.
constexpr int kCutPause = 10;

bool by_node(const Process& a, const Process& b) { return a.node < b.node; }

bool contains(const std::vector<Process>& members, const Process& process) {
  return std::find(members.begin(), members.end(), process) != members.end();
}

void insert(std::vector<Process>& members, const Process& process) {
  members.insert(std::upper_bound(members.begin(), members.end(), process, by_node), process);
}

std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (int n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

bool newer(const FragmentStatus& a, const FragmentStatus& b) {
  return std::tie(a.ready_epoch, a.version) > std::tie(b.ready_epoch, b.version);
}

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, View first, bool restarted, Micros now)
    : config_(std::move(config)),
      view_(std::move(first)),
      established_(config_.fragments, restarted ? 0 : view_.epoch),
      ticked_(now),
      changes_from_(restarted ? now + config_.policy.suspect_after : now),
      restarted_(restarted) {
  assert(!view_.members.empty() && view_.epoch > 0 && config_.min_members > 0);
  assert(static_cast<int>(view_.owners.size()) == config_.fragments);
  assert(std::is_sorted(view_.members.begin(), view_.members.end(), by_node));
  for (const Process& member : view_.members) {
    Peer peer;
    peer.process = member;
    peer.heard = now;
    peer.fragments.resize(config_.fragments, {restarted ? 0 : view_.epoch, 0});
    peer.confirmed.resize(config_.fragments);
    peers_.push_back(std::move(peer));
  }
}

CoordinatorActions Coordinator::on(const Message& message, Micros now) {
  CoordinatorActions actions;
  Peer* from = hear(message.from, now);
  if (!from || (from->left && !view_.has(from->process))) return actions;
  const bool outdated = view_.find(message.from.node) && !view_.has(message.from);
  if (outdated) remove_the_gone("", now, actions);
  if (std::holds_alternative<Heartbeat>(message.body)) {
    on_heartbeat(*from, message, actions);
  } else if (std::holds_alternative<Establish>(message.body)) {
    on_establish(*from, message, actions);
  } else if (const auto* suspect = std::get_if<Suspect>(&message.body)) {
    on_suspect(message.from, suspect->node, now);
  } else if (std::holds_alternative<Join>(message.body) && actions.empty()) {
    send(message.from.node, ViewMessage{view_}, actions);
  } else if (std::holds_alternative<Leave>(message.body)) {
    from->left = true;
    remove_the_gone("", now, actions);
  }
  return actions;
}

CoordinatorActions Coordinator::tick(Micros now) {
  CoordinatorActions actions;
  if (now - ticked_ > config_.policy.suspect_after) restart_timers(now);
  ticked_ = now;
  forget_suspicions(now);
  mark_silent(now);
  mark_suspected(now);
  mark_cut(now);
  remove_the_gone("", now, actions);
  if (actions.empty()) let_in(now, actions);
  return actions;
}

CoordinatorActions Coordinator::remove(int node, const std::string& why, Micros now) {
  CoordinatorActions actions;
  const Process* member = view_.find(node);
  if (!member) return actions;
  peer(node).gone = Gone::told;
  remove_the_gone(why, now, actions);
  return actions;
}

// Who is who.

Coordinator::Peer& Coordinator::peer(int node) { return *const_cast<Peer*>(find(node)); }

const Coordinator::Peer* Coordinator::find(int node) const {
  const auto at = std::lower_bound(peers_.begin(), peers_.end(), node,
                                   [](const Peer& p, int n) { return p.process.node < n; });
  return at != peers_.end() && at->process.node == node ? &*at : nullptr;
}

// None if a newer process of that node is known.
const Coordinator::Peer* Coordinator::alive_as(const Process& process) const {
  const Peer* found = find(process.node);
  return found && found->process == process ? found : nullptr;
}

// None if there is a newer process of that node.
Coordinator::Peer* Coordinator::hear(const Process& from, Micros now) {
  if (from.node < 0) return nullptr;
  const auto at = std::lower_bound(peers_.begin(), peers_.end(), from.node,
                                   [](const Peer& p, int node) { return p.process.node < node; });
  const bool known = at != peers_.end() && at->process.node == from.node;
  if (known && at->process.incarnation > from.incarnation) return nullptr;
  Peer& peer = known ? *at : *peers_.insert(at, Peer{});
  if (peer.process != from) {
    peer = Peer{};
    peer.process = from;
    peer.fragments.resize(config_.fragments, {0, -2});
    peer.confirmed.resize(config_.fragments);
  }
  peer.heard = now;
  peer.gone = Gone::no;
  return &peer;
}

// Messages.

void Coordinator::send(int to, MessageBody body, CoordinatorActions& actions) const {
  actions.push_back(CoordinatorSend{to, {config_.self, view_.epoch, -1, std::move(body)}});
}

// What a process says only moves forward, so that the order of arrival does not matter.
void Coordinator::on_heartbeat(Peer& peer, const Message& message, CoordinatorActions& actions) {
  const auto& heartbeat = std::get<Heartbeat>(message.body);
  if (heartbeat.fragments.size() == peer.fragments.size()) {
    peer.reported = true;
    peer.newest_before = std::exchange(peer.newest, {});
    const bool learner = !view_.has(peer.process);
    for (int f = 0; learner && f < config_.fragments; ++f) peer.newest.push_back(newest_version(f));
    for (size_t f = 0; f < peer.fragments.size(); ++f) {
      const FragmentStatus& status = heartbeat.fragments[f];
      if (newer(status, peer.fragments[f])) peer.fragments[f] = status;
      if (restarted_ && status.ready_epoch <= view_.epoch) {
        established_[f] = std::max(established_[f], status.ready_epoch);
      }
    }
  }
  send(message.from.node, HeartbeatAnswer{heartbeat.counter}, actions);
  if (message.epoch < view_.epoch) send(message.from.node, ViewMessage{view_}, actions);
}

void Coordinator::on_establish(Peer& peer, const Message& message, CoordinatorActions& actions) {
  const int f = message.fragment;
  if (f < 0 || f >= config_.fragments) return;
  const bool owner = view_.has(message.from) && view_.owners[f] == message.from.node;
  const bool confirmed = (message.epoch == view_.epoch && owner) || planted(Bug::no_confirm);
  if (confirmed) {
    established_[f] = std::max(established_[f], message.epoch);
    peer.confirmed[f] = std::max(peer.confirmed[f], message.epoch);
  }
  const Message answer{config_.self, message.epoch, f, Established{!confirmed}};
  actions.push_back(CoordinatorSend{message.from.node, answer});
  if (!confirmed) send(message.from.node, ViewMessage{view_}, actions);
}

void Coordinator::on_suspect(const Process& accuser, int node, Micros now) {
  const Process* accused = view_.find(node);
  if (!accused || !view_.has(accuser) || *accused == accuser) return;
  const auto key = [](const Suspicion& s) { return std::pair(s.accuser.node, s.accused.node); };
  const Suspicion fresh{accuser, *accused, now, now};
  const auto at =
      std::lower_bound(suspicions_.begin(), suspicions_.end(), fresh,
                       [&](const Suspicion& a, const Suspicion& b) { return key(a) < key(b); });
  if (at != suspicions_.end() && key(*at) == key(fresh)) {
    at->renewed = now;
  } else {
    suspicions_.insert(at, fresh);
  }
}

// Judging.

// Learners are not made younger: they count again when they are heard.
void Coordinator::restart_timers(Micros now) {
  for (Peer& peer : peers_) {
    if (view_.has(peer.process)) peer.heard = now;
  }
  for (Suspicion& suspicion : suspicions_) suspicion.since = suspicion.renewed = now;
  if (ticked_ < changes_from_) changes_from_ = now + config_.policy.suspect_after;
}

void Coordinator::forget_suspicions(Micros now) {
  std::erase_if(suspicions_,
                [&](const Suspicion& s) { return now - s.renewed > config_.policy.suspect_after; });
}

void Coordinator::mark_silent(Micros now) {
  for (const Process& member : view_.members) {
    Peer& p = peer(member.node);
    const bool silent = now - p.heard > config_.policy.suspect_after;
    if (silent && p.gone == Gone::no && p.process == member) p.gone = Gone::silent;
  }
}

void Coordinator::mark_suspected(Micros now) {
  for (const Suspicion& s : suspicions_) {
    Peer& p = peer(s.accused.node);
    const Micros quiet = now - std::max(p.heard, s.since);
    const bool silent = quiet > kSuspectedHeartbeats * config_.policy.heartbeat;
    if (silent && p.gone == Gone::no && p.process == s.accused) p.gone = Gone::suspected;
  }
}

// Both ends of a suspicion that lasts are heard: there is a cut between them. One has to go, since
// a view in which two members cannot reach each other may never be established.
void Coordinator::mark_cut(Micros now) {
  const Micros long_enough = config_.policy.suspect_after;
  const bool cut = std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& s) {
    return s.renewed - s.since >= long_enough && stays(s.accuser) && stays(s.accused);
  });
  const int node = cut ? blamed() : -1;
  if (node < 0) return;
  peer(node).gone = Gone::cut;
  peer(node).not_before = now + kCutPause * long_enough;
}

// The one that most others suspect; among equals one whose removal loses nothing, then the greatest
// node. Whoever suspects the coordinator's own node is to blame itself.
int Coordinator::blamed() const {
  std::map<int, std::set<int>> accusers;
  for (const Suspicion& s : suspicions_) {
    if (!stays(s.accuser) || !stays(s.accused)) continue;
    if (s.accused == config_.self) {
      accusers[s.accuser.node].insert(s.accused.node);
    } else {
      accusers[s.accused.node].insert(s.accuser.node);
    }
  }
  std::tuple<size_t, bool, int> most{0, false, -1};
  for (const auto& [node, by] : accusers) {
    Members rest = view_.members;
    std::erase_if(rest, [&, n = node](const Process& p) { return p.node == n; });
    most = std::max(most, std::tuple(by.size(), lost_by(rest).empty(), node));
  }
  return std::get<int>(most);
}

// Readiness.

bool Coordinator::may_change(Micros now) const { return config_.removes && now >= changes_from_; }

bool Coordinator::stays(const Process& member) const {
  const Peer* p = alive_as(member);
  return p && p->gone == Gone::no && !p->left;
}

bool Coordinator::proven_dead(const Process& member) const {
  const Peer* p = alive_as(member);
  return !p || p->left;
}

bool Coordinator::serves(const Peer& peer, Micros now) const {
  return peer.gone == Gone::no && now - peer.heard <= config_.policy.suspect_after;
}

bool Coordinator::ready(const Peer& peer, int fragment) const {
  const Epoch epoch = std::max(peer.fragments[fragment].ready_epoch, peer.confirmed[fragment]);
  return established_[fragment] > 0 && epoch == established_[fragment];
}

bool Coordinator::covered(const Members& members, int fragment) const {
  if (planted(Bug::no_overlap)) return true;
  return std::any_of(members.begin(), members.end(), [&](const Process& process) {
    const Peer* p = alive_as(process);
    return p && ready(*p, fragment);
  });
}

// After a restart: the current epoch may have been confirmed before, and who knows is not heard.
bool Coordinator::unsure(const Members& members, int fragment) const {
  if (!restarted_ || established_[fragment] == view_.epoch || planted(Bug::no_overlap))
    return false;
  return std::any_of(view_.members.begin(), view_.members.end(), [&](const Process& member) {
    const Peer* p = alive_as(member);
    return !contains(members, member) && !(p && p->reported);
  });
}

std::vector<int> Coordinator::lost_by(const Members& next) const {
  std::vector<int> lost;
  for (int f = 0; f < config_.fragments; ++f) {
    if (!covered(next, f) || unsure(next, f)) lost.push_back(f);
  }
  return lost;
}

// The newest that a member has told; -1 before any has.
Version Coordinator::newest_version(int fragment) const {
  Version newest = -1;
  for (const Process& member : view_.members) {
    const Peer* p = alive_as(member);
    if (p && p->reported) newest = std::max(newest, p->fragments[fragment].version);
  }
  return newest;
}

// Within one version of what the members had when it was last heard before: reports of different
// moments cannot be closer where rounds are shorter than a heartbeat.
bool Coordinator::caught_up(const Peer& peer) const {
  for (int f = 0; f < config_.fragments; ++f) {
    Version goal = newest_version(f);
    if (goal < 0 || !peer.reported) return false;
    if (!peer.newest_before.empty())
      goal = std::min(goal, std::max<Version>(0, peer.newest_before[f]));
    if (peer.fragments[f].version + 1 < goal) return false;
  }
  return true;
}

// The next view.

void Coordinator::remove_the_gone(const std::string& why, Micros now, CoordinatorActions& actions) {
  if (!may_change(now)) return;
  Members next = next_members(now);
  if (next != view_.members) issue(std::move(next), why, actions);
}

Coordinator::Members Coordinator::next_members(Micros now) const {
  Members next;
  for (const Process& member : view_.members) {
    if (stays(member)) next.push_back(member);
  }
  if (next == view_.members) return next;
  keep_ready(next, now);
  fill_up(next, now);
  const bool enough = static_cast<int>(next.size()) >= config_.min_members;
  return enough ? next : view_.members;
}

// Who can prevent a loss goes in at once: first learners, then members that are about to leave.
void Coordinator::keep_ready(Members& next, Micros now) const {
  for (const bool leaving : {false, true}) {
    for (int f = 0; f < config_.fragments; ++f) {
      for (const Peer& p : peers_) {
        if (covered(next, f)) break;
        const bool possible = p.left == leaving && (!leaving || view_.has(p.process));
        if (possible && serves(p, now) && ready(p, f)) insert(next, p.process);
      }
    }
  }
}

// Too few to go on: learners go in before they have caught up, the furthest first. When nobody
// stays and somebody is only silent, it may come back with everything: only a learner that knows as
// much takes over.
void Coordinator::fill_up(Members& next, Micros now) const {
  const bool wait_for_silent =
      next.empty() && !std::all_of(view_.members.begin(), view_.members.end(),
                                   [&](const Process& member) { return proven_dead(member); });
  std::vector<std::pair<Version, Process>> learners;
  for (const Peer& p : peers_) {
    if (p.left || !serves(p, now) || contains(next, p.process)) continue;
    if (wait_for_silent && !caught_up(p)) continue;
    Version behind = 0;
    for (const FragmentStatus& status : p.fragments) behind -= status.version;
    learners.emplace_back(behind, p.process);
  }
  std::stable_sort(learners.begin(), learners.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [behind, process] : learners) {
    if (static_cast<int>(next.size()) < config_.min_members) insert(next, process);
  }
}

void Coordinator::let_in(Micros now, CoordinatorActions& actions) {
  const bool all_there = std::all_of(view_.members.begin(), view_.members.end(),
                                     [&](const Process& member) { return stays(member); }) &&
                         std::all_of(established_.begin(), established_.end(),
                                     [&](Epoch epoch) { return epoch == view_.epoch; });
  if (!all_there || !may_change(now)) return;
  Members next = view_.members;
  for (const Peer& p : peers_) {
    if (contains(next, p.process) || p.left || now < p.not_before) continue;
    if (serves(p, now) && caught_up(p)) insert(next, p.process);
  }
  if (next != view_.members) issue(std::move(next), "", actions);
}

// Owners are sticky; what has no owner any more goes to who owns least, the lowest node first.
std::vector<int> Coordinator::assign(const Members& next) const {
  std::vector<int> owners = view_.owners;
  std::map<int, int> owned;
  for (const Process& process : next) owned[process.node] = 0;
  for (int& owner : owners) {
    const bool keeps = contains(next, *view_.find(owner));
    if (keeps) ++owned[owner];
    if (!keeps) owner = -1;
  }
  for (int& owner : owners) {
    if (owner >= 0) continue;
    owner = std::min_element(owned.begin(), owned.end(), [](const auto& a, const auto& b) {
              return a.second < b.second;
            })->first;
    ++owned[owner];
  }
  return owners;
}

std::string Coordinator::describe(const Members& next, const std::string& why) const {
  std::string text = why;
  const auto say = [&](int node, const std::string& what) {
    text += (text.empty() ? "" : "; ") + ("node " + std::to_string(node) + what);
  };
  for (const Process& member : view_.members) {
    const Peer* p = alive_as(member);
    if (contains(next, member) || !why.empty()) continue;
    if (!p) say(member.node, " was started again");
    if (p && p->left) say(member.node, " left");
    if (!p || p->left) continue;
    const std::string ms = std::to_string(config_.policy.suspect_after / 1000) + " ms";
    if (p->gone == Gone::silent) say(member.node, " was not heard for " + ms);
    if (p->gone == Gone::suspected) say(member.node, " lost a connection and was not heard since");
    if (p->gone == Gone::cut) say(member.node, " and other members cannot reach each other");
    if (p->gone == Gone::told) say(member.node, " is gone");
  }
  for (const Process& process : next) {
    if (!view_.has(process)) say(process.node, " joins");
  }
  const std::vector<int> lost = lost_by(next);
  if (!lost.empty())
    text += "; what only the missing knew of fragments " + listed(lost) + " is lost";
  return text;
}

void Coordinator::issue(Members next, const std::string& why, CoordinatorActions& actions) {
  ViewEvent event{view_.epoch + 1, false, lost_by(next), describe(next, why)};
  event.lossy = !event.lost.empty();
  for (int f = 0; f < config_.fragments; ++f) {
    if (unsure(next, f)) established_[f] = view_.epoch;
  }
  const View before = std::exchange(view_, View{event.epoch, next, assign(next)});
  std::erase_if(suspicions_,
                [&](const Suspicion& s) { return !view_.has(s.accuser) || !view_.has(s.accused); });
  actions.push_back(Persist{view_});
  actions.push_back(std::move(event));
  for (const Peer& p : peers_) {
    const bool told = !p.left || before.find(p.process.node);
    if (told) send(p.process.node, ViewMessage{view_}, actions);
  }
}

}  // namespace hybridsync
