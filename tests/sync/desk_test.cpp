// The desk between a training thread and its comm side: what is handed over, copied, and waited
// for.
#include "hybridsync/sync/desk.h"

#include <gtest/gtest.h>

#include <thread>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {
namespace {

// Two fragments of a lane: 0 in float, 2 in double.
FragmentTable a_table() {
  return {2, 2, {{0, Real::f32, 0, 2}, {1, Real::f32, 2, 2}, {2, Real::f64, 0, 1}}};
}

Contribution a_draft(double weight) {
  Contribution c;
  c.weight = weight;
  c.at = 7;
  return c;
}

Moved moved_to(Version version) {
  Moved moved;
  moved.result.version = version;
  return moved;
}

const auto kHealthy = [] { return Outcome{}; };

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  const auto bytes = std::as_bytes(std::span<const float>(numbers));
  return {bytes.begin(), bytes.end()};
}

TEST(Desk, AContributionIsACopyUnderATicket) {
  Desk desk(a_table(), {0, 2});
  int wakes = 0;
  desk.on_work([&] { ++wakes; });
  std::vector<float> values{1, 2};
  const SideData side{{1, 0}, {}, {}};
  const Body body = make_body(std::as_bytes(std::span(values)), &side);
  const uint64_t first = desk.contribute(0, a_draft(3), body);
  values = {8, 9};
  const uint64_t second = desk.contribute(0, a_draft(0), make_body({}, nullptr));
  EXPECT_NE(first, second);
  EXPECT_EQ(wakes, 2);
  const Desk::Work work = desk.take_work();
  ASSERT_EQ(work.drafts.size(), 2u);
  const Draft& one = work.drafts[0];
  EXPECT_EQ(one.fragment, 0);
  EXPECT_EQ(one.contribution.ticket, first);
  EXPECT_EQ(one.contribution.at, 7);
  EXPECT_EQ(one.body.bytes, body.bytes) << "the same bytes, shared";
  EXPECT_EQ(one.body.layout.values_bytes, 2 * sizeof(float));
  float seen[2];
  std::memcpy(seen, one.body.bytes->data(), sizeof seen);
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[1], 2);
  Reader reader(ByteSpan(*one.body.bytes).subspan(one.body.layout.values_bytes));
  EXPECT_EQ(read_side_data(reader), side);
  EXPECT_EQ(work.drafts[1].contribution.ticket, second);
  EXPECT_TRUE(work.drafts[1].body.bytes->empty()) << "an abstention has no numbers";
  EXPECT_TRUE(desk.take_work().drafts.empty()) << "taken once";
}

TEST(Desk, AnchorsAndBusyAreWork) {
  Desk desk(a_table(), {0, 2});
  const std::vector<double> values{5};
  desk.set_anchor(2, std::span<const double>(values), 99);
  desk.set_busy(true);
  desk.set_busy(false);
  const Desk::Work work = desk.take_work();
  EXPECT_EQ(work.anchors, (std::vector<std::pair<int, uint64_t>>{{2, 99}}));
  EXPECT_EQ(work.busy, false) << "the newest";
  EXPECT_EQ(std::get<std::span<double>>(desk.anchor(2))[0], 5);
  EXPECT_FALSE(desk.take_work().busy);
}

TEST(Desk, NewsComesInOrderWithTheAnchorAfterIt) {
  Desk desk(a_table(), {0, 2});
  for (Version v : {1, 2}) desk.tell(0, moved_to(v), bytes_of({static_cast<float>(10 * v), 0}));
  EXPECT_TRUE(desk.status(0).news);
  EXPECT_FALSE(desk.status(2).news);
  std::vector<float> anchor{0, 0};
  const auto news = desk.take(0, std::span<float>(anchor));
  ASSERT_EQ(news.size(), 2u);
  EXPECT_EQ(std::get<Moved>(news[0]).result.version, 1);
  EXPECT_EQ(std::get<Moved>(news[1]).result.version, 2);
  EXPECT_EQ(anchor[0], 20);
  EXPECT_FALSE(desk.status(0).news);
  EXPECT_TRUE(desk.take(0, std::span<float>(anchor)).empty());
}

TEST(Desk, WithoutNewsTheAnchorIsNotRead) {
  Desk desk(a_table(), {0, 2});
  std::vector<float> anchor{42, 42};
  (void)desk.take(0, std::span<float>(anchor));
  EXPECT_EQ(anchor[0], 42);
}

TEST(Desk, AStatusDoesNotHideNews) {
  Desk desk(a_table(), {0, 2});
  desk.tell(0, moved_to(1));
  Desk::Status status;
  status.called = true;
  status.version = 3;
  desk.set_status(0, status);
  EXPECT_TRUE(desk.status(0).news);
  EXPECT_TRUE(desk.status(0).called);
  EXPECT_EQ(desk.status(0).version, 3);
}

TEST(Desk, ReportsAreTakenOnceAndTheLedgerStays) {
  Desk desk(a_table(), {0, 2});
  desk.report({Report::Kind::skipped, 1, "one"});
  desk.report({Report::Kind::skipped, 2, "two"});
  ASSERT_EQ(desk.reports().size(), 2u);
  EXPECT_TRUE(desk.reports().empty());
  desk.count([](Ledger& l) { l.applied.add(5); });
  EXPECT_EQ(desk.ledger().applied.samples, 5);
  EXPECT_EQ(desk.ledger().applied.contributions, 1);
}

TEST(Desk, TheFirstFailureIsTheOneThatCounts) {
  Desk desk(a_table(), {0, 2});
  desk.fail({Outcome::Kind::peer_lost, 1, "first"});
  desk.fail({Outcome::Kind::mismatch, 2, "second"});
  EXPECT_EQ(desk.failure().why, "first");
}

// --- waiting

TEST(Desk, AWaitEndsWithWhatItIsFor) {
  Desk desk(a_table(), {0, 2});
  std::thread comm([&] {
    for (Version v = 1; v <= 50; ++v) desk.tell(0, moved_to(v));
  });
  size_t seen = 0;
  const auto enough = [&] {
    std::vector<float> anchor(2);
    seen += desk.take(0, std::span<float>(anchor)).size();
    return seen == 50;
  };
  EXPECT_TRUE(desk.wait(enough, {}, kHealthy).ok());
  comm.join();
  EXPECT_EQ(seen, 50u);
}

TEST(Desk, AFailureEndsAWait) {
  Desk desk(a_table(), {0, 2});
  std::thread comm([&] { desk.fail({Outcome::Kind::peer_lost, 1, "gone"}); });
  const Outcome outcome = desk.wait([] { return false; }, {}, kHealthy);
  comm.join();
  EXPECT_EQ(outcome.kind, Outcome::Kind::peer_lost);
  EXPECT_EQ(outcome.why, "gone");
}

TEST(Desk, AFailureIsToldAlsoWhereThereIsEnough) {
  Desk desk(a_table(), {0, 2});
  desk.fail({Outcome::Kind::mismatch, 1, "wrong"});
  EXPECT_EQ(desk.wait([] { return true; }, {}, kHealthy).why, "wrong");
}

TEST(Desk, AnUnhealthyNodeEndsAWait) {
  Desk desk(a_table(), {0, 2});
  const Outcome outcome = desk.wait([] { return false; }, {},
                                    [] {
                                      return Outcome{Outcome::Kind::peer_lost, 3, "rank 3"};
                                    });
  EXPECT_EQ(outcome.peer, 3);
}

TEST(Desk, AnInterruptedWaitSaysWhatItWaitedFor) {
  Desk desk(a_table(), {0, 2});
  Desk::Status open;
  open.open = true;
  open.version = 4;
  desk.set_status(2, open, {1});
  const std::atomic<bool> interrupt{true};
  Patience patience;
  patience.interrupt = &interrupt;
  const auto never = [] { return false; };
  const Outcome outcome = desk.wait(never, patience, kHealthy);
  EXPECT_EQ(outcome.kind, Outcome::Kind::interrupted);
  EXPECT_EQ(outcome.why, "interrupted while waiting for fragment 2, version 5");
  desk.tell(2, moved_to(5));
  EXPECT_EQ(desk.wait(never, patience, kHealthy).why,
            "interrupted while waiting for its comm thread");
}

TEST(Desk, ALongWaitShowsForWhom) {
  Desk desk(a_table(), {0, 2});
  Desk::Status open;
  open.open = true;
  desk.set_status(0, open, {1, 3});
  std::vector<int> shown;
  Patience patience;
  patience.show_after = std::chrono::milliseconds(1);
  patience.show = [&](const Waiting& waiting) { shown = waiting.peers; };
  EXPECT_TRUE(desk.wait([&] { return !shown.empty(); }, patience, kHealthy).ok());
  EXPECT_EQ(shown, (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace hybridsync
