// The Exchange over ZeroMQ.
#include "hybridsync/wire/zmq_exchange.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <deque>
#include <utility>

#include "hybridsync/config/error.h"
#include "hybridsync/wire/file_descriptor.h"
#include "hybridsync/wire/frame.h"
#include "hybridsync/wire/link_emulator.h"
#include "hybridsync/wire/traffic.h"
#include "hybridsync/wire/zmq_connection.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeave{2000};  // that a goodbye may take
constexpr milliseconds kLongestSleep{60000};
constexpr int kBatch = 16;  // messages taken from a connection at a time
constexpr int64_t kLongestTransitNs = int64_t{24} * 3600 * 1'000'000'000;
constexpr std::array kChannels = {Channel::control, Channel::bulk};

// What the exchange says in front of a header. The rest of the head is:
enum class Kind : uint8_t {
  hello,     // who is there
  data,      // i64: when it left the emulated uplink; then the caller's header
  goodbye,   // nothing comes after this
  farewell,  // everything before your goodbye has arrived
};
constexpr size_t kPrefixBytes = 9;  // of data

const char* name_of(Channel channel) { return channel == Channel::control ? "control" : "bulk"; }

Bytes only(Kind kind) { return Writer().u8(static_cast<uint8_t>(kind)).take(); }

ByteSpan bytes_of(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

int64_t ns_of(Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

Clock::time_point time_of(int64_t ns) { return Clock::time_point(std::chrono::nanoseconds(ns)); }

class ZmqExchange final : public Exchange {
 public:
  explicit ZmqExchange(const ZmqOptions& options);
  ~ZmqExchange() override;

  void join(Rendezvous& rendezvous, const Patience& patience);

  int node() const override { return options_.node; }
  int nodes() const override { return options_.nodes; }
  void send(int to, Channel channel, Bytes header, SharedBytes body) override;
  std::optional<ExchangeEvent> poll(Clock::time_point until) override;
  void wake() override { eventfd_write(wake_.get(), 1); }
  Counters counters() const override { return traffic_.counters(); }

 private:
  // One end of one connection, and how far it is.
  struct End {
    int node;
    Channel channel;
    std::unique_ptr<ZmqConnection> connection;  // null: over
    bool binds = false;
    bool stands = false;
    bool said_goodbye = false;  // the peer
    bool got_farewell = false;  // the peer has everything
    bool logged = false;
  };
  using Incoming = ZmqConnection::Incoming;

  Bytes hello(Channel channel) const;
  Bytes ports() const;
  void connect_to(const std::vector<Bytes>& ports_by_rank);
  std::vector<int> missing() const;
  void check_lost() const;

  void pump(Clock::time_point until);
  void serve(End& end);
  void take(End& end, Incoming& incoming);
  void meet(End& end, const Incoming& incoming);
  std::string objection(const End& end, const Incoming& incoming) const;
  bool take_data(End& end, Reader& head, const Incoming& incoming);
  void refuse(End& end, const std::string& why);
  void lose(int node, const std::string& why);
  void flush();
  End& end_of(int node, Channel channel);

  const ZmqOptions options_;
  const uint64_t run_;
  const FileDescriptor wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  zmq::context_t context_;
  std::vector<End> ends_;
  LinkClock clock_;
  InTransit transit_{clock_};
  std::deque<ExchangeEvent> ready_;
  bool woken_ = false;
  Traffic traffic_;
};

ZmqExchange::ZmqExchange(const ZmqOptions& options)
    : options_(options), run_(run_hash(options.run_id)), clock_(options.emulate, options.link) {
  for (int peer = 0; peer < nodes(); ++peer) {
    if (peer == node()) continue;
    const bool binds = node() < peer;
    const auto role = binds ? ZmqConnection::Role::binds : ZmqConnection::Role::connects;
    for (Channel channel : kChannels) {
      ends_.push_back({peer, channel,
                       std::make_unique<ZmqConnection>(context_, role, channel,
                                                       options.max_message_bytes + kPrefixBytes),
                       binds});
    }
  }
}

ZmqExchange::~ZmqExchange() {
  const Clock::time_point deadline = Clock::now() + kLeave;
  for (End& end : ends_) {
    if (!end.stands) end.connection.reset();
    if (end.connection) end.connection->send(only(Kind::goodbye), nullptr);
  }
  const auto waits = [](const End& end) { return end.connection && !end.got_farewell; };
  while (std::any_of(ends_.begin(), ends_.end(), waits) && Clock::now() < deadline) {
    pump(deadline);
    ready_.clear();
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  for (End& end : ends_) {
    if (end.connection) end.connection->abandon(std::max(left, milliseconds(0)));
  }
}

Bytes ZmqExchange::hello(Channel channel) const {
  return Writer()
      .u8(static_cast<uint8_t>(Kind::hello))
      .u8(kProtocolVersion)
      .u8(static_cast<uint8_t>(channel))
      .u64(run_)
      .u32(static_cast<uint32_t>(node()))
      .u32(static_cast<uint32_t>(options_.lane))
      .take();
}

// Per node and channel the port where this node waits for it; 0 where it connects itself.
Bytes ZmqExchange::ports() const {
  std::vector<int> ports(2 * static_cast<size_t>(nodes()), 0);
  for (const End& end : ends_) {
    const size_t slot = 2 * static_cast<size_t>(end.node) + static_cast<size_t>(end.channel);
    if (end.binds) ports[slot] = end.connection->port();
  }
  return Writer().list(ports).take();
}

void ZmqExchange::connect_to(const std::vector<Bytes>& ports_by_rank) {
  for (End& end : ends_) {
    if (end.binds) continue;
    const int rank = end.node * options_.ranks_per_node + options_.lane;
    Reader reader(ports_by_rank.at(static_cast<size_t>(rank)));
    const std::vector<int> ports = reader.list<int>();
    const size_t slot = 2 * static_cast<size_t>(node()) + static_cast<size_t>(end.channel);
    if (slot >= ports.size()) {
      throw RunEnded("rank " + std::to_string(rank) + " published no port for node " +
                     std::to_string(node()) + ": it was started with another number of nodes");
    }
    end.connection->connect(ports[slot]);
    end.connection->send(hello(end.channel), nullptr);
  }
}

std::vector<int> ZmqExchange::missing() const {
  std::vector<int> nodes;
  for (const End& end : ends_) {
    if (!end.stands && (nodes.empty() || nodes.back() != end.node)) nodes.push_back(end.node);
  }
  return nodes;
}

void ZmqExchange::check_lost() const {
  for (const ExchangeEvent& event : ready_) {
    if (const auto* lost = std::get_if<PeerLost>(&event)) {
      throw RunEnded("while the nodes connected: " + lost->why);
    }
  }
}

void ZmqExchange::join(Rendezvous& rendezvous, const Patience& patience) {
  Waiter waiter(patience);
  connect_to(rendezvous.all_gather("exchange", ports()));
  while (!missing().empty()) {
    const auto verdict = waiter.check([&] { return Waiting{0, missing(), "connections"}; });
    if (verdict == Waiter::Verdict::interrupted) {
      throw Interrupted("interrupted while waiting for " + counted("node", missing()) +
                        " to connect");
    }
    if (verdict == Waiter::Verdict::timed_out) {
      throw RunEnded(counted("node", missing()) + " did not connect within " +
                     in_seconds(*patience.limit));
    }
    pump(Clock::now() + waiter.slice());
    check_lost();
  }
}

ZmqExchange::End& ZmqExchange::end_of(int node, Channel channel) {
  const int peer = node < options_.node ? node : node - 1;
  return ends_.at(2 * static_cast<size_t>(peer) + static_cast<size_t>(channel));
}

void ZmqExchange::send(int to, Channel channel, Bytes header, SharedBytes body) {
  assert(to != node() && to >= 0 && to < nodes());
  const size_t bytes = header.size() + (body ? body->size() : 0);
  assert(bytes <= options_.max_message_bytes);
  traffic_.sent(header.size(), body);
  End& end = end_of(to, channel);
  if (!end.connection || end.said_goodbye) return;
  const int64_t departed =
      options_.emulate.on() ? clock_.depart(channel, bytes, ns_of(Clock::now())) : 0;
  Writer head;
  head.u8(static_cast<uint8_t>(Kind::data)).i64(departed).raw(header);
  end.connection->send(head.take(), std::move(body));
}

std::optional<ExchangeEvent> ZmqExchange::poll(Clock::time_point until) {
  for (bool pumped = false;; pumped = true) {
    flush();
    const Clock::time_point now = Clock::now();
    while (auto message = transit_.take(ns_of(now))) ready_.emplace_back(std::move(*message));
    if (!ready_.empty()) break;
    if (std::exchange(woken_, false) || (pumped && now >= until)) return std::nullopt;
    const std::optional<int64_t> next = transit_.next_ns();
    pump(next ? std::min(until, time_of(*next)) : until);
  }
  ExchangeEvent event = std::move(ready_.front());
  ready_.pop_front();
  if (const auto* message = std::get_if<Received>(&event)) traffic_.received(*message);
  return event;
}

void ZmqExchange::flush() {
  for (End& end : ends_) {
    if (end.connection) end.connection->flush();
  }
}

// Sleeps until something happens, then takes what has arrived.
void ZmqExchange::pump(Clock::time_point until) {
  std::vector<zmq::pollitem_t> items = {{nullptr, wake_.get(), ZMQ_POLLIN, 0}};
  for (End& end : ends_) {
    if (end.connection) end.connection->watch(items);
  }
  const Clock::time_point now = Clock::now();
  const auto sleep = until <= now                  ? milliseconds(0)
                     : until - now > kLongestSleep ? kLongestSleep
                                                   : std::chrono::ceil<milliseconds>(until - now);
  if (zmq_poll(items.data(), static_cast<int>(items.size()), sleep.count()) < 0) return;  // EINTR
  eventfd_t ignored;
  if (items[0].revents != 0 && eventfd_read(wake_.get(), &ignored) == 0) woken_ = true;
  for (End& end : ends_) serve(end);
  flush();
}

void ZmqExchange::serve(End& end) {
  if (!end.connection) return;
  const bool over = end.connection->ended();  // asked first: what came before the end comes first
  for (int i = 0; end.connection && (over || i < kBatch); ++i) {
    std::optional<Incoming> incoming = end.connection->receive();
    if (!incoming) break;
    take(end, *incoming);
  }
  if (!end.connection || !over) return;
  if (end.said_goodbye) {
    end.connection.reset();
  } else {
    lose(end.node, "the connection to node " + std::to_string(end.node) + " (" +
                       name_of(end.channel) + ") closed without a goodbye: its process died");
  }
}

void ZmqExchange::take(End& end, Incoming& incoming) {
  Reader head(bytes_of(incoming.head));
  const Kind kind{head.u8()};
  const bool known = end.stands && end.connection->is_peer(incoming);
  if (!known) return meet(end, incoming);
  if (incoming.two_parts && kind == Kind::data && take_data(end, head, incoming)) return;
  if (kind == Kind::goodbye && head.done()) {
    end.said_goodbye = true;
    end.connection->send(only(Kind::farewell), nullptr);
  } else if (kind == Kind::farewell && head.done()) {
    end.got_farewell = true;
  } else {
    const std::string why = "node " + std::to_string(end.node) + " sent what no member sends (" +
                            std::to_string(incoming.head.size()) + " + " +
                            std::to_string(incoming.body.size()) + " bytes)";
    refuse(end, why);
    lose(end.node, why);
  }
}

// The first message of a connection, or one of a stranger, who is only kept out.
void ZmqExchange::meet(End& end, const Incoming& incoming) {
  const std::string why = objection(end, incoming);
  if (!why.empty()) {
    const std::string sentence = "refused on the connection for node " + std::to_string(end.node) +
                                 " (" + name_of(end.channel) + "): " + why;
    refuse(end, sentence);
    if (!end.binds) lose(end.node, sentence);
    return;
  }
  end.stands = true;
  if (!end.binds) return;
  end.connection->adopt(incoming);
  end.connection->send(hello(end.channel), nullptr);
}

// Why this is not the hello of the peer that belongs here; empty when it is.
std::string ZmqExchange::objection(const End& end, const Incoming& incoming) const {
  Reader head(bytes_of(incoming.head));
  const Kind kind{head.u8()};
  const uint8_t protocol = head.u8();
  const uint8_t channel = head.u8();
  const uint64_t run = head.u64();
  const uint32_t node = head.u32();
  const uint32_t lane = head.u32();
  if (!incoming.two_parts || kind != Kind::hello || !head.done()) return "not a hello";
  if (protocol != kProtocolVersion) return "protocol version " + std::to_string(protocol);
  if (run != run_) return "a process of another run";
  if (node != static_cast<uint32_t>(end.node) || lane != static_cast<uint32_t>(options_.lane) ||
      channel != static_cast<uint8_t>(end.channel)) {
    return "node " + std::to_string(node) + ", lane " + std::to_string(lane) + ", channel " +
           std::to_string(channel);
  }
  return end.stands ? "a second connection" : "";
}

bool ZmqExchange::take_data(End& end, Reader& head, const Incoming& incoming) {
  const int64_t departed = head.i64();
  const ByteSpan header = head.raw();
  const ByteSpan body = bytes_of(incoming.body);
  const bool plausible = departed >= 0 && departed < ns_of(Clock::now()) + kLongestTransitNs;
  if (!head.ok() || !plausible || end.said_goodbye ||
      header.size() + body.size() > options_.max_message_bytes) {
    return false;
  }
  Received message{end.node, copy_of(header), copy_of(body)};
  if (options_.emulate.on()) {
    transit_.add(std::move(message), end.channel, departed);
  } else {
    ready_.emplace_back(std::move(message));
  }
  return true;
}

void ZmqExchange::refuse(End& end, const std::string& why) {
  traffic_.refused();
  if (std::exchange(end.logged, true)) return;
  if (options_.log) {
    options_.log(why);
  } else {
    std::fprintf(stderr, "hybridsync: %s\n", why.c_str());
  }
}

void ZmqExchange::lose(int node, const std::string& why) {
  for (Channel channel : kChannels) end_of(node, channel).connection.reset();
  transit_.drop(node);
  ready_.emplace_back(PeerLost{node, why});
}

}  // namespace

std::unique_ptr<Exchange> make_zmq_exchange(const ZmqOptions& options, Rendezvous& rendezvous,
                                            const Patience& patience) {
  auto exchange = std::make_unique<ZmqExchange>(options);
  if (options.nodes > 1) exchange->join(rendezvous, patience);
  return exchange;
}

}  // namespace hybridsync
