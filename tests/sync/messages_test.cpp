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
  c.sequence = 1ull << 40;
  c.base = 17;
  c.mode = Mode::delta;
  c.finished = true;
  c.weight = 12.5;
  c.samples = 100;
  c.steps = 4;
  c.loss_sum = -1;
  c.loss_weight = 2;
  c.squared_norm = 3;
  c.anchor_hash = ~0ull;
  return c;
}

Result a_result() {
  Result r;
  r.version = 18;
  r.mode = Mode::delta;
  r.roster = {{0, 1, 0, 2.0}, {3, 9, 1, 0.0}};
  r.weight = 2;
  r.samples = 7;
  r.before = 1;
  r.after = 2;
  r.next_mode = Mode::delta;
  r.next_interval = 8;
  r.finished = true;
  return r;
}

TEST(Messages, ContributionsSurvive) {
  Writer w;
  write(ContributionFields{a_contribution(), {40, 8}}, w);
  const auto read = read_contribution(Reader(w.view()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->contribution, a_contribution());
  EXPECT_EQ(read->body.values_bytes, 40u);
  EXPECT_EQ(read->body.side_bytes, 8u);
}

TEST(Messages, ResultsSurvive) {
  Writer w;
  write(ResultFields{a_result(), {40, 0}}, w);
  const auto read = read_result(Reader(w.view()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->result, a_result());
}

TEST(Messages, EveryTruncationIsRefused) {
  Writer contribution, result;
  write(ContributionFields{a_contribution(), {}}, contribution);
  write(ResultFields{a_result(), {}}, result);
  for (size_t n = 0; n < contribution.view().size(); ++n)
    EXPECT_FALSE(read_contribution(Reader(contribution.view().first(n))));
  for (size_t n = 0; n < result.view().size(); ++n)
    EXPECT_FALSE(read_result(Reader(result.view().first(n))));
}

TEST(Messages, WhatNoMemberSendsIsRefused) {
  for (double weight : {-1.0, double(NAN), double(INFINITY)}) {
    Contribution c = a_contribution();
    c.weight = weight;
    Writer w;
    write(ContributionFields{c, {}}, w);
    EXPECT_FALSE(read_contribution(Reader(w.view()))) << weight;
  }
  Result r = a_result();
  r.next_interval = 0;
  Writer w;
  write(ResultFields{r, {}}, w);
  EXPECT_FALSE(read_result(Reader(w.view())));
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

TEST(Reports, SurviveAndLongSentencesAreCut) {
  RoundReport report;
  report.why = std::string(2000, 'x');
  report.next_interval = 8;
  report.side = {{1}, {{1, {2}, {3}}}, {4}};
  Writer w;
  write(report, w);
  Reader reader(w.view());
  const RoundReport read = read_round_report(reader);
  EXPECT_EQ(read.why, std::string(kWhyBytes, 'x'));
  EXPECT_EQ(read.next_interval, 8);
  EXPECT_EQ(read.side, report.side);
}

}  // namespace
}  // namespace hybridsync
