// SOCK_SEQPACKET over abstract names, SCM_RIGHTS and SO_PEERCRED.
#include "hybridsync/wire/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxDescriptors = 250;  // the kernel's limit is 253
constexpr size_t kMaxName = 100;

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;
};

Address abstract_address(const std::string& name) {
  if (name.size() > kMaxName) {
    throw ConfigError("the socket name \"" + name + "\" has " + std::to_string(name.size()) +
                      " bytes, at most " + std::to_string(kMaxName) +
                      " are possible: choose a shorter run id");
  }
  Address address;
  address.value.sun_family = AF_UNIX;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());  // path[0] = 0: abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

FileDescriptor new_socket() {
  FileDescriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  return fd;
}

ucred credentials(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    throw std::system_error(errno, std::generic_category(), "SO_PEERCRED");
  }
  return peer;
}

std::vector<FileDescriptor> descriptors_of(msghdr& header) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

LocalSocket LocalSocket::connect(const std::string& name) {
  const Address address = abstract_address(name);
  FileDescriptor fd = new_socket();
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) != 0) {
    return {};
  }
  LocalSocket socket(std::move(fd));
  return socket.same_user() ? std::move(socket) : LocalSocket();
}

bool LocalSocket::send(const std::string& text, std::span<const int> descriptors) {
  assert(!text.empty() && text.size() <= kMaxText && descriptors.size() <= kMaxDescriptors);
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  std::vector<char> control(descriptors.empty() ? 0 : CMSG_SPACE(descriptors.size_bytes()));
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

LocalSocket::State LocalSocket::receive(Message* message) {
  std::array<char, kMaxText> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  iovec part{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got;
  do {
    got = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
    // A peer that closed without reading everything: said once, before its last words can be read.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return State::nothing;
  if (got <= 0) return State::closed;
  message->descriptors = descriptors_of(header);
  message->text.assign(text.data(), static_cast<size_t>(got));
  return (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? State::closed : State::message;
}

pid_t LocalSocket::peer_pid() const { return credentials(fd_.get()).pid; }

bool LocalSocket::same_user() const { return credentials(fd_.get()).uid == ::geteuid(); }

LocalListener LocalListener::open(const std::string& name) {
  const Address address = abstract_address(name);
  LocalListener listener;
  FileDescriptor fd = new_socket();
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) != 0) {
    if (errno == EADDRINUSE) return listener;
    throw std::system_error(errno, std::generic_category(), "bind");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  listener.fd_ = std::move(fd);
  return listener;
}

LocalSocket LocalListener::accept() {
  FileDescriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return {};
  LocalSocket socket(std::move(fd));
  return socket.same_user() ? std::move(socket) : LocalSocket();
}

}  // namespace hybridsync
