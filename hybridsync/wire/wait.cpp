// The bookkeeping of one wait: when to show it, when it has lasted too long.
#include "hybridsync/wire/wait.h"

#include <algorithm>
#include <cstdio>

namespace hybridsync {

using std::chrono::milliseconds;

Waiter::Waiter(const Patience& patience, Clock::time_point start)
    : patience_(patience), start_(start), next_show_(start + patience.show_after) {}

Waiter::Verdict Waiter::check(const std::function<Waiting()>& describe) {
  if (patience_.interrupt && patience_.interrupt->load(std::memory_order_relaxed)) {
    return Verdict::interrupted;
  }
  if (patience_.leave && patience_.leave->load(std::memory_order_relaxed)) return Verdict::left;
  const auto now = Clock::now();
  if (patience_.limit && now - start_ >= *patience_.limit) return Verdict::timed_out;
  if (patience_.show && now >= next_show_) {
    next_show_ = now + patience_.show_after;
    Waiting waiting = describe();
    waiting.seconds = seconds();
    patience_.show(waiting);
  }
  return Verdict::go_on;
}

milliseconds Waiter::slice() const {
  const auto now = Clock::now();
  auto until = now + milliseconds(100);
  if (patience_.limit) until = std::min(until, start_ + *patience_.limit);
  if (patience_.show) until = std::min(until, next_show_);
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(until - now));
}

double Waiter::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

std::string counted(const std::string& noun, const std::vector<int>& numbers) {
  return noun + (numbers.size() == 1 ? " " : "s ") + list_of(numbers);
}

std::string in_seconds(milliseconds duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", static_cast<double>(duration.count()) / 1000);
  return text;
}

}  // namespace hybridsync
