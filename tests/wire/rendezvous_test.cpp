// The rendezvous: who comes, who is refused, who is missing, and what strangers may send.
#include "hybridsync/wire/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "exchange_ends.h"
#include "hybridsync/config/error.h"
#include "hybridsync/wire/message_stream.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Rendezvous> come(const RendezvousHost& host, int rank, int world_size,
                                 Patience patience = patience_of(seconds(30)),
                                 const std::string& run_id = "run") {
  return std::make_unique<Rendezvous>(host.address(), run_id, rank, world_size, patience);
}

// What the exception of this kind says; empty when there is none.
template <typename Error, typename F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Every rank in a thread of its own.
void on_ranks(int world_size, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(f, rank);
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::string> texts(const std::vector<Bytes>& all) {
  std::vector<std::string> texts;
  for (const Bytes& bytes : all) texts.push_back(text_of(bytes));
  return texts;
}

TEST(Rendezvous, EveryRankGetsEveryRanksBytesInRankOrder) {
  const RendezvousHost host(3, "run");
  on_ranks(3, [&](int rank) {
    const auto rendezvous = come(host, rank, 3);
    for (int i = 0; i < 20; ++i) {
      const std::string suffix = "/" + std::to_string(i);
      EXPECT_THAT(
          texts(rendezvous->all_gather("same name", bytes_from(std::to_string(rank) + suffix))),
          ElementsAre("0" + suffix, "1" + suffix, "2" + suffix));
    }
    EXPECT_THAT(texts(rendezvous->all_gather("empty", {})), ElementsAre("", "", ""));
  });
}

TEST(Rendezvous, CarriesLargeValues) {
  const RendezvousHost host(2, "run");
  on_ranks(2, [&](int rank) {
    const auto all = come(host, rank, 2)->all_gather("model", Bytes(10 << 20, std::byte{9}));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_TRUE(all[0] == all[1] && all[0] == Bytes(10 << 20, std::byte{9}));
  });
}

TEST(Rendezvous, OneRankNeedsNoHost) {
  Rendezvous rendezvous("", "", 0, 1, {});
  EXPECT_THAT(texts(rendezvous.all_gather("x", bytes_from("mine"))), ElementsAre("mine"));
}

TEST(Rendezvous, NamesTheMissingRanksAtItsLimitAndShowsThemBefore) {
  const RendezvousHost host(4, "run");
  const auto here_but_busy = come(host, 1, 4);
  std::vector<int> shown;
  on_ranks(2, [&](int index) {
    const int rank = 2 * index;
    Patience patience = patience_of(seconds(2));
    patience.show_after = milliseconds(300);
    if (rank == 0) {
      patience.show = [&](const Waiting& waiting) {
        shown = waiting.peers;
        EXPECT_EQ(waiting.what, "'model'");
        EXPECT_GE(waiting.seconds, 0.3);
      };
    }
    const auto rendezvous = come(host, rank, 4, patience);
    EXPECT_EQ(message_of<RunEnded>([&] { rendezvous->all_gather("model", {}); }),
              "ranks 1 and 3 did not come to 'model' within 2 s");
  });
  EXPECT_THAT(shown, ElementsAre(1, 3));
}

TEST(Rendezvous, RanksThatStartApartAreOneRun) {
  const RendezvousHost host(4, "run");
  on_ranks(4, [&](int rank) {
    if (rank >= 2) std::this_thread::sleep_for(milliseconds(1500));
    const auto all = come(host, rank, 4)->all_gather("who", bytes_from(std::to_string(rank)));
    EXPECT_THAT(texts(all), ElementsAre("0", "1", "2", "3"));
  });
}

TEST(Rendezvous, ADeadRankEndsTheWaitAtOnceAndIsNamed) {
  const RendezvousHost host(3, "run");
  auto dying = come(host, 2, 3);
  std::atomic<int> ended = 0;
  on_ranks(3, [&](int rank) {
    if (rank == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      dying.reset();
      return;
    }
    const auto rendezvous = come(host, rank, 3);  // without a death it would wait 30 s
    EXPECT_THAT(message_of<RunEnded>([&] { rendezvous->all_gather("model", {}); }),
                "rank 2 ended before coming to 'model'");
    ++ended;
  });
  EXPECT_EQ(ended, 2);
}

TEST(Rendezvous, ARankThatLeftAfterItsLastGatherDisturbsNobody) {
  const RendezvousHost host(2, "run");
  on_ranks(2, [&](int rank) {
    const auto rendezvous = come(host, rank, 2);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(rendezvous->all_gather("last", {}).size(), 2u);
  });
}

TEST(Rendezvous, RefusesWithASentence) {
  const RendezvousHost host(2, "run");
  const auto first = come(host, 0, 2);
  const auto refusal = [&](int rank, int world_size, const std::string& run_id) {
    return message_of<ConfigError>(
        [&] { come(host, rank, world_size, patience_of(seconds(30)), run_id); });
  };
  EXPECT_THAT(refusal(1, 2, "yesterday's"), HasSubstr("serves run 'run', not run 'yesterday's'"));
  EXPECT_THAT(refusal(0, 2, "run"), HasSubstr("rank 0 is taken"));
  EXPECT_THAT(refusal(2, 2, "run"), HasSubstr("rank 2 is out of range: the run has ranks 0 to 1"));
  EXPECT_THAT(refusal(-1, 2, "run"), HasSubstr("rank -1 is out of range"));
  EXPECT_THAT(refusal(1, 3, "run"), HasSubstr("started for 3 ranks, but the run has 2"));
  EXPECT_EQ(refusal(1, 2, "run"), "");
}

TEST(Rendezvous, AddressesThatCannotBeUsedAreTheUsersMistake) {
  const auto refusal = [&](const std::string& address) {
    return message_of<ConfigError>(
        [&] { Rendezvous(address, "run", 0, 2, patience_of(seconds(5))); });
  };
  EXPECT_THAT(refusal("nonsense"), HasSubstr("'nonsense' is not host:port"));
  EXPECT_THAT(refusal("192.0.2.1:80"), HasSubstr("not on this machine"));
}

TEST(Rendezvous, WaitsForAHostUntilItsLimit) {
  std::string address;
  { address = RendezvousHost(2, "run").address(); }
  EXPECT_EQ(message_of<RunEnded>(
                [&] { Rendezvous(address, "run", 0, 2, patience_of(milliseconds(200))); }),
            "an answer of the rendezvous at " + address + " did not come within 0.2 s");
}

TEST(Rendezvous, SaysThatItsHostEnded) {
  auto host = std::make_unique<RendezvousHost>(2, "run");
  const auto rendezvous = come(*host, 0, 2);
  std::thread ender([&] {
    std::this_thread::sleep_for(milliseconds(100));
    host.reset();
  });
  EXPECT_THAT(message_of<RunEnded>([&] { rendezvous->all_gather("model", {}); }),
              HasSubstr("ended while this rank waited for 'model'"));
  ender.join();
}

TEST(Rendezvous, CanBeInterrupted) {
  const RendezvousHost host(2, "run");
  std::atomic<bool> interrupt = false;
  Patience patience;
  patience.interrupt = &interrupt;
  const auto rendezvous = come(host, 0, 2, patience);
  std::thread user([&] {
    std::this_thread::sleep_for(milliseconds(100));
    interrupt = true;
  });
  EXPECT_THAT(message_of<Interrupted>([&] { rendezvous->all_gather("model", {}); }),
              HasSubstr("'model'"));
  user.join();
}

// A connection that speaks no protocol.
class Stranger {
 public:
  explicit Stranger(const RendezvousHost& host) : socket_(std::move(*connect_to(host.address()))) {}

  void say(const std::string& text) {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // The other side closes within a limit that only guards against hanging.
  bool is_put_out() {
    pollfd wait{socket_.get(), POLLIN, 0};
    char byte;
    return ::poll(&wait, 1, 20000) == 1 && ::recv(socket_.get(), &byte, 1, 0) <= 0;
  }

 private:
  FileDescriptor socket_;
};

std::string framed(const Bytes& message) {
  Writer writer;
  writer.bytes(message);
  return text_of(writer.take());
}

TEST(Rendezvous, StrangersArePutOutAndDisturbNobody) {
  const RendezvousHost host(2, "run");
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Stranger>(host));
  const std::string garbage[] = {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      std::string(10000, '\xff'),
      framed({}),
      framed(Writer().u8(0).take()),
      framed(Writer().u8(1).text("gather before hello").bytes({}).take()),
      framed(Writer().u8(0).u32(0x76736268).u8(1).u32(0xffffffff).take()),
      framed(Bytes(4097)),
  };
  for (const std::string& text : garbage) {
    Stranger stranger(host);
    stranger.say(text);
    EXPECT_TRUE(stranger.is_put_out()) << text.substr(0, 20);
  }
  on_ranks(2, [&](int rank) {
    const auto rendezvous = come(host, rank, 2);
    EXPECT_EQ(rendezvous->all_gather("through all this", {}).size(), 2u);
  });
}

TEST(Rendezvous, ASilentStrangerIsPutOutInTheEnd) {
  const RendezvousHost host(2, "run");
  EXPECT_TRUE(Stranger(host).is_put_out());
}

TEST(Rendezvous, AMemberThatSendsNonsenseIsPutOut) {
  const RendezvousHost host(2, "run");
  Stranger member(host);
  member.say(framed(Writer().u8(0).u32(0x76736268).u8(1).text("run").u32(1).u32(2).take()));
  member.say(framed(Writer().u8(1).u32(77).take()));
  const auto other = come(host, 0, 2);
  EXPECT_EQ(message_of<RunEnded>([&] { other->all_gather("model", {}); }),
            "rank 1 ended before coming to 'model'");
}

TEST(MessageStream, GrowsWithWhatArrivedNotWithWhatWasAnnounced) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const FileDescriptor far(pair[0]);
  MessageStream stream{FileDescriptor(pair[1])};
  const Bytes length = Writer().u32(1000).take();
  ASSERT_EQ(::send(far.get(), length.data(), 4, 0), 4);
  EXPECT_TRUE(stream.fill());
  EXPECT_EQ(stream.next(1000), std::nullopt);
  EXPECT_FALSE(stream.malformed());
  EXPECT_EQ(stream.next(999), std::nullopt);
  EXPECT_TRUE(stream.malformed());
}

}  // namespace
}  // namespace hybridsync
