// Messages with their length in front over a non-blocking TCP connection to somebody who may lie.
#pragma once

#include <optional>
#include <string>

#include "hybridsync/wire/bytes.h"
#include "hybridsync/wire/file_descriptor.h"

namespace hybridsync {

class MessageStream {
 public:
  explicit MessageStream(FileDescriptor socket);

  // Queues a message; flush() sends it.
  void send(ByteSpan message);
  // Sends what the socket takes now. False when the connection is broken.
  bool flush();
  bool flushed() const { return outgoing_.empty(); }

  // Reads what has arrived. False when the connection has ended.
  bool fill();
  // The next whole message. One with more than `limit` bytes makes malformed() true for good;
  // memory grows with what has arrived, not with what was announced.
  std::optional<Bytes> next(size_t limit);
  bool malformed() const { return malformed_; }

  int descriptor() const { return socket_.get(); }

 private:
  FileDescriptor socket_;
  Bytes incoming_;
  Bytes outgoing_;
  bool malformed_ = false;
};

// Listens on a loopback port of the system's choice. Throws RunEnded.
FileDescriptor listen_on_loopback();
// The port that a socket is bound to.
int port_of(const FileDescriptor& socket);
// Connects to host:port, which must be on loopback. Nothing when nobody listens there. Throws
// ConfigError for an address that cannot be used.
std::optional<FileDescriptor> connect_to(const std::string& address);

}  // namespace hybridsync
