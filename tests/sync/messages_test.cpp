// Messages survive the wire, and hostile ones are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hybridsync/sync/reports.h"
#include "hybridsync/sync/round_messages.h"
#include "hybridsync/sync/side_data.h"

namespace hybridsync {
namespace {

Contribution a_contribution() {
  Contribution c;
  c.node = 3;
  c.incarnation = 2;
  c.sequence = 1ull << 40;
  c.base = 17;
  c.at = 18;
  c.mode = Mode::delta;
  c.finished = true;
  c.weight = 12.5;
  c.samples = 100;
  c.steps = 4;
  c.loss_sum = -1;
  c.loss_weight = 2;
  c.lr = 0.5;
  c.squared_norm = 3;
  c.anchor_hash = ~0ull;
  c.settled = 7;
  c.has = 19;
  return c;
}

Result a_result() {
  Result r;
  r.version = 18;
  r.epoch = 2;
  r.mode = Mode::delta;
  r.roster = {{0, 0, 1, 1, 0, 2.0, 3}, {3, 1, 9, 8, 1, 0.0, 4}};
  r.weight = 2;
  r.samples = 7;
  r.total_samples = 70;
  r.chain = 5;
  r.before = 1;
  r.after = 2;
  r.stable = 16;
  r.next_mode = Mode::delta;
  r.next_interval = 8;
  r.drift = 0.25;
  r.finished = true;
  return r;
}

Lineage a_lineage() {
  Lineage l;
  l.version = 4;
  l.chain = 9;
  l.anchor = 10;
  l.mode = Mode::delta;
  l.interval = 3;
  l.total_samples = 11;
  l.applied = {{{0, 1}, 5, {6, 8}}, {{2, 0}, 1, {}}};
  return l;
}

// One of every kind.
std::vector<MessageBody> every_body() {
  return {a_contribution(),
          Remind{a_contribution()},
          Resend{4},
          Call{5},
          a_result(),
          Return{6, ReturnReason::late},
          Fetch{7, 8, true},
          State{a_lineage(), {}, {}, {}},
          Last{1, 2, 3},
          Start{4, 5},
          Establish{},
          Established{true},
          Heartbeat{9, {{1, 2}, {3, 4}}},
          HeartbeatAnswer{9},
          Suspect{2},
          Join{},
          Leave{},
          ViewMessage{{3, {{0, 0}, {2, 1}}, {0, 2, 0}}}};
}

constexpr uint64_t kRun = 77;

Message a_message(MessageBody body) { return {{3, 2}, 5, 6, std::move(body)}; }

std::optional<WireMessage> through_the_wire(const Message& message, const BodyLayout& layout,
                                            const Bytes& body) {
  const Bytes header = encode({message, layout}, kRun, body);
  const auto decoded = decode(header, body, {kRun, message.from.node});
  const auto* frame = std::get_if<Frame>(&decoded);
  if (!frame) return std::nullopt;
  return read_message(*frame);
}

TEST(Messages, EveryKindSurvives) {
  const auto all = every_body();
  ASSERT_EQ(all.size(), std::variant_size_v<MessageBody>);
  for (size_t kind = 0; kind < all.size(); ++kind) {
    EXPECT_EQ(all[kind].index(), kind);
    const auto read = through_the_wire(a_message(all[kind]), {40, 8}, Bytes(48));
    ASSERT_TRUE(read) << kind;
    EXPECT_EQ(read->message, a_message(all[kind])) << kind;
    EXPECT_EQ(read->layout, (BodyLayout{40, 8}));
  }
}

TEST(Messages, EveryTruncationAndEveryTailIsRefused) {
  for (const MessageBody& body : every_body()) {
    const Bytes header = encode({a_message(body), {}}, kRun, {});
    const auto decoded = decode(header, {}, {kRun, 3});
    Frame frame = std::get<Frame>(decoded);
    const ByteSpan whole = frame.fields;
    for (size_t n = 0; n < whole.size(); ++n) {
      frame.fields = whole.first(n);
      EXPECT_FALSE(read_message(frame)) << body.index() << " cut at " << n;
    }
    Bytes longer = copy_of(whole);
    longer.push_back(std::byte{0});
    frame.fields = longer;
    EXPECT_FALSE(read_message(frame)) << body.index() << " with a tail";
  }
}

TEST(Messages, AnUnknownKindIsRefused) {
  Frame frame;
  for (uint8_t kind : {uint8_t{0}, uint8_t{200}}) {
    frame.envelope.kind = kind;
    EXPECT_FALSE(read_message(frame));
  }
}

TEST(Messages, WhatNoMemberSendsIsRefused) {
  const auto refused = [](auto change, auto body) {
    change(body);
    return !through_the_wire(a_message(body), {}, {});
  };
  for (double weight : {-1.0, double(NAN), double(INFINITY)}) {
    EXPECT_TRUE(refused([&](Contribution& c) { c.weight = weight; }, a_contribution()));
    EXPECT_TRUE(refused([&](Result& r) { r.roster[0].weight = weight; }, a_result()));
  }
  EXPECT_TRUE(refused([](Contribution& c) { c.mode = static_cast<Mode>(2); }, a_contribution()));
  EXPECT_TRUE(refused([](Contribution& c) { c.base = c.at + 1; }, a_contribution()));
  EXPECT_TRUE(refused([](Contribution& c) { c.samples = -1; }, a_contribution()));
  EXPECT_TRUE(refused([](Contribution& c) { c.lr = -1; }, a_contribution()));
  EXPECT_TRUE(refused([](Contribution& c) { c.settled = c.sequence + 1; }, a_contribution()));
  EXPECT_TRUE(refused([](Result& r) { r.next_interval = 0; }, a_result()));
  EXPECT_TRUE(refused([](Result& r) { r.drift = -1; }, a_result()));
  EXPECT_TRUE(refused([](Result& r) { r.roster[1].age = -1; }, a_result()));
  EXPECT_TRUE(refused([](Return& r) { r.reason = ReturnReason::not_now; }, Return{}));
  EXPECT_TRUE(refused([](ViewMessage& v) { v.view = {}; }, ViewMessage{{3, {{0, 0}}, {0}}}));
}

TEST(SideData, SurvivesAndMerges) {
  const SideData a{{1, 0, 0}, {{2, {1, 1}, {0, 0}}}, {5}};
  const SideData b{{0, 0, 1}, {{6, {5, 1}, {0, 0}}}, {3}};
  Writer w;
  write(a, w);
  Reader reader(w.view());
  EXPECT_EQ(read_side_data(reader), a);
  const std::vector<SideData> parts{a, b};
  const auto merged = merge(parts, StatsAtSync::merge);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->used, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(merged->batches_tracked, (std::vector<int64_t>{5}));
  EXPECT_EQ(merged->batch_norm[0].mean, (std::vector<double>{4, 1}));
  EXPECT_EQ(merged->batch_norm[0].var, (std::vector<double>{3, 0}));  // between the means
  EXPECT_EQ(merge(parts, StatsAtSync::first)->batch_norm[0], a.batch_norm[0]);
}

TEST(SideData, OfDifferentModelsIsRefused) {
  const std::vector<SideData> parts{{{1}, {}, {}}, {{1, 0}, {}, {}}};
  EXPECT_FALSE(merge(parts, StatsAtSync::merge));
}

TEST(Reports, Survive) {
  RoundReport report;
  report.lane.why = "node 3 is gone";
  report.lane.moved = {1, 3};
  report.lane.ledger.skip(2);
  report.summary.next_interval = 8;
  report.side = {{1}, {{1, {2}, {3}}}, {4}};
  Writer w;
  write(report, w);
  Reader reader(w.view());
  const RoundReport read = read_round_report(reader);
  EXPECT_EQ(read.lane.why, "node 3 is gone");
  EXPECT_EQ(read.lane.moved, (std::vector<int>{1, 3}));
  EXPECT_EQ(read.lane.ledger, report.lane.ledger);
  EXPECT_EQ(read.summary.next_interval, 8);
  EXPECT_EQ(read.side, report.side);
}

}  // namespace
}  // namespace hybridsync
