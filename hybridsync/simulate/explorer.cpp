#include "hybridsync/simulate/explorer.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>
#include <utility>

namespace hybridsync {
namespace {

using Kind = Transition::Kind;

// --- states that were seen

class States {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  States() : slots_(1u << 16) {}
  size_t size() const { return origins_.size(); }

  // Whether it is new.
  bool add(const XXH128_hash_t& state, uint32_t parent, size_t transition) {
    if (origins_.size() * 2 > slots_.size()) grow();
    Slot& slot = find(state);
    if (slot.used) return false;
    slot = {state.low64, state.high64, true};
    origins_.push_back({parent, static_cast<uint16_t>(transition)});
    return true;
  }

  // Which of the possible transitions to take, from the beginning.
  std::vector<size_t> path_to(uint32_t state) const {
    std::vector<size_t> path;
    for (; origins_[state].parent != kNone; state = origins_[state].parent)
      path.push_back(origins_[state].transition);
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  struct Slot {
    uint64_t low = 0, high = 0;
    bool used = false;
  };
  struct Origin {
    uint32_t parent = kNone;
    uint16_t transition = 0;
  };

  Slot& find(const XXH128_hash_t& state) {
    size_t at = state.low64 & (slots_.size() - 1);
    while (slots_[at].used && (slots_[at].low != state.low64 || slots_[at].high != state.high64))
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.used) find({slot.low, slot.high}) = slot;
  }

  std::vector<Slot> slots_;
  std::vector<Origin> origins_;
};

// --- what happens when faults are over

// Everything goes on without faults, fairly: whatever is in flight arrives, then everybody does
// what it can, and now and then questions are asked again. Training is slow enough that who only
// follows can catch up, and the grace time long enough that who is called comes in time.
class Drain {
 public:
  Drain(SmallWorlds& worlds, World world, const WalkOptions& options)
      : worlds_(worlds), world_(std::move(world)), options_(options) {
    world_.left.restarts = 0;
    std::erase_if(world_.messages, [&](World::Id id) {
      const int to = worlds_.receiver(id);
      return to != kCoordinator && !alive(to);
    });
  }

  Finding run() {
    constexpr int kMostRounds = 100, kPatience = 5;
    constexpr Version kFurther = 3;
    for (const Version v : versions()) goals_.push_back(v + kFurther);
    if (nothing_left()) return std::nullopt;
    for (int round = 0; round < kMostRounds; ++round) {
      trains_ = round % 2 == 0;
      if (auto wrong = once(round % kPatience == kPatience - 1)) return wrong;
      if (world_.over || there()) return std::nullopt;
    }
    return Violation{Rule::progress, "without further faults versions do not increase: " + where()};
  }
  const std::vector<Transition>& taken() const { return taken_; }

 private:
  int nodes() const { return worlds_.options().nodes; }
  int fragments() const { return worlds_.options().fragments; }
  bool alive(int node) const { return world_.nodes[static_cast<size_t>(node)].alive; }

  std::vector<Version> versions() const {
    std::vector<Version> newest(static_cast<size_t>(fragments()), 0);
    for (int node = 0; node < nodes(); ++node)
      for (int f = 0; f < fragments() && alive(node); ++f) {
        Version& v = newest[static_cast<size_t>(f)];
        v = std::max(v, worlds_.place(world_, node, f)->seat.lineage().version);
      }
    return newest;
  }

  // Only processes that were started again live, and nobody can give them numbers.
  bool nothing_left() const {
    for (int f = 0; f < fragments(); ++f) {
      bool some = false;
      for (int node = 0; node < nodes(); ++node)
        some = some || (alive(node) && worlds_.place(world_, node, f)->seat.lineage().anchor != 0);
      if (!some) return true;
    }
    return false;
  }

  bool there() const {
    const View& view = worlds_.coordinator(world_).view();
    for (int node = 0; node < nodes(); ++node)
      for (int f = 0; f < fragments() && alive(node); ++f) {
        const Seat& seat = worlds_.place(world_, node, f)->seat;
        if (!view.has(seat.self()) && !options_.everybody_back) continue;
        const bool in = view.has(seat.self()) && seat.ready() && seat.epoch() == view.epoch;
        if (!in || seat.lineage().version < goals_[static_cast<size_t>(f)]) return false;
        if (node != options_.idle && !took_part(node, f)) return false;
      }
    return true;
  }

  // A contribution of it was applied lately.
  bool took_part(int node, int f) const {
    const Resident& p = *worlds_.place(world_, node, f);
    const Past* before = p.past->at(p.past->version - 2 * worlds_.options().nodes);
    return p.past->samples(p.seat.self()) > before->samples(p.seat.self());
  }

  std::string where() const {
    std::string text;
    for (int node = 0; node < nodes(); ++node)
      for (int f = 0; f < fragments(); ++f)
        text += "\n      node " + std::to_string(node) + ": " + worlds_.describe(world_, node, f);
    return text;
  }

  Finding apply(const Transition& t) {
    taken_.push_back(t);
    return worlds_.apply(world_, t);
  }

  Finding once(bool ask) {
    while (!world_.messages.empty()) {
      const World::Id id = world_.messages.front();
      if (world_.over) return std::nullopt;
      if (auto wrong = apply({Kind::deliver, worlds_.receiver(id), -1, {}, id})) return wrong;
      if (taken_.size() > kMost) return Violation{Rule::progress, "messages without end"};
    }
    return everybody(ask);
  }

  Finding everybody(bool ask) {
    const View view = worlds_.coordinator(world_).view();
    for (int node = 0; node < nodes(); ++node) {
      const bool member = view.find(node) &&
                          !(alive(node) && view.find(node)->incarnation ==
                                               world_.nodes[static_cast<size_t>(node)].incarnation);
      if (member)
        if (auto wrong = apply({Kind::remove, node, -1, {}, 0})) return wrong;
      if (!alive(node)) continue;
      if (auto wrong = one(node, ask)) return wrong;
    }
    return apply({Kind::tick, -1, -1, {}, 0});
  }

  Finding one(int node, bool ask) {
    const int staleness = worlds_.options().policy.staleness;
    for (int f = 0; f < fragments(); ++f) {
      if (trains_ && node != options_.idle &&
          worlds_.place(world_, node, f)->may_contribute(staleness))
        if (auto wrong = apply({Kind::contribute, node, f, {}, 0})) return wrong;
      for (Timer timer : kTimers) {
        if (timer == Timer::close ? trains_ : !ask) continue;
        if (!worlds_.place(world_, node, f)->seat.due(timer)) continue;
        if (auto wrong = apply({Kind::fire, node, f, timer, 0})) return wrong;
      }
    }
    return apply({Kind::heartbeat, node, -1, {}, 0});
  }

  static constexpr size_t kMost = 20'000;
  SmallWorlds& worlds_;
  World world_;
  std::vector<Version> goals_;
  const WalkOptions& options_;
  bool trains_ = true;
  std::vector<Transition> taken_;
};

// --- traces

struct Replay {
  Finding found;
  std::vector<Transition> done;  // those that were possible
  std::vector<Transition> drain;
};

// One after another, what is possible of them; up to the first violation, in the end with a drain.
Replay replay(SmallWorlds& worlds, const std::vector<Transition>& wanted, const WalkOptions& o) {
  Replay r;
  World world = worlds.begin();
  for (const Transition& t : wanted) {
    if (!worlds.possible(world, t)) continue;
    r.done.push_back(t);
    r.found = worlds.apply(world, t);
    if (r.found) return r;
  }
  if (!o.drain) return r;
  Drain drain(worlds, std::move(world), o);
  r.found = drain.run();
  r.drain = drain.taken();
  return r;
}

class Narrator {
 public:
  explicit Narrator(SmallWorlds& worlds) : worlds_(worlds), world_(worlds.begin()) {}

  std::string tell(const Transition& t) {
    const World before = world_;
    std::string line = worlds_.describe(before, t);
    const Finding found = worlds_.apply(world_, t);
    const WorldOptions& o = worlds_.options();
    for (int p = 0; p < o.nodes * o.fragments; ++p) {
      const auto at = static_cast<size_t>(p);
      if (world_.places[at] != before.places[at]) line += place(p / o.fragments, p % o.fragments);
    }
    return found ? line + "\n   !! " + found->what : line;
  }

 private:
  std::string place(int node, int fragment) const {
    return "\n      -> node " + std::to_string(node) +
           (worlds_.options().fragments > 1 ? ", fragment " + std::to_string(fragment) : "") +
           ": " + worlds_.describe(world_, node, fragment);
  }

  SmallWorlds& worlds_;
  World world_;
};

std::vector<std::string> narrate(SmallWorlds& worlds, const Replay& found) {
  constexpr size_t kMostOfDrain = 40;
  Narrator narrator(worlds);
  std::vector<std::string> lines;
  for (const Transition& t : found.done) lines.push_back(narrator.tell(t));
  if (!found.drain.empty()) lines.push_back("-- no faults any more");
  for (size_t i = 0; i < std::min(kMostOfDrain, found.drain.size()); ++i)
    lines.push_back(narrator.tell(found.drain[i]));
  if (found.drain.size() > kMostOfDrain)
    lines.push_back("-- and so on, " + std::to_string(found.drain.size()) + " events");
  return lines;
}

// Leaves out what is not needed for the same kind of violation, the last first.
Replay minimise(SmallWorlds& worlds, Replay found, const WalkOptions& o) {
  const auto try_without = [&](size_t from, size_t count) {
    std::vector<Transition> fewer = found.done;
    const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(from);
    fewer.erase(first, first + static_cast<std::ptrdiff_t>(count));
    Replay shorter = replay(worlds, fewer, o);
    if (!shorter.found || shorter.found->rule != found.found->rule) return false;
    found = std::move(shorter);
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t count : {8, 2, 1})
      for (size_t from = found.done.size(); from-- > 0;)
        if (from + count <= found.done.size()) again = try_without(from, count) || again;
  }
  return found;
}

Counterexample tell(SmallWorlds& worlds, const Replay& found, uint64_t seed, int depth) {
  return {*found.found, seed, depth, narrate(worlds, found)};
}

// --- breadth first

class Search {
 public:
  explicit Search(const ExploreOptions& options) : options_(options), worlds_(options.world) {}

  ExploreResult run() {
    World first = worlds_.begin();
    states_.add(worlds_.digest(first), States::kNone, 0);
    next_.emplace_back(0, std::move(first));
    while (!next_.empty() && result_.depth < options_.depth && !result_.found && !full()) layer();
    result_.states = states_.size();
    result_.machines = worlds_.machines();
    result_.exhausted = next_.empty() && !result_.found;
    return std::move(result_);
  }

 private:
  bool full() const { return states_.size() >= options_.most_states; }

  void layer() {
    std::vector<std::pair<uint32_t, World>> now;
    now.swap(next_);
    for (auto& [index, world] : now) {
      expand(index, world);
      if (result_.found || full()) return;
      world.messages = {};
    }
    ++result_.depth;
  }

  void expand(uint32_t index, const World& world) {
    worlds_.transitions(world, possible_);
    for (size_t i = 0; i < possible_.size(); ++i) {
      World after = world;
      ++result_.transitions;
      if (Finding wrong = worlds_.apply(after, possible_[i])) return report(index, possible_[i]);
      if (after.over) {
        ++result_.over;
        continue;
      }
      const auto number = static_cast<uint32_t>(states_.size());
      if (states_.add(worlds_.digest(after), index, i))
        next_.emplace_back(number, std::move(after));
    }
  }

  void report(uint32_t index, const Transition& last) {
    std::vector<Transition> path, possible;
    World world = worlds_.begin();
    for (size_t i : states_.path_to(index)) {
      worlds_.transitions(world, possible);
      path.push_back(possible[i]);
      (void)worlds_.apply(world, possible[i]);
    }
    path.push_back(last);
    WalkOptions plain;
    plain.drain = false;
    const auto depth = static_cast<int>(path.size());
    result_.found = tell(worlds_, minimise(worlds_, replay(worlds_, path, plain), plain), 0, depth);
  }

  const ExploreOptions& options_;
  SmallWorlds worlds_;
  States states_;
  std::vector<std::pair<uint32_t, World>> next_;
  std::vector<Transition> possible_;
  ExploreResult result_;
};

// --- random walks

// The same on every machine, unlike std::uniform_int_distribution.
class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}
  double part() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  size_t below(size_t n) { return static_cast<size_t>(part() * static_cast<double>(n)); }

 private:
  std::mt19937_64 bits_;
};

// What one walk prefers: every walk has its own taste, so that some starve one kind of event or one
// node for long.
class Taste {
 public:
  explicit Taste(Dice& dice) {
    const bool even = dice.part() < 0.3;
    for (double& w : kind_) w = even ? 1 : weight(dice);
    for (double& w : node_) w = even ? 1 : weight(dice);
  }
  double of(const Transition& t) const {
    return kind_[static_cast<size_t>(t.kind)] * node_[static_cast<size_t>(t.node + 1)];
  }

 private:
  static double weight(Dice& dice) {
    static constexpr double kWeights[] = {1, 1, 1, 0.3, 0.05};
    return kWeights[dice.below(5)];
  }
  std::array<double, 16> kind_;
  std::array<double, kMostNodes + 1> node_;
};

bool is_question(const Transition& t) { return t.kind == Kind::fire && t.timer != Timer::close; }

const Transition& choose(const std::vector<Transition>& all, const Taste& taste, double faults,
                         Dice& dice) {
  const auto rare = [](const Transition& t) { return is_fault(t.kind) || is_question(t); };
  const auto some = static_cast<size_t>(std::count_if(all.begin(), all.end(), rare));
  const bool fault = some > 0 && (some == all.size() || dice.part() < faults);
  double sum = 0;
  for (const Transition& t : all)
    if (rare(t) == fault) sum += taste.of(t);
  double left = dice.part() * sum;
  const Transition* chosen = nullptr;
  for (const Transition& t : all) {
    if (rare(t) != fault) continue;
    chosen = &t;
    left -= taste.of(t);
    if (left < 0) break;
  }
  return *chosen;
}

// Full contributions up and results down, per node.
class Traffic {
 public:
  explicit Traffic(const SmallWorlds& worlds) : worlds_(worlds) {}

  Finding count(const World& before, const World& after) {
    for (World::Id id : after.messages)
      if (std::find(before.messages.begin(), before.messages.end(), id) == before.messages.end())
        if (auto wrong = count(id)) return wrong;
    return std::nullopt;
  }

 private:
  Finding count(World::Id id) {
    const Message& m = worlds_.message(id);
    const auto* c = std::get_if<Contribution>(&m.body);
    const auto* r = std::get_if<Result>(&m.body);
    if (!(c && c->values) && !(r && r->values)) return std::nullopt;
    const uint64_t number = c ? c->sequence : static_cast<uint64_t>(r->version);
    const int most = c ? 1 : worlds_.options().nodes - 1;
    if (++sent_[{m.from.node, m.fragment, c != nullptr, number}] <= most) return std::nullopt;
    return Violation{Rule::traffic, "node " + std::to_string(m.from.node) + " sends the " +
                                        (c ? "contribution " : "result ") + std::to_string(number) +
                                        " once too often"};
  }

  const SmallWorlds& worlds_;
  std::map<std::tuple<int, int, bool, uint64_t>, int> sent_;
};

class Walk {
 public:
  Walk(SmallWorlds& worlds, const WalkOptions& options, uint64_t seed)
      : worlds_(worlds), options_(options), seed_(seed), dice_(seed), taste_(dice_) {}

  std::optional<Counterexample> run() {
    World world = worlds_.begin();
    Traffic traffic(worlds_);
    std::vector<Transition> possible;
    while (path_.size() < static_cast<size_t>(options_.depth)) {
      worlds_.transitions(world, possible);
      if (possible.empty()) break;
      path_.push_back(choose(possible, taste_, options_.faults, dice_));
      const World before = options_.count_traffic ? world : World();
      Finding wrong = worlds_.apply(world, path_.back());
      if (!wrong && options_.count_traffic) wrong = traffic.count(before, world);
      if (wrong) return report(std::move(*wrong), false);
    }
    over_ = world.over;
    if (over_ || !options_.drain) return std::nullopt;
    Finding wrong = Drain(worlds_, std::move(world), options_).run();
    return wrong ? std::optional(report(std::move(*wrong), true)) : std::nullopt;
  }

  size_t transitions() const { return path_.size(); }
  bool over() const { return over_; }

 private:
  Counterexample report(Violation wrong, bool drained) {
    const auto depth = static_cast<int>(path_.size());
    WalkOptions options = options_;
    options.drain = drained;
    Replay found{std::move(wrong), path_, {}};
    if (found.found->rule != Rule::traffic)
      found = minimise(worlds_, replay(worlds_, path_, options), options);
    return tell(worlds_, found, seed_, depth);
  }

  SmallWorlds& worlds_;
  const WalkOptions& options_;
  uint64_t seed_;
  Dice dice_;
  Taste taste_;
  std::vector<Transition> path_;
  bool over_ = false;
};

}  // namespace

ExploreResult explore(const ExploreOptions& options) { return Search(options).run(); }

WalkResult walk(const WalkOptions& options) {
  constexpr size_t kMostMachines = 400'000;
  WalkResult result;
  SmallWorlds worlds(options.world);
  while (result.walks < options.walks && !result.found) {
    if (worlds.machines() > kMostMachines) worlds.clear();
    Walk walk(worlds, options, options.first_seed + static_cast<uint64_t>(result.walks));
    result.found = walk.run();
    result.transitions += walk.transitions();
    result.over += walk.over();
    ++result.walks;
  }
  return result;
}

}  // namespace hybridsync
