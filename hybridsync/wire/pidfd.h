// Whether a process still lives, without the race of reused process numbers.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "hybridsync/wire/file_descriptor.h"

namespace hybridsync {

// Empty, with errno set, when there is no such process or the kernel has no pidfds (before
// Linux 5.3).
inline FileDescriptor open_pidfd(pid_t pid) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// A zombie counts as ended.
inline bool process_lives(const FileDescriptor& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) <= 0;
}

}  // namespace hybridsync
