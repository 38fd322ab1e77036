// The meeting point of a node's ranks in shared memory: pass() returns when all ranks have come to
// it.
//
// One counter of arrivals and one futex word. Everybody sleeps at most once per pass and the last
// to arrive wakes all with one call. Dead and stuck ranks are looked for every 20 ms while asleep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "hybridsync/wire/node_memory.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

class ShmGate {
 public:
  // What this rank comes for; for messages only.
  struct Errand {
    const char* operation = "";
    size_t bytes = 0;
  };

  // Collective; patience.limit is set.
  ShmGate(NodeMemory& memory, Patience patience);
  ~ShmGate();  // those who still wait for this rank learn that it has left
  ShmGate(const ShmGate&) = delete;
  ShmGate& operator=(const ShmGate&) = delete;

  // How often all ranks have passed; the same number on every rank between two passes.
  uint64_t passed() const { return passed_; }

  // What the passes that follow are for, for messages; empty: the errand itself. Unlimited ones
  // wait for the living as long as it takes. The same on every rank.
  void set_phase(std::string phase, bool limited);

  // Whatever a rank wrote before it is visible to all ranks after it. The first failure of any rank
  // ends the passes of all, with the same kind and the same rank to blame.
  Outcome pass(const Errand& errand);

 private:
  struct Door;
  struct Seat;

  Outcome open_for_all(const Errand& errand);
  bool open() const;
  Outcome wait(const Errand& errand);
  void sleep(std::chrono::milliseconds at_most);
  int gone() const;
  std::vector<int> late() const;
  Outcome look(const Errand& errand, Waiter& waiter);
  Outcome give_up(Outcome::Kind kind, int blamed, const Errand& errand);
  std::string what(const Errand& errand) const;
  Outcome failed(const Errand& errand) const;
  std::string sentence(Outcome::Kind kind, int blamed, int reporter, const Errand& errand) const;

  NodeMemory& memory_;
  Patience patience_;
  const std::optional<std::chrono::milliseconds> limit_;
  std::string phase_;
  const int spins_;
  Door* door_ = nullptr;
  std::span<Seat> seats_;
  uint64_t passed_ = 0;
};

// "all_reduce of 4096 bytes", "barrier".
std::string text_of(const ShmGate::Errand& errand);

}  // namespace hybridsync
