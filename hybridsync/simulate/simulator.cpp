#include "hybridsync/simulate/simulator.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <queue>

#include "hybridsync/math/hash.h"
#include "hybridsync/simulate/deeds.h"
#include "hybridsync/simulate/virtual_node.h"
#include "hybridsync/simulate/words.h"

namespace hybridsync {
namespace {

constexpr Micros kSecond = 1'000'000;
// Between the two threads of a process.
constexpr Micros kLeastWake = 5, kMostWake = 50;
// A version that stands still for longer than this, when nothing is wrong any more, is a hang. The
// longest pauses of the protocol are a question asked for the fourth time (8 s) and the time for
// which a node that was removed for a cut stays out (some seconds).
constexpr Micros kPatience = 60 * kSecond;
constexpr int64_t kMostEvents = 4'000'000;  // without a new version: then a run is stopped
// Events that steps and heartbeats do not explain, and what they explain at the most.
constexpr int64_t kSpareEvents = 500'000, kEventsPerStep = 50, kEventsPerHeartbeat = 20;
// Without any training in them: at the end, and while nodes come back.
constexpr Version kEmptyVersions = 1000;

struct Event {
  enum class Kind : uint8_t { message, lost, tick, step, look, begin, end };
  Micros at = 0;
  uint64_t order = 0;  // of equal moments: as they were planned
  Kind kind = Kind::tick;
  int node = -1;
  uint64_t life = 0;
  size_t index = 0;  // message: its slot; lost: the peer; begin, end: the fault
  bool operator<(const Event& o) const {
    return at != o.at ? at > o.at : order > o.order;  // the earliest is on top
  }
};

struct InFlight {
  int from = -1;
  Network::Flight flight;
  Bytes header;
  SharedBytes body;
};

class Simulation {
 public:
  Simulation(const Scenario& scenario, bool trace);
  SimulatedRun run();

 private:
  using Kind = Event::Kind;
  using Node = VirtualNode;

  // --- events
  void plan(Micros at, Kind kind, int node, size_t index = 0);
  void handle(const Event& e);
  void on_node(Node& n, const Event& e);
  void message(Node& n, const Event& e);
  void send(Node& from, int to, Channel channel, Bytes header, SharedBytes body);
  void after(Node& n);
  void plan_tick(Node& n);
  void plan_look(Node& n);

  // --- processes
  void start(Node& n, bool joins);
  void host_coordinator(Node& n, bool again);
  void end_process(Node& n);
  Process self(const Node& n) const { return {n.number, n.incarnation}; }

  // --- training
  void look(Node& n);
  void train(Node& n);
  void leave(Node& n);
  bool idle(const Node& n) const;
  Micros step_time(Node& n);

  // --- faults
  void begin(size_t fault);
  void end(size_t fault);
  void go_down(Node& n, FaultKind kind);
  void tell_of_death(Node& n);
  void cut_all(const Fault& f, bool heals);
  void thaw(Node& n);

  // --- checks
  void check(Node& n);
  void check_seat(Node& n, const Seat& seat);
  void check_anchor(Node& n, const Seat& seat);
  void check_left_out(const Node& n, const Seat& seat);
  void check_progress();
  Micros patience() const;
  bool stays_cut(const Node& n) const;
  bool kept_back(const Node& n) const;
  bool promised() const;
  std::string for_good() const;
  void stand_still(int fragment, Version newest);
  void check_events();
  void check_reports(Node& n);
  bool is_newest(const Seat& seat) const;
  bool all_done();
  void check_end();
  void check_parameters();
  void check_traffic();
  void check_nothing_is_left_out();
  void finish(SimulatedRun& run);
  bool nobody_left() const;
  std::string who_waits() const;

  void say(int node, int fragment, const auto& text) {
    if (tracing_) trace_.push_back({now_, node, fragment, text()});
  }
  void watch(const Seat& seat, const Action& action);

  const Scenario& scenario_;
  const bool tracing_;
  std::vector<TraceLine> trace_;
  Random random_;
  Network network_;
  Oracle oracle_;
  std::vector<Node> nodes_;
  std::priority_queue<Event> events_;
  std::vector<InFlight> in_flight_;
  std::vector<size_t> free_;
  std::vector<std::vector<Event>> deferred_;  // by node, while it is frozen
  struct Begun {
    bool took = false;
    uint64_t life = 0;
  };
  std::vector<Begun> begun_;                          // by fault
  std::vector<std::pair<Version, Micros>> progress_;  // by fragment: newest version, and since when
  // From then on nothing goes wrong, until the next fault begins.
  Micros now_ = 0, calm_from_ = 0;
  int64_t moved_at_ = 0;  // the event of the newest version of any fragment
  bool stranded_ = false;
  std::string note_;  // where a run ends otherwise than it should, and may
  int64_t payload_bytes_ = 0;
  uint64_t order_ = 0;
  uint64_t run_ = run_hash("simulated");
  Tally tally_;
};

std::vector<float> start_of(const Scenario& scenario) {
  std::vector<float> parameters(static_cast<size_t>(scenario.problem->parameters()));
  scenario.problem->start(parameters);
  return parameters;
}

Simulation::Simulation(const Scenario& scenario, bool trace)
    : scenario_(scenario),
      tracing_(trace),
      random_(Random(scenario.seed).fork(7)),
      network_(static_cast<int>(scenario.nodes.size()), scenario.link, random_.fork(8)),
      oracle_(scenario, start_of(scenario)),
      deferred_(scenario.nodes.size()),
      begun_(scenario.faults.size()),
      progress_(scenario.table.fragments.size()) {
  for (const NodeProfile& profile : scenario.nodes) {
    Node& n = nodes_.emplace_back();
    n.number = static_cast<int>(nodes_.size()) - 1;
    n.clock = VirtualClock(profile.clock_start, profile.clock_parts);
    n.step = profile.step;
    n.unevenness = profile.unevenness;
    n.seen.resize(scenario.table.fragments.size());
  }
  for (size_t f = 0; f < scenario.faults.size(); ++f) {
    const Fault& fault = scenario.faults[f];
    plan(fault.at, Kind::begin, -1, f);
    if (fault.lasts > 0) plan(fault.at + fault.lasts, Kind::end, -1, f);
  }
}

// --- events

void Simulation::plan(Micros at, Kind kind, int node, size_t index) {
  const uint64_t life = node < 0 ? 0 : nodes_[static_cast<size_t>(node)].life;
  events_.push({at, order_++, kind, node, life, index});
}

SimulatedRun Simulation::run() {
  SimulatedRun run;
  run.seed = scenario_.seed;
  try {
    for (Node& n : nodes_) start(n, false);
    while (!oracle_.breach() && !stranded_ && note_.empty() && !all_done()) {
      const Event e = events_.top();
      events_.pop();
      now_ = e.at;
      ++tally_.events;
      handle(e);
      check_progress();
    }
    if (!oracle_.breach() && !stranded_ && all_done()) check_end();
  } catch (const std::exception& e) {
    oracle_.broken(Rule::agreement, -1, std::string("the code threw: ") + e.what());
  }
  finish(run);
  return run;
}

void Simulation::handle(const Event& e) {
  if (e.kind == Kind::begin) return begin(e.index);
  if (e.kind == Kind::end) return end(e.index);
  Node& n = nodes_[static_cast<size_t>(e.node)];
  if (n.life == e.life && n.process && n.freezes > 0)
    return deferred_[static_cast<size_t>(e.node)].push_back(e);
  const bool reaches = n.life == e.life && n.process;
  if (e.kind == Kind::message) {
    if (reaches) message(n, e);
    in_flight_[e.index] = {};
    free_.push_back(e.index);
    if (!reaches) ++tally_.messages_lost;
  } else if (reaches) {
    on_node(n, e);
  }
  if (reaches && n.process) after(n);
}

void Simulation::on_node(Node& n, const Event& e) {
  const Micros local = n.clock.shows(now_);
  if (e.kind == Kind::lost) {
    const int peer = static_cast<int>(e.index);
    say(n.number, -1, [&] { return "its connection to node " + std::to_string(peer) + " broke"; });
    n.process->lane.on(PeerLost{peer, "the connection broke"}, local);
  } else if (e.kind == Kind::tick) {
    if (n.tick_at != e.at) return;  // another one was planned since
    n.tick_at.reset();
    n.process->lane.tick(local);
  } else if (e.kind == Kind::step) {
    n.process->computing = false;
    n.process->training.step();
    ++tally_.steps;
    train(n);
  } else if (e.kind == Kind::look) {
    n.process->look_planned = false;
    look(n);
  }
}

void Simulation::message(Node& n, const Event& e) {
  InFlight& m = in_flight_[e.index];
  if (!network_.arrives(m.from, n.number, m.flight)) {
    ++tally_.messages_lost;
    return;
  }
  Received received{m.from, std::move(m.header), m.body ? *m.body : Bytes{}};
  if (tracing_) {
    const auto decoded = decode(received.header, received.body, {run_, m.from});
    const auto wire = read_message(std::get<Frame>(decoded));
    say(n.number, wire->message.fragment, [&] { return "gets " + in_words(wire->message); });
  }
  n.process->lane.on(std::move(received), n.clock.shows(now_));
}

void Simulation::send(Node& from, int to, Channel channel, Bytes header, SharedBytes body) {
  const size_t bytes = header.size() + (body ? body->size() : 0);
  const auto flight = network_.send(from.number, to, channel, bytes, now_);
  ++tally_.messages;
  if (body) payload_bytes_ += static_cast<int64_t>(body->size());
  if (flight.lost) {
    ++tally_.messages_lost;
    return;
  }
  size_t slot = in_flight_.size();
  if (free_.empty()) {
    in_flight_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  in_flight_[slot] = {from.number, flight, std::move(header), std::move(body)};
  plan(flight.at, Kind::message, to, slot);
}

// What an event leaves to do on its node, and the checks.
void Simulation::after(Node& n) {
  VirtualProcess& p = *n.process;
  if (std::exchange(p.work, false)) {
    const Micros at = now_ + random_.between(kLeastWake, kMostWake);
    if (!n.tick_at || *n.tick_at > at) {
      n.tick_at = at;
      plan(at, Kind::tick, n.number);
    }
  }
  plan_tick(n);
  if (idle(n)) plan_look(n);
  check(n);
}

void Simulation::plan_tick(Node& n) {
  const auto due = n.process->lane.next_due();
  if (!due) return;
  const Micros at = std::max(now_ + 1, n.clock.when(*due, now_));
  if (n.tick_at && *n.tick_at <= at) return;
  n.tick_at = at;
  plan(at, Kind::tick, n.number);
}

// A training that waits is woken by news, and by a change of the view.
void Simulation::plan_look(Node& n) {
  VirtualProcess& p = *n.process;
  if (p.look_planned) return;
  bool changed = false;
  for (const auto& [f, seat] : p.lane.seats()) {
    const Desk::Status status = p.desk.status(f);
    const bool was_ready = n.seen[static_cast<size_t>(f)].ready;
    const bool called = seat.called() && seat.may_contribute(seat.lineage().version);
    changed = changed || status.news || seat.ready() != was_ready || called;
  }
  if (!changed) return;
  p.look_planned = true;
  plan(now_ + random_.between(kLeastWake, kMostWake), Kind::look, n.number);
}

// --- processes

void Simulation::start(Node& n, bool joins) {
  ++n.life;
  ++tally_.processes;
  n.tick_at.reset();
  n.process = std::make_unique<VirtualProcess>(
      scenario_, self(n), oracle_, random_.fork(n.life),
      [this, &n](int to, Channel channel, Bytes header, SharedBytes body) {
        send(n, to, channel, std::move(header), std::move(body));
      });
  VirtualProcess& p = *n.process;
  p.lane.watch([this](const Seat& seat, const Action& action) { watch(seat, action); });
  if (n.number == 0 && has_coordinator(scenario_)) host_coordinator(n, joins);
  const Micros local = n.clock.shows(now_);
  if (joins) {
    say(n.number, -1, [&] { return words(self(n)) + " starts and asks to be let in"; });
    p.lane.join(local);
  } else {
    p.lane.begin(first_view(scenario_.table), local);
    p.started = true;
    look(n);
  }
  p.work = true;
  after(n);
}

void Simulation::host_coordinator(Node& n, bool again) {
  CoordinatorConfig config;
  config.fragments = static_cast<int>(scenario_.table.fragments.size());
  config.removes = scenario_.views;
  config.self = self(n);
  config.policy = scenario_.policy;
  if (!n.disk) n.disk = first_view(scenario_.table);
  n.process->lane.host(Coordinator(config, *n.disk, again, n.clock.shows(now_)),
                       [this, &n](const View& view) {
                         n.disk = view;
                         ++tally_.views;
                         say(n.number, -1, [&] { return "the coordinator: view " + words(view); });
                       });
}

void Simulation::end_process(Node& n) {
  check_reports(n);
  oracle_.ended(self(n), n.process->training.trained());
  tally_.ledger += n.process->desk.ledger();
  n.process.reset();
  n.tick_at.reset();
  n.freezes = 0;
  n.no_more_data = n.leaving = false;
  ++n.life;
  for (const Event& e : std::exchange(deferred_[static_cast<size_t>(n.number)], {}))
    events_.push({now_, order_++, e.kind, e.node, e.life, e.index});
}

// --- training

bool Simulation::idle(const Node& n) const { return !n.process->computing && n.process->busy == 0; }

Micros Simulation::step_time(Node& n) {
  double time = static_cast<double>(n.step) * n.slowness;
  if (n.unevenness > 0) time *= 1 + n.unevenness * std::min(20.0, random_.pareto() - 1);
  return std::max<Micros>(1, static_cast<Micros>(time));
}

void Simulation::look(Node& n) {
  VirtualProcess& p = *n.process;
  if (!idle(n)) return;
  if (!p.started) {
    p.training.take_news();
    const auto& seats = p.lane.seats();
    p.started =
        std::all_of(seats.begin(), seats.end(), [](const auto& s) { return s.second.ready(); });
    if (!p.started) return;
    say(n.number, -1, [] { return std::string("begins to train"); });
  }
  train(n);
}

// A step boundary, or a look while training waits.
void Simulation::train(Node& n) {
  VirtualProcess& p = *n.process;
  p.training.take_news();
  const Lineage& lineage = p.lane.seats().begin()->second.lineage();
  p.over = n.no_more_data || n.leaving || lineage.total_samples >= scenario_.total_samples;
  if (p.over) {
    p.training.offer(true, !n.leaving);
    if (n.leaving && p.training.at_rest()) leave(n);
    return;
  }
  p.training.offer(false, false);
  if (p.busy > 0) return;
  if (p.training.must_wait()) {
    p.training.answer();
    return say(n.number, -1, [] { return std::string("waits"); });
  }
  p.computing = true;
  plan(now_ + step_time(n), Kind::step, n.number);
}

void Simulation::leave(Node& n) {
  say(n.number, -1, [] { return std::string("leaves in order"); });
  n.process->lane.leave();
  end_process(n);
  network_.lose_to(n.number);
}

// --- faults

void Simulation::begin(size_t index) {
  const Fault& f = scenario_.faults[index];
  Node& n = nodes_[static_cast<size_t>(f.nodes[0])];
  const bool of_process = f.kind != FaultKind::cut && f.kind != FaultKind::broken &&
                          f.kind != FaultKind::partition && f.kind != FaultKind::slow &&
                          f.kind != FaultKind::drift;
  if (of_process && !n.process) return;
  begun_[index] = {true, n.life};
  calm_from_ = std::max(calm_from_, now_ + f.lasts);
  ++tally_.faults[std::string(name(f.kind))];
  say(n.number, -1, [&] { return "FAULT " + to_text(f); });
  switch (f.kind) {
    case FaultKind::crash:
    case FaultKind::power_off:
      go_down(n, f.kind);
      break;
    case FaultKind::freeze:
      ++n.freezes;
      break;
    case FaultKind::cut:
    case FaultKind::broken:
    case FaultKind::partition:
      cut_all(f, false);
      break;
    case FaultKind::slow:
      n.slowness *= f.factor;
      break;
    case FaultKind::drift:
      n.clock.set_rate(std::llround(f.factor), now_);
      break;
    case FaultKind::busy:
      if (n.process->busy++ == 0) n.process->desk.set_busy(true);
      break;
    case FaultKind::finish:
      n.no_more_data = true;
      break;
    case FaultKind::leave:
      n.leaving = true;
      break;
  }
  if (n.process && n.freezes == 0) after(n);
}

void Simulation::end(size_t index) {
  const Fault& f = scenario_.faults[index];
  Node& n = nodes_[static_cast<size_t>(f.nodes[0])];
  if (!begun_[index].took) return;
  const bool same_process = n.process && n.life == begun_[index].life;
  say(n.number, -1, [&] { return "end of " + to_text(f); });
  switch (f.kind) {
    case FaultKind::crash:
    case FaultKind::power_off:
      if (n.process) break;
      ++n.incarnation;
      start(n, true);
      break;
    case FaultKind::freeze:
      if (same_process && --n.freezes == 0) thaw(n);
      break;
    case FaultKind::cut:
    case FaultKind::broken:
    case FaultKind::partition:
      cut_all(f, true);
      break;
    case FaultKind::slow:
      n.slowness /= f.factor;
      break;
    case FaultKind::drift:
      n.clock.set_rate(0, now_);
      break;
    case FaultKind::busy:
      if (!same_process || --n.process->busy > 0) break;
      n.process->desk.set_busy(false);
      plan(now_, Kind::look, n.number);
      break;
    case FaultKind::finish:
    case FaultKind::leave:
      break;
  }
  if (n.process && n.freezes == 0) after(n);
}

void Simulation::go_down(Node& n, FaultKind kind) {
  if (kind == FaultKind::power_off) network_.lose_from(n.number);
  if (kind == FaultKind::crash) tell_of_death(n);
  network_.lose_to(n.number);
  end_process(n);
}

// Behind everything that it has sent: its kernel closes the connections.
void Simulation::tell_of_death(Node& n) {
  for (Node& other : nodes_) {
    if (other.number == n.number || !other.process) continue;
    if (network_.is_cut(n.number, other.number)) continue;
    plan(network_.quiet_after(n.number, other.number, now_), Kind::lost, other.number,
         static_cast<size_t>(n.number));
  }
}

void Simulation::cut_all(const Fault& f, bool heals) {
  std::vector<std::pair<int, int>> pairs;
  if (f.kind != FaultKind::partition) {
    pairs = {{f.nodes[0], f.nodes[1]}};
  } else {
    for (int a : f.nodes)
      for (const Node& b : nodes_)
        if (!std::count(f.nodes.begin(), f.nodes.end(), b.number)) pairs.push_back({a, b.number});
  }
  for (const auto& [a, b] : pairs) {
    if (heals) {
      network_.heal(a, b);
      continue;
    }
    network_.cut(a, b);
    if (f.kind != FaultKind::broken) continue;
    plan(now_ + scenario_.link.delay, Kind::lost, a, static_cast<size_t>(b));
    plan(now_ + scenario_.link.delay, Kind::lost, b, static_cast<size_t>(a));
  }
}

void Simulation::thaw(Node& n) {
  for (Event e : std::exchange(deferred_[static_cast<size_t>(n.number)], {})) {
    if (e.kind == Kind::tick) n.tick_at = now_;
    events_.push({now_, order_++, e.kind, e.node, e.life, e.index});
  }
}

// --- checks

void Simulation::watch(const Seat& seat, const Action& action) {
  oracle_.see(seat, action);
  if (!tracing_) return;
  if (std::string text = words(action); !text.empty())
    trace_.push_back({now_, seat.self().node, seat.fragment(), std::move(text)});
}

void Simulation::check(Node& n) {
  check_reports(n);
  const Outcome failure = n.process->desk.failure();
  if (!failure.ok())
    oracle_.broken(Rule::agreement, -1,
                   "node " + std::to_string(n.number) + " cannot go on: " + failure.why);
  for (const auto& [f, seat] : n.process->lane.seats()) check_seat(n, seat);
}

void Simulation::check_seat(Node& n, const Seat& seat) {
  const int f = seat.fragment();
  const auto nodes = static_cast<int>(nodes_.size());
  if (const auto wrong = check_bounds({&seat, nullptr, nullptr, 0}, scenario_.policy, nodes))
    oracle_.broken(wrong->rule, f, wrong->what);
  const Node::Seen now{seat.lineage().chain, seat.ready_epoch(), seat.ready()};
  if (n.seen[static_cast<size_t>(f)] == now) return;
  n.seen[static_cast<size_t>(f)] = now;
  check_anchor(n, seat);
  check_left_out(n, seat);
  if (!seat.ready()) return;
  for (const Node& other : nodes_) {
    if (!other.process || other.number == n.number) continue;
    const Seat& b = other.process->lane.seats().at(f);
    if (!b.ready() || b.epoch() != seat.epoch()) continue;
    if (!oracle_.one_lineage(f, seat.lineage().chain, b.lineage().chain))
      oracle_.broken(Rule::one_lineage, f,
                     words(seat.self()) + " and " + words(b.self()) + ", both ready in epoch " +
                         std::to_string(seat.epoch()) + ", have different lineages");
  }
}

// The bits of the anchor are those that the results give.
void Simulation::check_anchor(Node& n, const Seat& seat) {
  const int f = seat.fragment();
  if (seat.lineage().mode == Mode::gradient || seat.lineage().anchor == 0) return;
  if (scenario_.schedule.synchronous_rounds > 0) return;
  const auto* expected = oracle_.anchor(f, seat.lineage().chain);
  const auto found = std::get<std::span<float>>(n.process->desk.anchor(f));
  const bool equal = expected && expected->size() == found.size() &&
                     std::memcmp(expected->data(), found.data(), found.size_bytes()) == 0;
  if (!equal)
    oracle_.broken(Rule::identical_anchors, f,
                   words(seat.self()) + ": its anchor at version " +
                       std::to_string(seat.lineage().version) + " is not what the results give");
}

// An owner keeps what its means were and its results were not.
void Simulation::check_left_out(const Node& n, const Seat& seat) {
  const int f = seat.fragment();
  const uint64_t chain = seat.lineage().chain;
  const auto* expected = oracle_.left_out(f, chain, seat.self());
  if (!expected) return;
  const auto found = n.process->lane.averager().left_out(f, chain);
  double most = 0;
  for (size_t i = 0; i < expected->sum.size(); ++i)
    most = std::max(most, std::abs(expected->sum[i] - (found.empty() ? 0 : found[i])));
  if (most > rounding(seat.lineage().version) * expected->size)
    oracle_.broken(Rule::account, f,
                   words(seat.self()) + ": what it keeps of its means at version " +
                       std::to_string(seat.lineage().version) +
                       " differs from what its results left out by " + std::to_string(most));
}

void Simulation::check_reports(Node& n) {
  for (const Report& report : n.process->desk.reports()) {
    if (report.kind == Report::Kind::view)
      say(n.number, -1, [&] { return "the coordinator: " + report.text; });
    if (report.kind == Report::Kind::interval) {
      ++tally_.intervals;
      say(n.number, -1, [&] { return report.text; });
    }
    if (report.kind == Report::Kind::mismatch)
      oracle_.broken(Rule::agreement, -1, "with right arithmetic: " + report.text);
    if (report.kind != Report::Kind::lost) continue;
    say(n.number, -1, [&] { return report.text; });
    oracle_.lossy();
    if (report.node < 0) ++tally_.lossy;
  }
}

void Simulation::check_progress() {
  for (size_t f = 0; f < progress_.size(); ++f) {
    auto& [version, since] = progress_[f];
    const Version newest = oracle_.newest(static_cast<int>(f));
    if (newest != version) {
      progress_[f] = {newest, now_};
      moved_at_ = tally_.events;
    }
    if (newest > scenario_.total_samples + kEmptyVersions)
      return oracle_.broken(Rule::progress, static_cast<int>(f),
                            "no end: there are more versions than samples");
    const Micros start = std::max(since, calm_from_);
    if (now_ - start <= kPatience || now_ - start <= patience()) continue;
    return stand_still(static_cast<int>(f), newest);
  }
  check_events();
}

// The protocol's times grow with the round trip, those of training with its steps.
Micros Simulation::patience() const {
  double step = 0;
  for (const Node& n : nodes_)
    step = std::max(step, static_cast<double>(n.step) * n.slowness * (1 + 20 * n.unevenness));
  const Policy& policy = scenario_.policy;
  const auto interval = static_cast<Micros>(step) * (scenario_.schedule.longest() + 1);
  return std::max(kPatience, 60 * policy.remind_after) + 4 * policy.deadline +
         interval * (policy.staleness + 2);
}

// From somebody who counts.
bool Simulation::stays_cut(const Node& n) const {
  const std::optional<View>& view = nodes_.front().disk;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    const bool member = !view || view->has({other.number, other.incarnation});
    return other.number != n.number && member && network_.is_cut(n.number, other.number);
  });
}

// Nothing but the end of a fault could let it finish.
bool Simulation::kept_back(const Node& n) const {
  return n.freezes > 0 || n.process->busy > 0 || (n.number != 0 && stays_cut(n));
}

// Whether versions have to go on increasing with the faults that are in force now.
bool Simulation::promised() const {
  if (scenario_.views && nodes_.front().freezes > 0) return false;
  int members = 0, busy = 0;
  bool trains = false;
  for (const Node& n : nodes_) {
    if (!n.process) continue;
    if (!scenario_.views && (n.freezes > 0 || stays_cut(n))) return false;
    const bool is_busy = n.process->busy > 0;
    busy += is_busy;
    trains = trains || (!kept_back(n) && !n.process->over);
    const std::optional<View>& view = nodes_.front().disk;
    members += !view || view->has({n.number, n.incarnation});
  }
  if (busy == 0) return true;
  const Policy& policy = scenario_.policy;
  return trains && policy.staleness > 0 && members - busy >= policy.quorum_of(members);
}

// What keeps nodes back; empty: nothing does.
std::string Simulation::for_good() const {
  using enum FaultKind;
  std::string text;
  for (size_t i = 0; i < begun_.size(); ++i) {
    const Fault& f = scenario_.faults[i];
    if (!begun_[i].took || f.lasts > 0) continue;
    const Node& n = nodes_[static_cast<size_t>(f.nodes[0])];
    const bool of_pairs = f.kind == cut || f.kind == broken || f.kind == partition;
    const bool of_process = f.kind == freeze || f.kind == busy;
    if (!of_pairs && !(of_process && n.process && n.life == begun_[i].life)) continue;
    text += (text.empty() ? "" : "; ") + to_text(f);
  }
  return text;
}

void Simulation::stand_still(int fragment, Version newest) {
  if (nobody_left()) {
    stranded_ = true;
    return;
  }
  const std::string why = for_good();
  const std::string what = "version " + std::to_string(newest) + " stands still; " + who_waits();
  const bool breach = why.empty() || promised();
  // Who cannot come to an end any more counts as gone: then the others have to be at theirs.
  std::string without;
  for (Node& n : nodes_) {
    if (why.empty() || !n.process || !kept_back(n) || n.process->lane.finished()) continue;
    without += (without.empty() ? "" : ", ") + std::to_string(n.number);
    end_process(n);
  }
  const bool done = !without.empty() && all_done();
  if (breach && !done) return oracle_.broken(Rule::progress, fragment, what);
  note_ = (done ? "ended without node " + without : "stood still") + ": " + why;
  say(0, -1, [&] { return "the run " + note_ + "; " + what; });
}

void Simulation::check_events() {
  const auto nodes = static_cast<int64_t>(nodes_.size());
  const int64_t expected = kEventsPerStep * tally_.steps +
                           kEventsPerHeartbeat * nodes * (now_ / scenario_.policy.heartbeat);
  if (tally_.events > kSpareEvents + expected)
    return oracle_.broken(Rule::progress, -1,
                          "no end after " + std::to_string(tally_.events) + " events");
  if (tally_.events - moved_at_ <= kMostEvents) return;
  note_ = "was stopped after " + std::to_string(kMostEvents) + " events without a new version";
  for (size_t i = 0; i < begun_.size(); ++i) {
    const Fault& f = scenario_.faults[i];
    if (begun_[i].took && f.at + f.lasts >= now_)
      note_ += ", before the end of a fault: " + to_text(f);
  }
}

// Of the members of the view no process lives: whatever they had comes back with them or never.
bool Simulation::nobody_left() const {
  const std::optional<View>& view = nodes_.front().disk;
  return view && std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& n) {
           return n.process && view->has({n.number, n.incarnation});
         });
}

std::string Simulation::who_waits() const {
  std::string text;
  for (const Node& n : nodes_) {
    text += (n.number == 0 ? "node " : ", node ") + std::to_string(n.number);
    if (!n.process) text += " is down";
    if (!n.process) continue;
    text += n.freezes > 0 ? " (frozen):" : ":";
    for (const auto& [f, seat] : n.process->lane.seats()) {
      (text += " ") += std::to_string(seat.lineage().version);
      if (!seat.ready()) text += " not ready";
      for (int peer : seat.waits_for()) (text += " <") += std::to_string(peer);
    }
    if (n.process->over) text += " over";
  }
  return text;
}

// Nobody knows of a later version.
bool Simulation::is_newest(const Seat& seat) const {
  return std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& n) {
    return n.process &&
           n.process->lane.seats().at(seat.fragment()).lineage().version > seat.lineage().version;
  });
}

// Everybody who is there has finished, in the newest epoch. A node that finished in a tail of an
// older one has something to come back to, and so has one that has not seen the last result.
bool Simulation::all_done() {
  const auto& view = nodes_.front().disk;
  const Epoch newest = view ? view->epoch : 1;
  bool somebody = false;
  for (const Node& n : nodes_) {
    if (!n.process) continue;
    somebody = true;
    if (!n.process->lane.finished() || n.process->training.has_news()) return false;
    for (const auto& [f, seat] : n.process->lane.seats())
      if (!seat.ready() || seat.epoch() != newest || !is_newest(seat)) return false;
  }
  return somebody || events_.empty();
}

void Simulation::check_end() {
  for (Node& n : nodes_)
    if (n.process) oracle_.ended(self(n), n.process->training.trained());
  for (size_t f = 0; f < progress_.size(); ++f) {
    std::vector<const Seat*> seats;
    for (const Node& n : nodes_)
      if (n.process) seats.push_back(&n.process->lane.seats().at(static_cast<int>(f)));
    oracle_.check_end(seats);
  }
  check_parameters();
  check_traffic();
  if (tally_.views == 0) check_nothing_is_left_out();
}

// The last round is plain.
void Simulation::check_nothing_is_left_out() {
  for (const Node& n : nodes_) {
    if (!n.process) continue;
    for (const auto& [f, seat] : n.process->lane.seats())
      for (float x : n.process->lane.averager().left_out(f, seat.lineage().chain))
        if (x != 0)
          return oracle_.broken(
              Rule::account, f,
              words(seat.self()) + " ends as the owner with what its results left out");
  }
}

// Only who was away when the others finished has something left that nobody else has: work, or
// what codes left out.
void Simulation::check_parameters() {
  const std::vector<float>* first = nullptr;
  for (const Node& n : nodes_) {
    if (!n.process) continue;
    const Training& training = n.process->training;
    const bool all_were_there = tally_.views == 0;
    if (scenario_.codec.kind != CodecKind::fp32 && !all_were_there) continue;
    const bool flushes = Coder(scenario_.codec).flushes();
    if (!training.at_rest() || (flushes && training.keeps_residual())) {
      if (all_were_there)
        oracle_.broken(Rule::account, -1,
                       "node " + std::to_string(n.number) + " ends with work that is not applied");
      continue;
    }
    if (!first) first = &training.parameters();
    if (training.parameters() != *first)
      oracle_.broken(Rule::identical_anchors, -1,
                     "node " + std::to_string(n.number) + " ends with other parameters");
  }
}

// Where nothing went wrong, every other node sends the owner one contribution for a round, and gets
// one result: nothing travels twice but the work of what came back. At the end every node may have
// had s + 1 more on the way.
void Simulation::check_traffic() {
  if (!scenario_.faults.empty() || tally_.messages_lost > 0 || tally_.views > 0) return;
  const auto others = static_cast<int64_t>(nodes_.size()) - 1;
  int64_t most = 0;
  for (const Fragment& f : scenario_.table.fragments)
    most += f.bytes() * others * (2 * oracle_.newest(f.id) + scenario_.policy.staleness + 1);
  for (const Node& n : nodes_) {
    const Ledger ledger = n.process ? n.process->desk.ledger() : Ledger{};
    most += (ledger.returned.contributions + ledger.dropped.contributions) *
            scenario_.table.largest_bytes();
  }
  if (payload_bytes_ > most)
    oracle_.broken(Rule::traffic, -1,
                   std::to_string(payload_bytes_) + " bytes of payloads were sent, more than " +
                       std::to_string(most));
}

void Simulation::finish(SimulatedRun& run) {
  for (Node& n : nodes_)
    if (n.process) tally_.ledger += n.process->desk.ledger();
  run.breach = oracle_.breach();
  run.trace = std::move(trace_);
  tally_.runs = 1;
  tally_.stranded = stranded_ ? 1 : 0;
  if (!note_.empty() && !run.breach) tally_.notes[note_] = 1;
  for (size_t i = 0; i < begun_.size(); ++i) {
    if (begun_[i].took) continue;
    run.missed.push_back(i);
    ++tally_.missed[std::string(name(scenario_.faults[i].kind))];
  }
  tally_.rounds = oracle_.results();
  tally_.samples = oracle_.sums();
  run.tally = std::move(tally_);
  run.length = now_;
  run.course = combine(oracle_.course(), static_cast<uint64_t>(run.tally.events));
  for (const Node& n : nodes_)
    if (n.process)
      run.course =
          combine(run.course, hash_of(ConstValues(std::span(n.process->training.parameters()))));
}

}  // namespace

std::string to_text(const TraceLine& line) {
  const std::string micros = std::to_string(line.at);
  const std::string padded = std::string(micros.size() < 7 ? 7 - micros.size() : 0, '0') + micros;
  std::string text = padded.substr(0, padded.size() - 6) + "." + padded.substr(padded.size() - 6);
  text += " node " + std::to_string(line.node);
  if (line.fragment >= 0) text += " fragment " + std::to_string(line.fragment);
  return text + ": " + line.text;
}

Tally& Tally::operator+=(const Tally& o) {
  runs += o.runs;
  stranded += o.stranded;
  events += o.events;
  steps += o.steps;
  rounds += o.rounds;
  views += o.views;
  lossy += o.lossy;
  intervals += o.intervals;
  processes += o.processes;
  messages += o.messages;
  messages_lost += o.messages_lost;
  for (const auto& [kind, times] : o.faults) faults[kind] += times;
  for (const auto& [kind, times] : o.missed) missed[kind] += times;
  for (const auto& [why, times] : o.notes) notes[why] += times;
  ledger += o.ledger;
  samples += o.samples;
  return *this;
}

SimulatedRun simulate(const Scenario& scenario, bool trace) {
  return Simulation(scenario, trace).run();
}

}  // namespace hybridsync
