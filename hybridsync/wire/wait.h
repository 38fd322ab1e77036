// How every wait in hybridsync behaves: it has a limit or is visible, and it can be interrupted.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hybridsync {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a wait that takes long has to say: "waiting 4 s for rank 1: all_reduce".
struct Waiting {
  double seconds = 0;
  std::vector<int> peers;  // those not yet there: ranks of a group, nodes of an exchange
  std::string what;
};

// Shared by Group and the rounds. `show` is called from the waiting thread, first after
// `show_after` and then about every `show_after`; it must not block. `interrupt` (may be null) is
// polled at least every 100 ms.
struct Patience {
  std::optional<std::chrono::milliseconds> limit{};  // none: for ever, visibly
  std::chrono::milliseconds show_after{2000};
  std::function<void(const Waiting&)> show{};
  const std::atomic<bool>* interrupt = nullptr;
  // Polled like `interrupt`: this end gives up, and the others learn that it has left.
  const std::atomic<bool>* leave = nullptr;
};

// The end of something that waits. A dead or silent peer is an outcome, not an exception.
struct [[nodiscard]] Outcome {
  enum class Kind { done, peer_lost, timed_out, interrupted, mismatch } kind = Kind::done;
  int peer = -1;    // the one to blame, -1 if none
  std::string why;  // a sentence that names the peer and the phase; empty when done
  bool ok() const { return kind == Kind::done; }
};

// One wait in progress under a Patience, which must outlive it:
//   Waiter waiter(patience);
//   while (!there()) {
//     if (waiter.check(describe) != Waiter::Verdict::go_on) ...   // end with an outcome that says
//     why sleep_at_most(waiter.slice());
//   }
// Used by one thread.
class Waiter {
 public:
  enum class Verdict { go_on, timed_out, interrupted, left };

  explicit Waiter(const Patience& patience, Clock::time_point start = Clock::now());

  // Shows what `describe` says when that is due (only then is it called; its seconds are filled in
  // here), and tells whether the wait may go on.
  Verdict check(const std::function<Waiting()>& describe);

  // The longest sleep before the next check: at most 100 ms, and not past the limit or the next
  // show.
  std::chrono::milliseconds slice() const;

  double seconds() const;  // since the start

 private:
  const Patience& patience_;
  Clock::time_point start_;
  Clock::time_point next_show_;
};

// "1 and 3", "2", "0, 1 and 2": for sentences that name peers.
std::string list_of(const std::vector<int>& numbers);

// "rank 2", "ranks 1 and 3".
std::string counted(const std::string& noun, const std::vector<int>& numbers);

// "0.5 s", "60 s".
std::string in_seconds(std::chrono::milliseconds duration);

}  // namespace hybridsync
