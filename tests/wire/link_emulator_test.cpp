// The emulated link's arithmetic, with artificial times, against a twin that counts by hand.
#include "hybridsync/wire/link_emulator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <latch>
#include <random>
#include <thread>

namespace hybridsync {
namespace {

using testing::ElementsAre;

constexpr int64_t kMs = 1'000'000;
constexpr EmulateConfig kLink = {100e6, 0.050};  // 100 Mbit/s, 50 ms: 1 MB takes 80 ms
constexpr size_t kMegabyte = 1'000'000;

struct State {
  alignas(64) std::array<std::byte, LinkClock::kStateBytes> bytes{};
};

// The time at which a message alone on its way would be there.
int64_t trip(LinkClock& from, LinkClock& to, Channel channel, size_t bytes, int64_t now) {
  return to.arrive(channel, bytes, to.reach(from.depart(channel, bytes, now)));
}

TEST(LinkClock, OneMessageTakesItsDurationAndHalfARoundTrip) {
  LinkClock from(kLink, {});
  LinkClock to(kLink, {});
  EXPECT_EQ(from.duration_ns(kMegabyte), 80 * kMs);
  EXPECT_EQ(trip(from, to, Channel::bulk, kMegabyte, 7 * kMs), (7 + 80 + 25) * kMs);
  EXPECT_EQ(trip(from, to, Channel::control, 0, 1000 * kMs), 1025 * kMs);
}

TEST(LinkClock, ThreeMessagesQueueAtTheUplink) {
  LinkClock from(kLink, {});
  LinkClock one(kLink, {});
  LinkClock other(kLink, {});
  EXPECT_EQ(trip(from, one, Channel::bulk, kMegabyte, 0), 105 * kMs);
  EXPECT_EQ(trip(from, other, Channel::bulk, kMegabyte, 0), 185 * kMs);
  EXPECT_EQ(trip(from, one, Channel::bulk, kMegabyte, 0), 265 * kMs);
  EXPECT_EQ(trip(from, one, Channel::bulk, kMegabyte, 1000 * kMs), 1105 * kMs);  // idle again
}

TEST(LinkClock, TwoSendersQueueAtTheDownlink) {
  LinkClock one(kLink, {});
  LinkClock other(kLink, {});
  LinkClock to(kLink, {});
  EXPECT_EQ(trip(one, to, Channel::bulk, kMegabyte, 0), 105 * kMs);
  EXPECT_EQ(trip(other, to, Channel::bulk, kMegabyte, 0), 185 * kMs);
}

TEST(LinkClock, LanesShareTheirNodesLink) {
  State state;
  LinkClock lane0(kLink, state.bytes);
  LinkClock lane1(kLink, state.bytes);
  EXPECT_EQ(lane0.depart(Channel::bulk, kMegabyte, 0), 0);
  EXPECT_EQ(lane1.depart(Channel::bulk, kMegabyte, 0), 80 * kMs);
  EXPECT_EQ(lane0.arrive(Channel::bulk, kMegabyte, 0), 80 * kMs);  // the other direction is free
  EXPECT_EQ(lane1.arrive(Channel::bulk, kMegabyte, 0), 160 * kMs);
}

TEST(LinkClock, ControlOvertakesBulkAndTakesItsTime) {
  LinkClock link(kLink, {});
  EXPECT_EQ(link.depart(Channel::bulk, 10 * kMegabyte, 0), 0);
  EXPECT_EQ(link.depart(Channel::control, kMegabyte, 10 * kMs), 10 * kMs);
  EXPECT_EQ(link.depart(Channel::control, kMegabyte, 10 * kMs), 90 * kMs);
  EXPECT_EQ(link.depart(Channel::bulk, 1, 20 * kMs), 960 * kMs);
}

TEST(LinkClock, WithoutARateOnlyTheDelayCounts) {
  LinkClock link({0, 0.010}, {});
  EXPECT_EQ(trip(link, link, Channel::bulk, 1000 * kMegabyte, 3), 5 * kMs + 3);
  EXPECT_EQ(trip(link, link, Channel::bulk, 1000 * kMegabyte, 4), 5 * kMs + 4);
}

// Whatever the order of the calls, no two bulk messages share the link.
TEST(LinkClock, ThreadsNeverGetTheSameTime) {
  constexpr int kEach = 100000;
  State state;
  std::latch together(3);
  std::array<std::vector<int64_t>, 3> starts;
  std::vector<std::thread> threads;
  for (std::vector<int64_t>& mine : starts) {
    threads.emplace_back([&] {
      LinkClock clock(kLink, state.bytes);
      together.arrive_and_wait();
      for (int i = 0; i < kEach; ++i) mine.push_back(clock.depart(Channel::bulk, kMegabyte, 0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const auto& mine : starts) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i) * 80 * kMs);
}

Received message(int from, size_t bytes, uint8_t name) {
  return {from, Writer().u8(name).take(), Bytes(bytes - 1)};
}

std::vector<int> taken(InTransit& transit, int64_t now) {
  std::vector<int> names;
  while (auto received = transit.take(now)) {
    names.push_back(static_cast<int>(received->header[0]));
  }
  return names;
}

TEST(InTransit, HoldsMessagesUntilTheirLastBit) {
  LinkClock clock(kLink, {});
  InTransit transit(clock);
  EXPECT_EQ(transit.next_ns(), std::nullopt);
  transit.add(message(1, kMegabyte, 1), Channel::bulk, 0);
  transit.add(message(1, kMegabyte, 2), Channel::bulk, 80 * kMs);
  EXPECT_EQ(transit.next_ns(), 25 * kMs);
  EXPECT_THAT(taken(transit, 25 * kMs), ElementsAre());
  EXPECT_EQ(transit.next_ns(), 105 * kMs);
  EXPECT_THAT(taken(transit, 105 * kMs - 1), ElementsAre());
  EXPECT_THAT(taken(transit, 105 * kMs), ElementsAre(1));
  EXPECT_THAT(taken(transit, 185 * kMs - 1), ElementsAre());
  EXPECT_THAT(taken(transit, 185 * kMs), ElementsAre(2));
  EXPECT_EQ(transit.next_ns(), std::nullopt);
}

TEST(InTransit, ALateMessageDoesNotHoldUpAnEarlierOneOfAnotherNode) {
  LinkClock clock(kLink, {});
  InTransit transit(clock);
  transit.add(message(1, kMegabyte, 1), Channel::bulk, 500 * kMs);  // handed over first
  transit.add(message(2, kMegabyte, 2), Channel::bulk, 0);
  EXPECT_THAT(taken(transit, 105 * kMs), ElementsAre(2));
  EXPECT_THAT(taken(transit, 605 * kMs), ElementsAre(1));
}

TEST(InTransit, TimesDoNotDependOnHowOftenItIsAsked) {
  LinkClock clock(kLink, {});
  InTransit transit(clock);
  transit.add(message(1, kMegabyte, 1), Channel::bulk, 0);
  transit.add(message(2, kMegabyte, 2), Channel::bulk, 0);
  EXPECT_THAT(taken(transit, 185 * kMs), ElementsAre(1, 2));  // one look, after both
}

TEST(InTransit, ForgetsALostNode) {
  LinkClock clock(kLink, {});
  InTransit transit(clock);
  for (uint8_t i = 0; i < 6; ++i) transit.add(message(i % 2, 10, i), Channel::control, i);
  transit.drop(0);
  EXPECT_THAT(taken(transit, 1000 * kMs), ElementsAre(1, 3, 5));
}

// A twin of the downlink: messages in the order in which they reach it, one after the other.
TEST(InTransit, AgreesWithATwinOnRandomTraffic) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    LinkClock clock(kLink, {});
    InTransit transit(clock);
    std::vector<std::pair<int64_t, size_t>> reached;  // when, bytes
    int64_t departed[3] = {0, 0, 0};
    for (uint8_t i = 0; i < 30; ++i) {
      const size_t node = random() % 3;
      const size_t bytes = 1 + random() % kMegabyte;
      departed[node] += static_cast<int64_t>(random() % 50) * kMs;
      transit.add(message(static_cast<int>(node), bytes, i), Channel::bulk, departed[node]);
      reached.emplace_back(departed[node] + 25 * kMs, bytes);
    }
    std::stable_sort(reached.begin(), reached.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    int64_t free = 0;
    for (const auto& [at, bytes] : reached) {
      free = std::max(free, at) + clock.duration_ns(bytes);
      while (*transit.next_ns() < free) ASSERT_FALSE(transit.take(*transit.next_ns()));
      const auto received = transit.take(free);
      ASSERT_TRUE(received) << "seed " << seed;
      ASSERT_EQ(received->header.size() + received->body.size(), bytes) << "seed " << seed;
    }
    EXPECT_EQ(transit.next_ns(), std::nullopt);
  }
}

}  // namespace
}  // namespace hybridsync
