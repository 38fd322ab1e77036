// One connection of the ZeroMQ exchange.
#include "hybridsync/wire/zmq_connection.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace hybridsync {
namespace {

constexpr int kControlMessages = 256;  // high-water marks count messages
constexpr int kBulkMessages = 4;
constexpr int kBulkSendBufferBytes = 512 << 10;  // or control waits in the same uplink
constexpr int kHandshakeMs = 10000;              // then a silent stranger is disconnected
constexpr int kReconnectMs = 3600 * 1000;        // never, in effect
constexpr int kEventBytes = 6;                   // of a monitor's first part

ByteSpan bytes_of(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

// Keeps a body alive while ZeroMQ sends it. The flag orders our writes before the release, which
// happens in ZeroMQ's thread.
struct Hold {
  explicit Hold(SharedBytes body) : body(std::move(body)) {}
  SharedBytes body;
  std::atomic<bool> handed_over = false;
};

void release(void*, void* hint) {
  const std::unique_ptr<Hold> hold(static_cast<Hold*>(hint));
  hold->handed_over.load(std::memory_order_acquire);
}

zmq::message_t without_copy(const SharedBytes& body) {
  if (!body || body->empty()) return {};
  auto hold = std::make_unique<Hold>(body);
  // ZeroMQ only reads it.
  zmq::message_t message(const_cast<std::byte*>(body->data()), body->size(), release, hold.get());
  hold.release()->handed_over.store(true, std::memory_order_release);
  return message;
}

std::string monitor_address(const void* owner) {
  return "inproc://monitor-" + std::to_string(reinterpret_cast<uintptr_t>(owner));
}

}  // namespace

ZmqConnection::ZmqConnection(zmq::context_t& context, Role role, Channel channel,
                             size_t max_part_bytes)
    : role_(role),
      socket_(context, role == Role::binds ? zmq::socket_type::router : zmq::socket_type::dealer),
      monitor_(context, zmq::socket_type::pair) {
  const bool bulk = channel == Channel::bulk;
  socket_.set(zmq::sockopt::linger, 0);
  // A closed connection is over, but what came before its end must still be read: with IMMEDIATE,
  // or with no reconnection at all (-1), ZeroMQ drops that.
  socket_.set(zmq::sockopt::immediate, 0);
  socket_.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket_.set(zmq::sockopt::sndhwm, bulk ? kBulkMessages : kControlMessages);
  socket_.set(zmq::sockopt::rcvhwm, bulk ? kBulkMessages : kControlMessages);
  socket_.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(max_part_bytes));
  // The connecting end waits for a peer that is busy starting; its limit is the exchange's.
  socket_.set(zmq::sockopt::handshake_ivl, role == Role::binds ? kHandshakeMs : 0);
  if (bulk) socket_.set(zmq::sockopt::sndbuf, kBulkSendBufferBytes);
  const std::string address = monitor_address(this);
  zmq_socket_monitor(socket_.handle(), address.c_str(),
                     ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
  monitor_.set(zmq::sockopt::linger, 0);
  monitor_.connect(address);
  if (role == Role::binds) {
    socket_.set(zmq::sockopt::router_mandatory, true);
    socket_.bind("tcp://127.0.0.1:*");
  }
}

ZmqConnection::~ZmqConnection() { zmq_socket_monitor(socket_.handle(), nullptr, 0); }

int ZmqConnection::port() const {
  const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
  return std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
}

void ZmqConnection::connect(int port) {
  socket_.connect("tcp://127.0.0.1:" + std::to_string(port));
}

std::optional<ZmqConnection::Incoming> ZmqConnection::receive() {
  Incoming incoming;
  std::vector<zmq::message_t> parts;
  const size_t wanted = role_ == Role::binds ? 3 : 2;
  size_t count = 0;
  bool more = true;
  while (more) {
    zmq::message_t part;
    if (!socket_.recv(part, zmq::recv_flags::dontwait)) return std::nullopt;
    more = part.more();
    incoming.descriptor = zmq_msg_get(part.handle(), ZMQ_SRCFD);
    if (++count <= wanted) parts.push_back(std::move(part));
  }
  incoming.two_parts = count == wanted;
  parts.resize(wanted);
  incoming.body = std::move(parts[wanted - 1]);
  incoming.head = std::move(parts[wanted - 2]);
  if (role_ == Role::binds) incoming.sender = std::move(parts[0]);
  return incoming;
}

void ZmqConnection::adopt(const Incoming& incoming) {
  peer_id_ = copy_of(bytes_of(incoming.sender));
  peer_descriptor_ = incoming.descriptor;
}

bool ZmqConnection::is_peer(const Incoming& incoming) const {
  const ByteSpan id = bytes_of(incoming.sender);
  return role_ == Role::connects ||
         (!peer_id_.empty() && std::equal(id.begin(), id.end(), peer_id_.begin(), peer_id_.end()));
}

void ZmqConnection::send(Bytes head, SharedBytes body) {
  queue_.push_back({std::move(head), std::move(body)});
  flush();
}

void ZmqConnection::flush() {
  while (!queue_.empty() && hand_over(queue_.front())) queue_.pop_front();
}

// False when ZeroMQ takes nothing now. A ROUTER says so by EAGAIN, or by EHOSTUNREACH when the
// connection has just ended, which the monitor will tell.
bool ZmqConnection::hand_over(const Outgoing& message) {
  constexpr auto kMore = zmq::send_flags::dontwait | zmq::send_flags::sndmore;
  try {
    if (role_ == Role::binds) {
      if (!socket_.send(zmq::buffer(peer_id_), kMore)) return false;
    }
    if (!socket_.send(zmq::buffer(message.head), kMore)) return false;
    return socket_.send(without_copy(message.body), zmq::send_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    if (error.num() != EHOSTUNREACH) throw;
    return false;
  }
}

void ZmqConnection::read_monitor() {
  zmq::message_t event;
  while (monitor_.recv(event, zmq::recv_flags::dontwait)) {
    zmq::message_t endpoint;
    if (event.more()) (void)monitor_.recv(endpoint, zmq::recv_flags::dontwait);
    if (event.size() != kEventBytes) continue;
    uint16_t kind;
    int32_t descriptor;
    std::memcpy(&kind, event.data(), sizeof kind);
    std::memcpy(&descriptor, event.data<std::byte>() + sizeof kind, sizeof descriptor);
    if (kind == ZMQ_EVENT_ACCEPTED) {
      open_.insert(descriptor);
    } else if (kind == ZMQ_EVENT_DISCONNECTED) {
      open_.erase(descriptor);
      ended_ |= role_ == Role::connects;
    }
  }
}

bool ZmqConnection::ended() {
  read_monitor();
  return ended_ || (peer_descriptor_ >= 0 && !open_.contains(peer_descriptor_));
}

void ZmqConnection::watch(std::vector<zmq::pollitem_t>& items) {
  const short events = backlog() ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN;
  items.push_back({socket_.handle(), 0, events, 0});
  items.push_back({monitor_.handle(), 0, ZMQ_POLLIN, 0});
}

void ZmqConnection::abandon(std::chrono::milliseconds linger) {
  queue_.clear();
  socket_.set(zmq::sockopt::linger, static_cast<int>(linger.count()));
}

}  // namespace hybridsync
