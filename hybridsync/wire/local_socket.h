// Short messages and file descriptors between processes of one user on one machine, over abstract
// Unix sockets: nothing in the file system, gone with the process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hybridsync/wire/file_descriptor.h"

namespace hybridsync {

// One end of a connection. Messages keep their borders. Used by one thread.
class LocalSocket {
 public:
  struct Message {
    std::string text;
    std::vector<FileDescriptor> descriptors;
  };
  enum class State { message, nothing, closed };

  LocalSocket() = default;
  explicit LocalSocket(FileDescriptor fd) : fd_(std::move(fd)) {}

  // Empty when nobody listens there now, or somebody of another user does.
  static LocalSocket connect(const std::string& name);

  // At most 4096 bytes, not empty, and 250 descriptors, which stay the caller's. False: the peer is
  // gone.
  bool send(const std::string& text, std::span<const int> descriptors = {});
  // Never blocks. Anything malformed counts as closed.
  State receive(Message* message);

  // The process at the other end when the connection was made, and whether it runs as this user.
  pid_t peer_pid() const;
  bool same_user() const;

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  FileDescriptor fd_;
};

class LocalListener {
 public:
  LocalListener() = default;

  // Empty when the name is in use. Throws ConfigError when it is too long (over 100 bytes).
  static LocalListener open(const std::string& name);

  // Empty when nobody waits. Connections of other users are closed.
  LocalSocket accept();

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  FileDescriptor fd_;
};

}  // namespace hybridsync
