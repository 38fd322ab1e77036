// Arrivals, the futex, and who is to blame when somebody does not come.
#include "hybridsync/wire/shm_gate.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>

#include "hybridsync/wire/futex.h"
#include "hybridsync/wire/node_rendezvous.h"

namespace hybridsync {

// Plain words in zeroed shared memory, reached through atomic_ref only.
struct ShmGate::Door {
  alignas(64) uint64_t arrivals;  // of all ranks, over all passes
  alignas(64) uint64_t state;  // low half: complete passes, the futex word; high half: the failure
  uint32_t sleepers;           // ranks that may be asleep on it
};

struct ShmGate::Seat {
  alignas(64) uint64_t arrived;  // the last pass that this rank came to
  uint32_t left;                 // it will not come again
};

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{20};
constexpr int kSpins = 200;  // a few microseconds: about what one wake-up costs

template <typename T>
std::atomic_ref<T> shared(T& word) {
  return std::atomic_ref<T>(word);
}

struct Failure {
  Outcome::Kind kind;
  int blamed;
  int reporter;
};

// Passes and failure share one word, so that each pass either succeeds for all ranks or for none.
uint64_t packed(uint32_t passes, const Failure& f) {
  return static_cast<uint64_t>(f.kind) << 56 | static_cast<uint64_t>(f.blamed + 1) << 44 |
         static_cast<uint64_t>(f.reporter + 1) << 32 | passes;
}

Failure failure_in(uint64_t state) {
  return {static_cast<Outcome::Kind>(state >> 56), static_cast<int>(state >> 44 & 0xfff) - 1,
          static_cast<int>(state >> 32 & 0xfff) - 1};
}

bool is_failure(uint64_t state) { return state >> 32 != 0; }

uint32_t* futex_word(uint64_t& state) {
  static_assert(std::endian::native == std::endian::little, "the low half comes first");
  return reinterpret_cast<uint32_t*>(&state);
}

// Whoever spins on a core that another rank needs makes that rank late.
int spins_for(int ranks) {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 0;
  return ranks <= CPU_COUNT(&cores) ? kSpins : 0;
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::string text_of(const ShmGate::Errand& errand) {
  const std::string operation = errand.operation;
  return operation == "barrier" ? operation
                                : operation + " of " + std::to_string(errand.bytes) + " bytes";
}

ShmGate::ShmGate(NodeMemory& memory, Patience patience)
    : memory_(memory),
      patience_(std::move(patience)),
      limit_(patience_.limit),
      spins_(spins_for(memory.size())) {
  assert(patience_.limit && "a collective without a limit could hang for ever");
  const auto room = memory.allocate_common(sizeof(Door) + memory.size() * sizeof(Seat));
  door_ = reinterpret_cast<Door*>(room.data());
  seats_ = {reinterpret_cast<Seat*>(room.data() + sizeof(Door)),
            static_cast<size_t>(memory.size())};
}

void ShmGate::set_phase(std::string phase, bool limited) {
  phase_ = std::move(phase);
  patience_.limit = limited ? limit_ : std::nullopt;
}

std::string ShmGate::what(const Errand& errand) const {
  return phase_.empty() ? text_of(errand) : phase_;
}

ShmGate::~ShmGate() {
  shared(seats_[memory_.rank()].left).store(1, std::memory_order_release);
  futex_wake_all(futex_word(door_->state));
}

Outcome ShmGate::pass(const Errand& errand) {
  ++passed_;
  if (is_failure(shared(door_->state).load(std::memory_order_relaxed))) return failed(errand);
  shared(seats_[memory_.rank()].arrived).store(passed_, std::memory_order_relaxed);
  const uint64_t arrivals = shared(door_->arrivals).fetch_add(1, std::memory_order_acq_rel) + 1;
  if (arrivals == passed_ * static_cast<uint64_t>(memory_.size())) return open_for_all(errand);
  for (int i = 0; i < spins_ && !open(); ++i) pause_core();
  return open() ? Outcome{} : wait(errand);
}

// Sequentially consistent, as sleep() is: either the sleepers are seen here or they see the new
// state.
Outcome ShmGate::open_for_all(const Errand& errand) {
  uint64_t before = static_cast<uint32_t>(passed_ - 1);
  const uint64_t after = static_cast<uint32_t>(passed_);
  if (!shared(door_->state).compare_exchange_strong(before, after)) return failed(errand);
  if (shared(door_->sleepers).load() > 0) futex_wake_all(futex_word(door_->state));
  return {};
}

bool ShmGate::open() const {
  const uint64_t state = shared(door_->state).load(std::memory_order_acquire);
  return static_cast<int32_t>(static_cast<uint32_t>(state) - static_cast<uint32_t>(passed_)) >= 0;
}

Outcome ShmGate::wait(const Errand& errand) {
  Waiter waiter(patience_);
  for (;;) {
    sleep(std::min(kLook, waiter.slice()));
    if (open()) return {};
    if (Outcome outcome = look(errand, waiter); !outcome.ok()) return outcome;
  }
}

void ShmGate::sleep(milliseconds at_most) {
  shared(door_->sleepers).fetch_add(1);
  const uint64_t seen = shared(door_->state).load();
  if (!open() && !is_failure(seen)) {
    futex_wait(futex_word(door_->state), static_cast<uint32_t>(seen), at_most);
  }
  shared(door_->sleepers).fetch_sub(1);
}

// Whether the wait must end, and with what. A rank is looked at before the door: one that passed
// and left, or ended, has done its part.
Outcome ShmGate::look(const Errand& errand, Waiter& waiter) {
  const int lost = gone();
  const auto verdict = waiter.check([&] { return Waiting{0, late(), what(errand)}; });
  if (open()) return {};
  if (is_failure(shared(door_->state).load())) return failed(errand);
  if (lost >= 0) return give_up(Outcome::Kind::peer_lost, lost, errand);
  switch (verdict) {
    case Waiter::Verdict::go_on:
      return {};
    case Waiter::Verdict::left:
      return give_up(Outcome::Kind::peer_lost, memory_.rank(), errand);
    case Waiter::Verdict::interrupted:
      return give_up(Outcome::Kind::interrupted, memory_.rank(), errand);
    case Waiter::Verdict::timed_out: {
      const auto ranks = late();
      return give_up(Outcome::Kind::timed_out, ranks.empty() ? -1 : ranks.front(), errand);
    }
  }
  return {};
}

int ShmGate::gone() const {
  for (int r = 0; r < memory_.size(); ++r) {
    if (r == memory_.rank()) continue;
    if (shared(seats_[r].left).load(std::memory_order_acquire) || !memory_.alive(r)) return r;
  }
  return -1;
}

std::vector<int> ShmGate::late() const {
  std::vector<int> ranks;
  for (int r = 0; r < memory_.size(); ++r) {
    if (shared(seats_[r].arrived).load(std::memory_order_relaxed) < passed_) ranks.push_back(r);
  }
  return ranks;
}

// Ends this pass for all, unless it has just succeeded or failed for all.
Outcome ShmGate::give_up(Outcome::Kind kind, int blamed, const Errand& errand) {
  const auto passes = static_cast<uint32_t>(passed_ - 1);
  uint64_t before = passes;
  const uint64_t after = packed(passes, {kind, blamed, memory_.rank()});
  if (shared(door_->state).compare_exchange_strong(before, after)) {
    futex_wake_all(futex_word(door_->state));
  }
  return open() ? Outcome{} : failed(errand);
}

Outcome ShmGate::failed(const Errand& errand) const {
  const auto [kind, blamed, reporter] = failure_in(shared(door_->state).load());
  return {kind, blamed, sentence(kind, blamed, reporter, errand)};
}

std::string ShmGate::sentence(Outcome::Kind kind, int blamed, int reporter,
                              const Errand& errand) const {
  const std::string who = rank_name(memory_.node(), std::max(blamed, 0));
  const std::string doing = what(errand);
  switch (kind) {
    case Outcome::Kind::peer_lost:
      return gone_sentence(memory_.node(), blamed, memory_.pid(blamed), doing);
    case Outcome::Kind::interrupted:
      return who + " was interrupted: " + doing;
    case Outcome::Kind::timed_out:
      if (blamed == memory_.rank()) {
        return who + " came too late to " + doing + ": rank " + std::to_string(reporter) +
               " waited for " + in_seconds(*limit_);
      }
      return late_sentence(memory_.node(),
                           reporter == memory_.rank() ? late() : std::vector{blamed}, doing,
                           patience_);
    default:
      return who + " disagreed with another rank: " + doing;
  }
}

}  // namespace hybridsync
