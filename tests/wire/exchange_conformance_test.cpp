// What every Exchange promises, whatever carries it.
#include <gmock/gmock.h>

#include <thread>

#include "exchange_ends.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Subject {
  const char* name;
  Ends (*make)(int nodes);
};

class ExchangeConformance : public testing::TestWithParam<Subject> {
 protected:
  static Ends make(int nodes) { return GetParam().make(nodes); }
};

Received expect_message(Exchange& exchange) {
  std::optional<ExchangeEvent> event = next_event(exchange);
  if (!event) {
    ADD_FAILURE() << "nothing came";
    return {};
  }
  if (const auto* lost = std::get_if<PeerLost>(&*event)) {
    ADD_FAILURE() << "node " << lost->node << " lost: " << lost->why;
    return {};
  }
  return std::get<Received>(std::move(*event));
}

// Nothing comes for a while; needed where an event would be wrong.
void expect_quiet(Exchange& exchange, milliseconds duration = milliseconds(200)) {
  const std::optional<ExchangeEvent> event = exchange.poll(Clock::now() + duration);
  if (!event) return;
  const auto* lost = std::get_if<PeerLost>(&*event);
  ADD_FAILURE() << "unexpected: " << (lost ? lost->why : "a message");
}

TEST_P(ExchangeConformance, KnowsItsPlace) {
  const Ends ends = make(3);
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(ends[static_cast<size_t>(node)]->node(), node);
    EXPECT_EQ(ends[static_cast<size_t>(node)]->nodes(), 3);
  }
}

TEST_P(ExchangeConformance, OneNodeHasNobodyToTalkTo) {
  const Ends ends = make(1);
  expect_quiet(*ends[0], milliseconds(10));
}

TEST_P(ExchangeConformance, CarriesHeaderBodyAndSender) {
  const Ends ends = make(3);
  for (int from = 0; from < 3; ++from) {
    const int to = (from + 1) % 3;
    ends[static_cast<size_t>(from)]->send(to, Channel::bulk, bytes_from("h" + std::to_string(from)),
                                          shared(pattern(1000, static_cast<uint32_t>(from))));
  }
  for (int to = 0; to < 3; ++to) {
    const int from = (to + 2) % 3;
    const Received message = expect_message(*ends[static_cast<size_t>(to)]);
    EXPECT_EQ(message.from, from);
    EXPECT_EQ(text_of(message.header), "h" + std::to_string(from));
    EXPECT_EQ(message.body, pattern(1000, static_cast<uint32_t>(from)));
  }
}

TEST_P(ExchangeConformance, EmptyHeadersAndBodies) {
  const Ends ends = make(2);
  ends[0]->send(1, Channel::control, {}, nullptr);
  ends[0]->send(1, Channel::control, bytes_from("only a header"), nullptr);
  ends[0]->send(1, Channel::control, {}, shared(bytes_from("only a body")));
  ends[0]->send(1, Channel::control, bytes_from("empty body"), shared({}));
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"", ""}, {"only a header", ""}, {"", "only a body"}, {"empty body", ""}};
  for (const auto& [header, body] : expected) {
    const Received message = expect_message(*ends[1]);
    EXPECT_EQ(text_of(message.header), header);
    EXPECT_EQ(text_of(message.body), body);
  }
}

TEST_P(ExchangeConformance, KeepsTheOrderOfEachChannel) {
  constexpr int kMessages = 300;
  const Ends ends = make(2);
  for (int i = 0; i < kMessages; ++i) {
    const Channel channel = i % 3 == 0 ? Channel::control : Channel::bulk;
    ends[0]->send(1, channel, Writer().u8(i % 3 == 0).u32(static_cast<uint32_t>(i)).take(),
                  shared(pattern(static_cast<size_t>(i) * 37, static_cast<uint32_t>(i))));
  }
  int last[2] = {-1, -1};
  std::thread sender([&] {  // takes away what the wire did not take at once
    while (ends[0]->poll(Clock::now() + seconds(30))) {
    }
  });
  for (int i = 0; i < kMessages; ++i) {
    const Received message = expect_message(*ends[1]);
    Reader reader(message.header);
    const uint8_t channel = reader.u8();
    const int number = static_cast<int>(reader.u32());
    EXPECT_TRUE(reader.done());
    EXPECT_LT(last[channel], number);
    last[channel] = number;
    EXPECT_EQ(message.body,
              pattern(static_cast<size_t>(number) * 37, static_cast<uint32_t>(number)));
  }
  ends[0]->wake();
  sender.join();
  EXPECT_EQ(last[1], kMessages - 3);
  EXPECT_EQ(last[0], kMessages - 1);
}

TEST_P(ExchangeConformance, SendNeverWaitsForAPeerThatDoesNotPoll) {
  const Ends ends = make(2);
  for (uint32_t i = 0; i < 40; ++i) {
    ends[0]->send(1, Channel::bulk, Writer().u32(i).take(), shared(pattern(1 << 20, i)));
  }
  for (uint32_t i = 0; i < 40; ++i) {
    std::optional<ExchangeEvent> event;
    while (!event) {
      EXPECT_FALSE(ends[0]->poll(Clock::now()));
      event = ends[1]->poll(Clock::now() + milliseconds(10));
    }
    const auto& message = std::get<Received>(*event);
    EXPECT_EQ(Reader(message.header).u32(), i);
    EXPECT_TRUE(message.body == pattern(1 << 20, i));
  }
}

TEST_P(ExchangeConformance, OneBodyForSeveralPeersIsReleasedAfterwards) {
  const Ends ends = make(3);
  SharedBytes body = shared(pattern(1 << 20, 7));
  const std::weak_ptr<const Bytes> watch = body;
  ends[0]->send(1, Channel::bulk, {}, body);
  ends[0]->send(2, Channel::bulk, {}, body);
  body.reset();
  for (size_t to : {1, 2}) EXPECT_TRUE(expect_message(*ends[to]).body == pattern(1 << 20, 7));
  for (int i = 0; i < 300 && !watch.expired(); ++i) {
    EXPECT_FALSE(ends[0]->poll(Clock::now() + milliseconds(100)));
  }
  EXPECT_TRUE(watch.expired());
}

TEST_P(ExchangeConformance, PollEndsAtItsTime) {
  const Ends ends = make(2);
  const auto start = Clock::now();
  EXPECT_FALSE(ends[0]->poll(start + milliseconds(50)));
  EXPECT_GE(Clock::now(), start + milliseconds(50));
  EXPECT_FALSE(ends[0]->poll(start));  // in the past: looks once
  ends[1]->send(0, Channel::control, bytes_from("x"), nullptr);
  std::optional<ExchangeEvent> event;
  while (!event) event = ends[0]->poll(Clock::time_point::min());
  EXPECT_EQ(text_of(std::get<Received>(*event).header), "x");
}

TEST_P(ExchangeConformance, WakeEndsOnePoll) {
  const Ends ends = make(2);
  ends[0]->wake();
  EXPECT_FALSE(ends[0]->poll(Clock::time_point::max()));  // the next one
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(50));
    ends[0]->wake();
  });
  EXPECT_FALSE(ends[0]->poll(Clock::time_point::max()));  // the current one
  waker.join();
  const auto start = Clock::now();
  EXPECT_FALSE(ends[0]->poll(start + milliseconds(50)));  // and no other
  EXPECT_GE(Clock::now(), start + milliseconds(50));
}

TEST_P(ExchangeConformance, CountsHeadersAndBodies) {
  const Ends ends = make(2);
  ends[0]->send(1, Channel::control, Bytes(10), nullptr);
  ends[0]->send(1, Channel::control, Bytes(20), shared(Bytes(300)));
  expect_message(*ends[1]);
  EXPECT_EQ(ends[1]->counters().bytes_received, 10);
  expect_message(*ends[1]);
  EXPECT_EQ(ends[0]->counters().bytes_sent, 330);
  EXPECT_EQ(ends[0]->counters().messages_sent, 2);
  EXPECT_EQ(ends[0]->counters().bytes_received, 0);
  EXPECT_EQ(ends[1]->counters().bytes_received, 330);
  EXPECT_EQ(ends[1]->counters().messages_received, 2);
  EXPECT_EQ(ends[1]->counters().messages_refused, 0);
}

TEST_P(ExchangeConformance, WhoLeavesInOrderIsNotLostAndHisLastWordsArrive) {
  Ends ends = make(3);
  std::thread leaver([&] {
    for (uint32_t i = 0; i < 20; ++i) {
      ends[1]->send(0, Channel::bulk, Writer().u32(i).take(), shared(pattern(1 << 20, i)));
    }
    ends[1].reset();
  });
  for (uint32_t i = 0; i < 20; ++i) {
    const Received message = expect_message(*ends[0]);
    EXPECT_EQ(message.from, 1);
    EXPECT_EQ(Reader(message.header).u32(), i);
    EXPECT_TRUE(message.body == pattern(1 << 20, i));
  }
  expect_quiet(*ends[0]);
  leaver.join();
  expect_quiet(*ends[0]);
  expect_quiet(*ends[2]);
  ends[0]->send(1, Channel::control, bytes_from("too late"), nullptr);  // harmless
  ends[0]->send(2, Channel::control, bytes_from("still here"), nullptr);
  EXPECT_EQ(text_of(expect_message(*ends[2]).header), "still here");
}

TEST_P(ExchangeConformance, AllMayLeaveAtOnce) {
  for (int i = 0; i < 5; ++i) {
    const Ends ends = make(3);
    for (const auto& end : ends) {
      end->send((end->node() + 1) % 3, Channel::bulk, {}, shared(Bytes(1 << 16)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Subjects, ExchangeConformance,
                         testing::Values(Subject{"memory", &memory_ends},
                                         Subject{"zmq", [](int nodes) { return zmq_ends(nodes); }},
                                         Subject{"zmq_emulated",
                                                 [](int nodes) {
                                                   return zmq_ends(nodes, 1, [](ZmqOptions& o) {
                                                     o.emulate = {8e9, 0.004};
                                                   });
                                                 }}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hybridsync
