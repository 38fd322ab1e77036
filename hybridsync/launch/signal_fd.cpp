#include "hybridsync/launch/signal_fd.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace hybridsync {

SignalFd::SignalFd() {
  sigset_t caught;
  sigemptyset(&caught);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&caught, number);
  pthread_sigmask(SIG_BLOCK, &caught, &before_);
  fd_ = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

SignalFd::~SignalFd() {
  while (next()) {
  }
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalFd::next() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace hybridsync
