// SIGINT, SIGTERM and SIGHUP as something to poll instead of handlers, while this object lives.
#pragma once

#include <signal.h>

#include <optional>

namespace hybridsync {

// Blocks the three signals for this thread and the threads that it starts afterwards; gives the old
// mask back at its end. At most one lives at a time.
class SignalFd {
 public:
  SignalFd();
  ~SignalFd();
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  int fd() const { return fd_; }
  // The number of the next pending signal, without waiting.
  std::optional<int> next();
  // The mask from before, for child processes.
  const sigset_t& mask_before() const { return before_; }

 private:
  int fd_ = -1;
  sigset_t before_{};
};

}  // namespace hybridsync
