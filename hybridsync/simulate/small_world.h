// A small world in which everything that can happen can be listed: a few nodes with the production
// machines, the coordinator, and the messages in flight in no order. Time stands still: a timer
// that is armed may fire at any moment. What goes wrong has a budget, so that the world is finite.
//
// Machines and messages are kept once each, in tables; a World is a handful of numbers.
// Single-threaded.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hybridsync/decide/coordinator.h"
#include "hybridsync/simulate/canonical.h"
#include "hybridsync/simulate/place.h"

namespace hybridsync {

constexpr int kMostNodes = 4, kMostFragments = 2;

// How often something may still happen.
struct Budget {
  int crashes = 1;
  int restarts = 1;
  int suspicions = 1;    // the coordinator removes a node that lives
  int losses = 1;        // of a message
  int questions = 2;     // remind and retry timers that fire
  int coordinators = 0;  // restarts of the coordinator, which remembers the view alone
  int busy = 0;          // a node turns busy, or is not any more
  static void visit(auto& s, auto&& f) {
    f(s.crashes, s.restarts, s.suspicions, s.losses, s.questions, s.coordinators, s.busy);
  }
  bool operator==(const Budget&) const = default;
};

struct WorldOptions {
  int nodes = 3;      // not more than kMostNodes
  int fragments = 1;  // not more than kMostFragments
  Policy policy = small_policy(1);
  Version most_versions = 5;      // nobody contributes on top of it
  uint64_t most_sequence = 4;     // contributions of a process to a fragment
  Epoch most_epochs = 4;          // no further view, except that the dead are removed
  int copies = 1;                 // of one message in flight
  bool all_heartbeats = false;    // also those that tell the coordinator only of new versions
  bool in_order = false;          // between two nodes, as on one connection
  bool kept_for_restart = false;  // messages to a dead process may come to the next one
  Budget budget;

  // Times do not matter here: the least that is not zero.
  static Policy small_policy(int staleness);
};

// Something that can happen.
struct Transition {
  enum class Kind : uint8_t {
    deliver,
    lose,
    contribute,
    fire,
    heartbeat,  // reaches the coordinator at once; of a process without a view: JOIN
    tick,       // of the coordinator
    crash,
    restart,
    remove,  // the coordinator takes a member for dead
    restart_coordinator,
    busy,
  } kind;
  int node = -1;
  int fragment = -1;
  Timer timer = Timer::close;
  uint32_t message = 0;
  bool operator==(const Transition&) const = default;
};
bool is_fault(Transition::Kind kind);

struct World {
  using Id = uint32_t;  // in a table; 0: none
  struct Node {
    uint32_t incarnation = 0;
    bool alive = true;
    bool busy = false;
    uint64_t told = 0;  // digest of its last heartbeat
  };
  std::array<Node, kMostNodes> nodes;
  std::array<Id, kMostNodes * kMostFragments> places{};
  Id coordinator = 0;
  std::vector<Id> messages;  // in flight, as they were sent; digest() does not see the order
  Budget left;
  bool lossy = false;  // a view was announced as such
  bool over = false;   // ... and a lineage came back of which contributions were returned
};

class SmallWorlds {
 public:
  explicit SmallWorlds(WorldOptions options);

  const WorldOptions& options() const { return options_; }
  World begin();
  // Everything that can happen next, in an order that depends on the way to this world alone.
  void transitions(const World& world, std::vector<Transition>& out);
  bool possible(const World& world, const Transition& transition);
  // Only what is possible. What it broke, if anything.
  [[nodiscard]] Finding apply(World& world, const Transition& transition);

  XXH128_hash_t digest(const World& world) const;
  // In words.
  std::string describe(const World& before, const Transition& transition) const;
  std::string describe(const World& world, int node, int fragment) const;

  const Resident* place(const World& world, int node, int fragment) const;
  const Coordinator& coordinator(const World& world) const;
  const Message& message(World::Id id) const { return envelope(id).message; }
  int receiver(World::Id id) const { return envelope(id).to; }
  size_t machines() const { return places_.size(); }  // distinct ones
  // Forgets all tables: no World from before may be used any more.
  void clear();

 private:
  struct Envelope {
    int to = kCoordinator;
    Message message;
    static void visit(auto& s, auto&& f) { f(s.to, s.message); }
  };
  struct Outcome {
    World::Id place = 0;
    std::vector<World::Id> sent;
    Finding wrong;
    bool lost = false;
  };
  struct Decided {  // what the coordinator did
    World::Id coordinator = 0;
    std::vector<World::Id> sent;
    bool lossy = false;
    bool changed = false;
  };
  struct Hash {
    size_t operator()(const XXH128_hash_t& h) const { return h.low64; }
  };
  struct Same {
    bool operator()(const XXH128_hash_t& a, const XXH128_hash_t& b) const {
      return a.low64 == b.low64 && a.high64 == b.high64;
    }
  };
  using Ids = std::unordered_map<XXH128_hash_t, World::Id, Hash, Same>;

  World::Id& slot(World& w, int node, int fragment) const {
    return w.places[static_cast<size_t>(node * options_.fragments + fragment)];
  }
  const Envelope& envelope(World::Id id) const { return envelopes_[id - 1]; }
  template <class T>
  World::Id intern(std::deque<T>& table, Ids& ids, T value);
  World::Id keep(int to, const Message& message);

  const Outcome& step(World::Id place, uint64_t event, const auto& act);
  Finding happen(World& world, int node, int fragment, uint64_t event, const auto& act);
  Finding check(const World& world, int node, int fragment) const;
  const Decided& decide(World::Id coordinator, uint64_t event, const auto& act);
  void happen(World& world, const Decided& decided);
  void send(World& world, const std::vector<World::Id>& messages) const;
  void take_out(World& world, World::Id message) const;

  Finding deliver(World& world, World::Id message);
  Finding contribute(World& world, int node, int fragment);
  Finding fire(World& world, const Transition& transition);
  Finding toggle_busy(World& world, int node);
  void heartbeat(World& world, int node);
  void crash(World& world, int node);
  void restart(World& world, int node);
  void remove(World& world, int node);
  void restart_coordinator(World& world);

  const Decided& ticked(const World& world);
  Message heartbeat_of(const World& world, int node) const;
  Process process(const World& world, int node) const;
  uint64_t status_digest(const World& world, int node) const;
  bool coming(const World& world, int node, Epoch epoch) const;
  bool held_up(const World& world, size_t message) const;
  bool may_heartbeat(const World& world, int node) const;
  void list_messages(const World& world, std::vector<Transition>& out) const;
  void list_node(const World& world, int node, std::vector<Transition>& out) const;
  void list_faults(const World& world, int node, std::vector<Transition>& out) const;

  const WorldOptions options_;
  std::array<Chronicle, kMostFragments> chronicles_;
  std::deque<Resident> places_;
  std::deque<Coordinator> coordinators_;
  std::deque<Envelope> envelopes_;
  Ids place_ids_, coordinator_ids_, envelope_ids_;
  std::unordered_map<uint64_t, Outcome> outcomes_;  // by place and event
  std::unordered_map<uint64_t, Decided> decisions_;
  mutable Canonical canonical_;
  mutable std::vector<World::Id> sorted_;
};

}  // namespace hybridsync
