// Sleeping on a word of memory that processes share. std::atomic::wait can't: its futexes are
// private to one process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace hybridsync {

// Sleeps while *word == seen, until woken or the time is over; may return early.
inline void futex_wait(uint32_t* word, uint32_t seen, std::chrono::milliseconds at_most) {
  const timespec span{at_most.count() / 1000, (at_most.count() % 1000) * 1000000};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &span, nullptr, 0);
}

inline void futex_wake_all(uint32_t* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hybridsync
