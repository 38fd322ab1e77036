// What the exchange over ZeroMQ adds: processes that die or freeze, strangers, liars, slow links.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <thread>
#include <zmq.hpp>

#include "exchange_ends.h"
#include "hybridsync/config/error.h"
#include "hybridsync/wire/frame.h"
#include "hybridsync/wire/message_stream.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

ZmqOptions options_of(int node, int nodes) {
  ZmqOptions options;
  options.run_id = "run";
  options.node = node;
  options.nodes = nodes;
  return options;
}

std::unique_ptr<Exchange> join(const std::string& address, const ZmqOptions& options,
                               milliseconds limit = seconds(60)) {
  const Patience patience = patience_of(limit);
  Rendezvous rendezvous(address, "run", options.node, options.nodes, patience);
  return make_zmq_exchange(options, rendezvous, patience);
}

// A node in a process of its own, which sends back what it gets until it is killed. Forked before
// this process has threads; learns the rendezvous' address afterwards.
class EchoProcess {
 public:
  EchoProcess(int node, int nodes) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
    FileDescriptor parent(pair[0]);
    FileDescriptor child(pair[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      parent = FileDescriptor();
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(120);
      run(child, node, nodes);
    }
    to_child_ = std::move(parent);
  }
  ~EchoProcess() { kill(SIGKILL); }

  void start(const std::string& address) {
    EXPECT_EQ(::write(to_child_.get(), address.data(), address.size()),
              static_cast<ssize_t>(address.size()));
  }
  void kill(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    if (signal != SIGKILL) return;
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  [[noreturn]] static void run(const FileDescriptor& from_parent, int node, int nodes) {
    char address[64] = {};
    if (::read(from_parent.get(), address, sizeof address - 1) <= 0) ::_exit(1);
    const auto exchange = join(address, options_of(node, nodes));
    while (true) {
      const auto event = exchange->poll(Clock::time_point::max());
      const auto* message = event ? std::get_if<Received>(&*event) : nullptr;
      if (message) {
        exchange->send(message->from, Channel::bulk, message->header, shared(message->body));
      }
    }
  }

  pid_t pid_ = 0;
  FileDescriptor to_child_;
};

void expect_echo(Exchange& exchange, int node, const std::string& text) {
  exchange.send(node, Channel::bulk, bytes_from(text), nullptr);
  const auto event = next_event(exchange);
  ASSERT_TRUE(event && std::holds_alternative<Received>(*event));
  EXPECT_EQ(std::get<Received>(*event).from, node);
  EXPECT_EQ(text_of(std::get<Received>(*event).header), text);
}

class ZmqProcesses : public testing::TestWithParam<int> {};

// As the node that others connect to, and as the one that connects.
TEST_P(ZmqProcesses, AKilledPeerIsLostOnceAndTheOthersStay) {
  const int me = GetParam();
  const int victim = me == 0 ? 1 : 0;
  EchoProcess killed(victim, 3);
  EchoProcess other(me == 2 ? 1 : 2, 3);
  const RendezvousHost host(3, "run");
  killed.start(host.address());
  other.start(host.address());
  const auto exchange = join(host.address(), options_of(me, 3));
  expect_echo(*exchange, victim, "hello");
  killed.kill(SIGKILL);
  const auto event = next_event(*exchange);
  ASSERT_TRUE(event && std::holds_alternative<PeerLost>(*event));
  EXPECT_EQ(std::get<PeerLost>(*event).node, victim);
  EXPECT_THAT(std::get<PeerLost>(*event).why, HasSubstr("node " + std::to_string(victim) + " "));
  EXPECT_FALSE(exchange->poll(Clock::now() + milliseconds(300)));
  exchange->send(victim, Channel::bulk, bytes_from("nobody"), nullptr);
  expect_echo(*exchange, me == 2 ? 1 : 2, "still there?");
}

INSTANTIATE_TEST_SUITE_P(Nodes, ZmqProcesses, testing::Values(0, 2));

TEST(ZmqExchange, AFrozenPeerIsNotLostAndMissesNothing) {
  EchoProcess frozen(1, 2);
  const RendezvousHost host(2, "run");
  frozen.start(host.address());
  const auto exchange = join(host.address(), options_of(0, 2));
  expect_echo(*exchange, 1, "hello");
  frozen.kill(SIGSTOP);
  for (uint32_t i = 0; i < 20; ++i) {
    exchange->send(1, Channel::bulk, Writer().u32(i).take(), shared(pattern(1 << 20, i)));
  }
  EXPECT_FALSE(exchange->poll(Clock::now() + seconds(2)));
  frozen.kill(SIGCONT);
  for (uint32_t i = 0; i < 20; ++i) {
    const auto event = next_event(*exchange);
    ASSERT_TRUE(event && std::holds_alternative<Received>(*event));
    EXPECT_EQ(Reader(std::get<Received>(*event).header).u32(), i);
    EXPECT_TRUE(std::get<Received>(*event).body == pattern(1 << 20, i));
  }
}

TEST(ZmqExchange, LeavingAFrozenPeerIsBounded) {
  EchoProcess frozen(1, 2);
  const RendezvousHost host(2, "run");
  frozen.start(host.address());
  auto exchange = join(host.address(), options_of(0, 2));
  frozen.kill(SIGSTOP);
  exchange->send(1, Channel::bulk, {}, shared(Bytes(32 << 20)));
  const auto start = Clock::now();
  exchange.reset();
  EXPECT_LT(Clock::now() - start, seconds(20));
}

TEST(ZmqExchange, LanesAreApart) {
  const Ends ends = zmq_ends(2, 2);  // by rank: node * 2 + lane
  ends[0]->send(1, Channel::control, bytes_from("lane 0"), nullptr);
  ends[1]->send(1, Channel::control, bytes_from("lane 1"), nullptr);
  EXPECT_EQ(text_of(std::get<Received>(*next_event(*ends[2])).header), "lane 0");
  EXPECT_EQ(text_of(std::get<Received>(*next_event(*ends[3])).header), "lane 1");
}

// Node 1 of two, as somebody who knows the address could play it against node 0.
class Impostor {
 public:
  explicit Impostor(const std::string& address)
      : rendezvous_(address, "run", 1, 2, patience_of(seconds(30))) {
    const std::vector<Bytes> ports = rendezvous_.all_gather("exchange", {});
    ports_ = Reader(ports[0]).list<int>();
  }

  int port(Channel channel) const { return ports_.at(2 + static_cast<size_t>(channel)); }

  zmq::socket_t connect(Channel channel) {
    zmq::socket_t socket(context_, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect("tcp://127.0.0.1:" + std::to_string(port(channel)));
    return socket;
  }

  static Bytes hello(Channel channel, const std::string& run, uint32_t node = 1) {
    return Writer()
        .u8(0)
        .u8(kProtocolVersion)
        .u8(static_cast<uint8_t>(channel))
        .u64(run_hash(run))
        .u32(node)
        .u32(0)
        .take();
  }

  static void say(zmq::socket_t& socket, const std::vector<Bytes>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool more = i + 1 < parts.size();
      socket.send(zmq::buffer(parts[i]), more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }

 private:
  Rendezvous rendezvous_;
  std::vector<int> ports_;
  zmq::context_t context_;
};

// Node 0 in a thread, against an impostor that does what the test says.
struct Duel {
  RendezvousHost host{2, "run"};
  std::vector<std::string> log;
  std::unique_ptr<Exchange> exchange;
  std::string failure;
  std::thread joiner;
  Impostor impostor;

  explicit Duel(milliseconds limit = seconds(30))
      : joiner([this, limit] {
          ZmqOptions options = options_of(0, 2);
          options.max_message_bytes = 1 << 20;
          options.log = [this](const std::string& line) { log.push_back(line); };
          try {
            exchange = join(host.address(), options, limit);
          } catch (const RunEnded& error) {
            failure = error.what();
          }
        }),
        impostor(host.address()) {}
  ~Duel() {
    if (joiner.joinable()) joiner.join();
  }

  // As a member would.
  std::vector<zmq::socket_t> be_let_in() {
    std::vector<zmq::socket_t> sockets;
    for (Channel channel : {Channel::control, Channel::bulk}) {
      sockets.push_back(impostor.connect(channel));
      Impostor::say(sockets.back(), {Impostor::hello(channel, "run"), {}});
    }
    joiner.join();
    return sockets;
  }
};

TEST(ZmqExchange, NamesTheNodesThatDoNotConnect) {
  Duel duel(milliseconds(800));
  duel.joiner.join();
  EXPECT_EQ(duel.failure, "node 1 did not connect within 0.8 s");
}

TEST(ZmqExchange, KeepsStrangersOutAndCountsThem) {
  Duel duel;
  auto foreign = duel.impostor.connect(Channel::control);
  Impostor::say(foreign, {Impostor::hello(Channel::control, "yesterday's"), {}});
  Impostor::say(foreign, {Impostor::hello(Channel::control, "run", 5), {}});
  Impostor::say(foreign, {Impostor::hello(Channel::bulk, "run"), {}});
  Impostor::say(foreign, {bytes_from("garbage")});
  Impostor::say(foreign, {{}, {}, {}, {}, {}});
  const auto http = connect_to("127.0.0.1:" + std::to_string(duel.impostor.port(Channel::bulk)));
  const std::string get = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(::send(http->get(), get.data(), get.size(), MSG_NOSIGNAL), 0);
  auto sockets = duel.be_let_in();
  ASSERT_TRUE(duel.exchange) << duel.failure;
  // Once it stands, a second one that claims to be node 1 is kept out as well.
  Impostor::say(foreign, {Impostor::hello(Channel::control, "run"), {}});
  for (int i = 0; i < 100 && duel.exchange->counters().messages_refused < 6; ++i) {
    EXPECT_FALSE(duel.exchange->poll(Clock::now() + milliseconds(100)));
  }
  EXPECT_EQ(duel.exchange->counters().messages_refused, 6);
  ASSERT_EQ(duel.log.size(), 1u);
  EXPECT_THAT(duel.log[0], HasSubstr("node 1 (control): a process of another run"));
  foreign.close();  // the end of a stranger is not the end of the peer
  Impostor::say(sockets[1], {Writer().u8(1).i64(0).raw(bytes_from("header")).take(), {}});
  const auto event = next_event(*duel.exchange);
  ASSERT_TRUE(event && std::holds_alternative<Received>(*event));
  EXPECT_EQ(text_of(std::get<Received>(*event).header), "header");
}

struct Lie {
  const char* name;
  std::vector<Bytes> parts;
  const char* why;
};

class ZmqLies : public testing::TestWithParam<Lie> {};

TEST_P(ZmqLies, CostTheirSenderTheConnection) {
  Duel duel;
  auto sockets = duel.be_let_in();
  ASSERT_TRUE(duel.exchange) << duel.failure;
  Impostor::say(sockets[1], GetParam().parts);
  const auto event = next_event(*duel.exchange);
  ASSERT_TRUE(event && std::holds_alternative<PeerLost>(*event));
  EXPECT_EQ(std::get<PeerLost>(*event).node, 1);
  EXPECT_THAT(std::get<PeerLost>(*event).why, HasSubstr(GetParam().why));
  EXPECT_FALSE(duel.exchange->poll(Clock::now() + milliseconds(50)));
  EXPECT_EQ(duel.exchange->counters().messages_received, 0);
}

Bytes data_at(int64_t departed_ns) { return Writer().u8(1).i64(departed_ns).take(); }

Bytes data_with(size_t header_bytes) {
  return Writer().u8(1).i64(0).raw(Bytes(header_bytes)).take();
}

INSTANTIATE_TEST_SUITE_P(
    Lies, ZmqLies,
    testing::Values(
        Lie{"nothing", {{}, {}}, "sent what no member sends"},
        Lie{"unknown_kind", {Writer().u8(99).take(), {}}, "sent what no member sends"},
        Lie{"short_prefix", {Writer().u8(1).u32(0).take(), {}}, "sent what no member sends"},
        Lie{"one_part", {data_at(0)}, "sent what no member sends"},
        Lie{"three_parts", {data_at(0), {}, {}}, "sent what no member sends"},
        Lie{"left_in_a_year", {data_at(int64_t{1} << 62), {}}, "sent what no member sends"},
        Lie{"left_before_time", {data_at(-1), {}}, "sent what no member sends"},
        Lie{"long_goodbye", {Writer().u8(2).u8(0).take(), {}}, "sent what no member sends"},
        Lie{"large_sum", {data_with(1 << 19), Bytes(1 << 20)}, "sent what no member sends"},
        Lie{"large_part", {data_at(0), Bytes((1 << 20) + 10)}, "closed without a goodbye"}),
    [](const auto& info) { return std::string(info.param.name); });

constexpr size_t kMegabyte = 1'000'000;
constexpr milliseconds kMegabyteTime{80};  // at 100 Mbit/s
constexpr milliseconds kHalfTrip{25};

TEST(ZmqExchange, TheEmulatedLinkIsAsSlowAsItSays) {
  const Ends ends = zmq_ends(2, 1, [](ZmqOptions& options) { options.emulate = {100e6, 0.050}; });
  const auto start = Clock::now();
  for (uint8_t i = 0; i < 3; ++i) {
    ends[0]->send(1, Channel::bulk, Bytes(1, std::byte{i}), shared(Bytes(kMegabyte - 1)));
  }
  ends[0]->send(1, Channel::control, Bytes(1, std::byte{9}), nullptr);
  std::vector<int> bulk;
  for (int i = 0; i < 4; ++i) {
    const auto event = next_event(*ends[1]);
    ASSERT_TRUE(event);
    const int name = static_cast<int>(std::get<Received>(*event).header[0]);
    const int megabytes = name == 9 ? 0 : name + 1;  // control does not queue behind bulk
    EXPECT_GE(Clock::now() - start, kHalfTrip + megabytes * kMegabyteTime) << name;
    if (name != 9) bulk.push_back(name);
  }
  EXPECT_THAT(bulk, testing::ElementsAre(0, 1, 2));
  EXPECT_LT(Clock::now() - start, seconds(30));
}

TEST(ZmqExchange, LanesShareTheEmulatedLink) {
  alignas(64) std::byte links[2][128] = {};
  const Ends ends = zmq_ends(2, 2, [&](ZmqOptions& options) {
    options.emulate = {100e6, 0.050};
    options.link = links[options.node];
  });
  const auto start = Clock::now();
  ends[0]->send(1, Channel::bulk, {}, shared(Bytes(kMegabyte)));
  ends[1]->send(1, Channel::bulk, {}, shared(Bytes(kMegabyte)));
  ASSERT_TRUE(next_event(*ends[2]));
  ASSERT_TRUE(next_event(*ends[3]));
  EXPECT_GE(Clock::now() - start, kHalfTrip + 2 * kMegabyteTime);
}

TEST(ZmqExchange, WhatIsInTransitArrivesAfterItsSenderLeft) {
  Ends ends = zmq_ends(2, 1, [](ZmqOptions& options) { options.emulate = {100e6, 0.500}; });
  std::thread leaver([&] {
    ends[0]->send(1, Channel::bulk, bytes_from("last words"), shared(Bytes(kMegabyte)));
    ends[0].reset();
  });
  const auto event = next_event(*ends[1]);
  ASSERT_TRUE(event && std::holds_alternative<Received>(*event));
  EXPECT_EQ(text_of(std::get<Received>(*event).header), "last words");
  leaver.join();
  EXPECT_FALSE(ends[1]->poll(Clock::now() + milliseconds(300)));
}

}  // namespace
}  // namespace hybridsync
