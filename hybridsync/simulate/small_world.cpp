#include "hybridsync/simulate/small_world.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "hybridsync/decide/digest.h"
#include "hybridsync/simulate/words.h"

namespace hybridsync {
namespace {

using Kind = Transition::Kind;

// Events at a place that are not messages.
enum Local : uint64_t { kContribute = 1, kFire, kBusy = kFire + 3, kIdle, kFirstMessage = 16 };

uint64_t pair(uint64_t a, uint64_t b) { return a << 32 | b; }

// Delta mode from the beginning.
Schedule schedule() { return {Strategy::delayed, 0, 1}; }

}  // namespace

bool is_fault(Kind kind) {
  return kind == Kind::lose || kind == Kind::crash || kind == Kind::restart ||
         kind == Kind::remove || kind == Kind::restart_coordinator || kind == Kind::busy;
}

Policy WorldOptions::small_policy(int staleness) {
  Policy policy;
  policy.staleness = staleness;
  policy.grace = 1;
  policy.deadline = 1;
  return policy;
}

SmallWorlds::SmallWorlds(WorldOptions options) : options_(std::move(options)) {
  assert(options_.nodes <= kMostNodes && options_.fragments <= kMostFragments);
  clear();
}

void SmallWorlds::clear() {
  places_.clear();
  coordinators_.clear();
  envelopes_.clear();
  place_ids_.clear();
  coordinator_ids_.clear();
  envelope_ids_.clear();
  outcomes_.clear();
  decisions_.clear();
  for (Chronicle& c : chronicles_) c = Chronicle();
}

template <class T>
World::Id SmallWorlds::intern(std::deque<T>& table, Ids& ids, T value) {
  canonical_.clear();
  canonical_.add(value);
  const auto next = static_cast<World::Id>(table.size() + 1);
  const auto [at, fresh] = ids.try_emplace(canonical_.wide(), next);
  if (fresh) table.push_back(std::move(value));
  return at->second;
}

World::Id SmallWorlds::keep(int to, const Message& message) {
  return intern(envelopes_, envelope_ids_, Envelope{to, message});
}

const Resident* SmallWorlds::place(const World& w, int node, int fragment) const {
  const World::Id id = slot(const_cast<World&>(w), node, fragment);
  return id == 0 ? nullptr : &places_[id - 1];
}

const Coordinator& SmallWorlds::coordinator(const World& w) const {
  return coordinators_[w.coordinator - 1];
}

Process SmallWorlds::process(const World& w, int node) const {
  return {node, w.nodes[static_cast<size_t>(node)].incarnation};
}

// --- the beginning

World SmallWorlds::begin() {
  World w;
  w.left = options_.budget;
  View view{1, {}, {}};
  for (int node = 0; node < options_.nodes; ++node) view.members.push_back({node, 0});
  for (int f = 0; f < options_.fragments; ++f) view.owners.push_back(f % options_.nodes);
  CoordinatorConfig config;
  config.fragments = options_.fragments;
  config.policy = options_.policy;
  w.coordinator = intern(coordinators_, coordinator_ids_, Coordinator(config, view, false, 0));
  for (int node = 0; node < options_.nodes; ++node)
    for (int f = 0; f < options_.fragments; ++f) {
      Chronicle& chronicle = chronicles_[static_cast<size_t>(f)];
      Resident place{
          Seat(f, {node, 0}, options_.policy, schedule()), {}, {}, chronicle.beginning()};
      PlaceStep(place, chronicle, options_.policy).begin(view);
      slot(w, node, f) = intern(places_, place_ids_, std::move(place));
    }
  for (int node = 0; node < options_.nodes; ++node)
    w.nodes[static_cast<size_t>(node)].told = status_digest(w, node);
  return w;
}

// --- what happens at a place

const SmallWorlds::Outcome& SmallWorlds::step(World::Id id, uint64_t event, const auto& act) {
  const auto [at, fresh] = outcomes_.try_emplace(pair(id, event));
  Outcome& outcome = at->second;
  if (!fresh) return outcome;
  Resident place = places_[id - 1];
  Chronicle& chronicle = chronicles_[static_cast<size_t>(place.seat.fragment())];
  PlaceStep step(place, chronicle, options_.policy);
  act(step);
  outcome.wrong = step.wrong();
  outcome.lost = step.lost();
  for (const Send& send : step.sent()) outcome.sent.push_back(keep(send.to, send.message));
  if (!outcome.wrong) outcome.wrong = check_one(place.fact(), options_.policy, options_.nodes);
  outcome.place = intern(places_, place_ids_, std::move(place));
  return outcome;
}

Finding SmallWorlds::happen(World& w, int node, int fragment, uint64_t event, const auto& act) {
  World::Id& id = slot(w, node, fragment);
  const Outcome& outcome = step(id, event, act);
  const bool changed = outcome.place != id;
  id = outcome.place;
  send(w, outcome.sent);
  Finding wrong = outcome.wrong;
  if (!wrong && outcome.lost && !w.lossy)
    wrong = Violation{Rule::exactly_once,
                      "node " + std::to_string(node) + " lost contributions without a lossy view"};
  if (!wrong && changed) wrong = check(w, node, fragment);
  w.over = w.over || (wrong && wrong->revived && w.lossy);
  return w.over ? std::nullopt : wrong;
}

Finding SmallWorlds::check(const World& w, int node, int fragment) const {
  const Fact changed = place(w, node, fragment)->fact();
  for (int other = 0; other < options_.nodes; ++other) {
    const Resident* p = other == node ? nullptr : place(w, other, fragment);
    if (!p) continue;
    if (auto wrong = check_pair(changed, p->fact())) return wrong;
  }
  return std::nullopt;
}

// --- messages

void SmallWorlds::send(World& w, const std::vector<World::Id>& messages) const {
  for (World::Id id : messages) {
    const int to = receiver(id);
    const bool heard = to == kCoordinator || w.nodes[static_cast<size_t>(to)].alive;
    if (!heard && !(options_.kept_for_restart && w.left.restarts > 0)) continue;
    const auto copies = std::count(w.messages.begin(), w.messages.end(), id);
    if (copies < options_.copies) w.messages.push_back(id);
  }
}

void SmallWorlds::take_out(World& w, World::Id message) const {
  w.messages.erase(std::find(w.messages.begin(), w.messages.end(), message));
}

bool SmallWorlds::coming(const World& w, int node, Epoch epoch) const {
  return std::any_of(w.messages.begin(), w.messages.end(), [&](World::Id id) {
    const auto* view = std::get_if<ViewMessage>(&message(id).body);
    return view && receiver(id) == node && view->view.epoch == epoch;
  });
}

Finding SmallWorlds::deliver(World& w, World::Id id) {
  take_out(w, id);
  const Message& m = message(id);
  const int to = receiver(id);
  if (to == kCoordinator) {
    happen(w, decide(w.coordinator, id, [&](Coordinator& c) { return c.on(m, 0); }));
    return std::nullopt;
  }
  for (int f = 0; f < options_.fragments; ++f) {
    if (m.fragment >= 0 && m.fragment != f) continue;
    const auto act = [&](PlaceStep& step) { step.on(m); };
    if (auto wrong = happen(w, to, f, kFirstMessage + id, act)) return wrong;
  }
  return std::nullopt;
}

// --- nodes

Finding SmallWorlds::contribute(World& w, int node, int fragment) {
  return happen(w, node, fragment, kContribute, [](PlaceStep& step) { step.contribute(); });
}

Finding SmallWorlds::fire(World& w, const Transition& t) {
  if (t.timer != Timer::close) --w.left.questions;
  return happen(w, t.node, t.fragment, kFire + static_cast<uint64_t>(t.timer),
                [&](PlaceStep& step) { step.fire(t.timer); });
}

Finding SmallWorlds::toggle_busy(World& w, int node) {
  --w.left.busy;
  bool& busy = w.nodes[static_cast<size_t>(node)].busy;
  busy = !busy;
  for (int f = 0; f < options_.fragments; ++f) {
    const auto act = [&](PlaceStep& step) { step.set_busy(busy); };
    if (auto wrong = happen(w, node, f, busy ? kBusy : kIdle, act)) return wrong;
  }
  return std::nullopt;
}

void SmallWorlds::crash(World& w, int node) {
  --w.left.crashes;
  w.nodes[static_cast<size_t>(node)].alive = false;
  w.nodes[static_cast<size_t>(node)].told = 0;
  w.nodes[static_cast<size_t>(node)].busy = false;
  for (int f = 0; f < options_.fragments; ++f) slot(w, node, f) = 0;
  if (options_.kept_for_restart && w.left.restarts > 0) return;
  std::erase_if(w.messages, [&](World::Id id) { return receiver(id) == node; });
}

void SmallWorlds::restart(World& w, int node) {
  --w.left.restarts;
  World::Node& it = w.nodes[static_cast<size_t>(node)];
  it.alive = true;
  ++it.incarnation;
  for (int f = 0; f < options_.fragments; ++f) {
    const Past* nothing = chronicles_[static_cast<size_t>(f)].beginning();
    Resident place{Seat(f, process(w, node), options_.policy, schedule()), {}, {}, nothing};
    slot(w, node, f) = intern(places_, place_ids_, std::move(place));
  }
}

// --- the coordinator

const SmallWorlds::Decided& SmallWorlds::decide(World::Id id, uint64_t event, const auto& act) {
  const auto [at, fresh] = decisions_.try_emplace(Digest().add(id, event).value());
  Decided& decided = at->second;
  if (!fresh) return decided;
  Coordinator next = coordinators_[id - 1];
  for (const CoordinatorAction& action : act(next)) {
    if (const auto* event = std::get_if<ViewEvent>(&action))
      decided.lossy = decided.lossy || event->lossy;
    const auto* one = std::get_if<CoordinatorSend>(&action);
    if (one && !std::holds_alternative<HeartbeatAnswer>(one->message.body))
      decided.sent.push_back(keep(one->to, one->message));
  }
  decided.coordinator = intern(coordinators_, coordinator_ids_, std::move(next));
  decided.changed = decided.coordinator != id || !decided.sent.empty();
  return decided;
}

void SmallWorlds::happen(World& w, const Decided& decided) {
  w.coordinator = decided.coordinator;
  w.lossy = w.lossy || decided.lossy;
  send(w, decided.sent);
}

uint64_t SmallWorlds::status_digest(const World& w, int node) const {
  bool all_in = true;
  for (int n = 0; n < options_.nodes; ++n)
    all_in = all_in &&
             (!w.nodes[static_cast<size_t>(n)].alive || coordinator(w).view().has(process(w, n)));
  Digest digest;
  for (int f = 0; f < options_.fragments; ++f) {
    const FragmentStatus status = place(w, node, f)->seat.status();
    digest.add(status.ready_epoch);
    if (options_.all_heartbeats || !all_in) digest.add(status.version);
  }
  return digest.value();
}

// JOIN until it has a view, as a process does; then HEARTBEAT.
Message SmallWorlds::heartbeat_of(const World& w, int node) const {
  const Epoch epoch = place(w, node, 0)->seat.epoch();
  if (epoch == 0) return {process(w, node), 0, -1, Join{}};
  Heartbeat beat{0, {}};
  for (int f = 0; f < options_.fragments; ++f)
    beat.fragments.push_back(place(w, node, f)->seat.status());
  return {process(w, node), epoch, -1, beat};
}

void SmallWorlds::heartbeat(World& w, int node) {
  const Message m = heartbeat_of(w, node);
  happen(w, decide(w.coordinator, Digest().add(Kind::heartbeat, m).value(),
                   [&](Coordinator& c) { return c.on(m, 0); }));
  w.nodes[static_cast<size_t>(node)].told = status_digest(w, node);
}

const SmallWorlds::Decided& SmallWorlds::ticked(const World& w) {
  return decide(w.coordinator, Digest().add(Kind::tick).value(),
                [](Coordinator& c) { return c.tick(0); });
}

void SmallWorlds::remove(World& w, int node) {
  const World::Node& it = w.nodes[static_cast<size_t>(node)];
  if (it.alive && coordinator(w).view().has(process(w, node))) --w.left.suspicions;
  happen(w, decide(w.coordinator, Digest().add(Kind::remove, node).value(),
                   [&](Coordinator& c) { return c.remove(node, "it is taken for dead", 0); }));
  w.nodes[static_cast<size_t>(node)].told = 0;
}

// It has heard nobody since, and time enough is over.
void SmallWorlds::restart_coordinator(World& w) {
  --w.left.coordinators;
  CoordinatorConfig config;
  config.fragments = options_.fragments;
  config.policy = options_.policy;
  Coordinator again(config, coordinator(w).view(), true, -config.policy.suspect_after);
  w.coordinator = intern(coordinators_, coordinator_ids_, std::move(again));
  for (World::Node& node : w.nodes) node.told = 0;
  std::erase_if(w.messages, [&](World::Id id) { return receiver(id) == kCoordinator; });
}

// --- all of it

Finding SmallWorlds::apply(World& w, const Transition& t) {
  switch (t.kind) {
    case Kind::deliver:
      return deliver(w, t.message);
    case Kind::contribute:
      return contribute(w, t.node, t.fragment);
    case Kind::fire:
      return fire(w, t);
    case Kind::busy:
      return toggle_busy(w, t.node);
    case Kind::lose:
      --w.left.losses, take_out(w, t.message);
      break;
    case Kind::heartbeat:
      heartbeat(w, t.node);
      break;
    case Kind::tick:
      happen(w, ticked(w));
      break;
    case Kind::crash:
      crash(w, t.node);
      break;
    case Kind::restart:
      restart(w, t.node);
      break;
    case Kind::remove:
      remove(w, t.node);
      break;
    case Kind::restart_coordinator:
      restart_coordinator(w);
      break;
  }
  return std::nullopt;
}

XXH128_hash_t SmallWorlds::digest(const World& w) const {
  canonical_.clear();
  for (int n = 0; n < options_.nodes; ++n) {
    const World::Node& node = w.nodes[static_cast<size_t>(n)];
    canonical_.add(node.incarnation, node.alive, node.busy, node.told);
  }
  for (int p = 0; p < options_.nodes * options_.fragments; ++p)
    canonical_.add(w.places[static_cast<size_t>(p)]);
  sorted_ = w.messages;
  std::sort(sorted_.begin(), sorted_.end());
  canonical_.add(w.coordinator, sorted_, w.left, w.lossy);
  return canonical_.wide();
}

// By an equal one, or by any on the same connection.
bool SmallWorlds::held_up(const World& w, size_t at) const {
  const World::Id id = w.messages[at];
  const auto before = w.messages.begin() + static_cast<std::ptrdiff_t>(at);
  return std::any_of(w.messages.begin(), before, [&](World::Id other) {
    const bool same_way =
        receiver(other) == receiver(id) && message(other).from.node == message(id).from.node;
    return other == id || (options_.in_order && same_way);
  });
}

void SmallWorlds::list_messages(const World& w, std::vector<Transition>& out) const {
  for (size_t i = 0; i < w.messages.size(); ++i) {
    const World::Id id = w.messages[i];
    if (held_up(w, i)) continue;
    const int to = receiver(id);
    if (to != kCoordinator && !w.nodes[static_cast<size_t>(to)].alive) continue;
    out.push_back({Kind::deliver, to, message(id).fragment, {}, id});
    if (w.left.losses > 0) out.push_back({Kind::lose, to, message(id).fragment, {}, id});
  }
}

bool SmallWorlds::may_heartbeat(const World& w, int node) const {
  const Epoch epoch = place(w, node, 0)->seat.epoch();
  const Epoch current = coordinator(w).view().epoch;
  if (epoch < current && !coming(w, node, current)) return true;
  return epoch > 0 && status_digest(w, node) != w.nodes[static_cast<size_t>(node)].told;
}

void SmallWorlds::list_node(const World& w, int node, std::vector<Transition>& out) const {
  for (int f = 0; f < options_.fragments; ++f) {
    const Resident& p = *place(w, node, f);
    const bool more =
        p.position.version() < options_.most_versions && p.books.made < options_.most_sequence;
    if (more && p.may_contribute(options_.policy.staleness))
      out.push_back({Kind::contribute, node, f, {}, 0});
    for (Timer timer : kTimers) {
      if (!p.seat.due(timer)) continue;
      if (timer == Timer::close || w.left.questions > 0)
        out.push_back({Kind::fire, node, f, timer, 0});
    }
  }
  if (may_heartbeat(w, node)) out.push_back({Kind::heartbeat, node, -1, {}, 0});
}

void SmallWorlds::list_faults(const World& w, int node, std::vector<Transition>& out) const {
  const World::Node& it = w.nodes[static_cast<size_t>(node)];
  const View& view = coordinator(w).view();
  const bool member = view.find(node);
  const bool lives = it.alive && view.has(process(w, node));
  if (it.alive && w.left.crashes > 0) out.push_back({Kind::crash, node, -1, {}, 0});
  if (!it.alive && w.left.restarts > 0) out.push_back({Kind::restart, node, -1, {}, 0});
  const bool suspected = lives && w.left.suspicions > 0 && view.epoch < options_.most_epochs;
  if (member && (!lives || suspected)) out.push_back({Kind::remove, node, -1, {}, 0});
  if (it.alive && w.left.busy > 0) out.push_back({Kind::busy, node, -1, {}, 0});
}

void SmallWorlds::transitions(const World& w, std::vector<Transition>& out) {
  out.clear();
  if (w.over) return;
  list_messages(w, out);
  for (int node = 0; node < options_.nodes; ++node) {
    if (w.nodes[static_cast<size_t>(node)].alive) list_node(w, node, out);
    list_faults(w, node, out);
  }
  const bool more_views = coordinator(w).view().epoch < options_.most_epochs;
  if (more_views && ticked(w).changed) out.push_back({Kind::tick, -1, -1, {}, 0});
  if (w.left.coordinators > 0) out.push_back({Kind::restart_coordinator, -1, -1, {}, 0});
}

bool SmallWorlds::possible(const World& w, const Transition& t) {
  std::vector<Transition> all;
  transitions(w, all);
  return std::find(all.begin(), all.end(), t) != all.end();
}

// --- in words

std::string SmallWorlds::describe(const World& w, const Transition& t) const {
  const std::string node = "node " + std::to_string(t.node);
  const std::string to = t.node == kCoordinator ? "the coordinator" : node;
  const std::string of = options_.fragments > 1 ? ", fragment " + std::to_string(t.fragment) : "";
  static constexpr const char* kTimerNames[] = {"close", "remind", "retry"};
  const bool live = t.kind == Kind::remove && w.nodes[static_cast<size_t>(t.node)].alive;
  switch (t.kind) {
    case Kind::deliver:
      return to + " gets " + in_words(message(t.message)) + of;
    case Kind::lose:
      return "lost on the way to " + to + ": " + in_words(message(t.message)) + of;
    case Kind::contribute:
      return node + " contributes" + of;
    case Kind::fire:
      return node + ": the timer '" + kTimerNames[static_cast<int>(t.timer)] + "' fires" + of;
    case Kind::heartbeat:
      return "the coordinator gets " + in_words(heartbeat_of(w, t.node));
    case Kind::tick:
      return "the coordinator looks who is there";
    case Kind::crash:
      return node + " crashes";
    case Kind::restart:
      return node + " is started again";
    case Kind::remove:
      return "the coordinator removes " + node + (live ? ", which lives" : ", which is dead");
    case Kind::restart_coordinator:
      return "the coordinator is started again";
    case Kind::busy:
      return node + " turns busy, or is not any more";
  }
  return "";
}

std::string SmallWorlds::describe(const World& w, int node, int fragment) const {
  const Resident* p = place(w, node, fragment);
  if (!p) return "dead";
  std::string line = in_words(p->seat);
  if (p->position.version() != p->seat.lineage().version)
    line += ", training at " + std::to_string(p->position.version());
  const auto open = p->seat.member().outbox().size();
  if (static_cast<size_t>(p->position.unresolved()) != open)
    line += ", training thinks of " + std::to_string(p->position.unresolved()) + " as unresolved";
  for (uint64_t sequence : p->books.returned) line += ", returned " + std::to_string(sequence);
  return line;
}

}  // namespace hybridsync
