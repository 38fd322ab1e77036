// Messages with their length in front over TCP.
#include "hybridsync/wire/message_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

constexpr size_t kLengthBytes = 4;

bool try_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void erase_front(Bytes& bytes, size_t count) {
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

sockaddr_in resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool bad = port.empty() || getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  if (bad) {
    throw ConfigError("the rendezvous address '" + address +
                      "' is not host:port of a known host; the launcher prints the right one");
  }
  sockaddr_in result{};
  std::memcpy(&result, found->ai_addr, sizeof result);
  if ((ntohl(result.sin_addr.s_addr) >> 24) != IN_LOOPBACKNET) {
    throw ConfigError("the rendezvous address '" + address +
                      "' is not on this machine (127.0.0.0/8); runs over several machines are not "
                      "supported yet");
  }
  return result;
}

}  // namespace

MessageStream::MessageStream(FileDescriptor socket) : socket_(std::move(socket)) {
  fcntl(descriptor(), F_SETFL, fcntl(descriptor(), F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void MessageStream::send(ByteSpan message) {
  Writer writer;
  writer.bytes(message);
  outgoing_.insert(outgoing_.end(), writer.view().begin(), writer.view().end());
}

bool MessageStream::flush() {
  size_t sent = 0;
  ssize_t got = 0;
  while (sent < outgoing_.size() && got >= 0) {
    got = ::send(descriptor(), outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL);
    if (got > 0) sent += static_cast<size_t>(got);
  }
  const bool alive = got >= 0 || try_later();
  erase_front(outgoing_, sent);
  return alive;
}

bool MessageStream::fill() {
  std::array<std::byte, 65536> block;
  while (true) {
    const ssize_t got = ::recv(descriptor(), block.data(), block.size(), 0);
    if (got == 0) return false;
    if (got < 0) return try_later();
    incoming_.insert(incoming_.end(), block.begin(), block.begin() + got);
    if (static_cast<size_t>(got) < block.size()) return true;
  }
}

std::optional<Bytes> MessageStream::next(size_t limit) {
  if (malformed_ || incoming_.size() < kLengthBytes) return std::nullopt;
  const size_t length = Reader(incoming_).u32();
  malformed_ = length > limit;
  if (malformed_ || incoming_.size() - kLengthBytes < length) return std::nullopt;
  Bytes message = copy_of(ByteSpan(incoming_).subspan(kLengthBytes, length));
  erase_front(incoming_, kLengthBytes + length);
  return message;
}

FileDescriptor listen_on_loopback() {
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in any_port = loopback(0);
  if (!listener || bind(listener.get(), generic(any_port), sizeof any_port) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    throw RunEnded(std::string("cannot listen on 127.0.0.1: ") + std::strerror(errno));
  }
  return listener;
}

int port_of(const FileDescriptor& socket) {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.sin_port);
}

std::optional<FileDescriptor> connect_to(const std::string& address) {
  const sockaddr_in target = resolve(address);
  FileDescriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.get(), generic(target), sizeof target) != 0) return std::nullopt;
  return connection;
}

}  // namespace hybridsync
