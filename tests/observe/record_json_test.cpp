#include "hybridsync/observe/record_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hybridsync {
namespace {

StepRecord full_record() {
  StepRecord r;
  r.node = 1;
  r.step = 17;
  r.samples = 4352;
  r.seconds = 2.5;
  r.loss = 0.75;
  r.global_loss = 0.8;
  r.lr = 0.05;
  r.grad_norm = 1.5;
  r.skipped = true;
  r.interval = 8;
  r.rounds = 2;
  r.mode = "periodic";
  r.compute_seconds = 0.0625;
  r.reduce_seconds = 0.5;
  r.reduce_wait_seconds = 0.125;
  r.optimizer_seconds = 0.25;
  r.exchange_seconds = 1;
  r.agree_seconds = 2;
  r.other_seconds = 4;
  r.bytes_fast = 1;
  r.bytes_sent_slow = 2;
  r.bytes_received_slow = 3;
  r.contributors = 3;
  r.age = 1;
  r.drift = 0.125;
  return r;
}

LedgerRecord full_ledger() {
  LedgerRecord l;
  l.contributed = 29;
  l.applied = 21;
  l.returned = 3;
  l.dropped = 2;
  l.restored = 1;
  l.lost = 4;
  l.lost_norm = 0.25;
  l.decayed_norm = 0.75;
  l.skipped = 6;
  l.mismatches = 7;
  l.ages = {18, 2, 1};
  l.skipped_by_node = {0, 1, 5};
  l.samples_contributed = 2900;
  l.samples_applied = 2100;
  l.samples_returned = 400;
  return l;
}

TEST(RecordJson, KeysFollowTorchtitan) {
  const Json line = to_json(full_record(), 640);
  for (const char* key :
       {"step", "node", "samples", "seconds", "loss", "lr", "grad_norm", "skipped", "K",
        "loss_metrics/global_avg_loss", "throughput(tps)", "time_metrics/end_to_end(s)",
        "time_metrics/compute(s)", "time_metrics/exchange(s)", "comm/fast_bytes",
        "comm/slow_sent_bytes", "comm/slow_received_bytes", "sync/rounds", "sync/mode"}) {
    EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(line.at("throughput(tps)"), 640);
  EXPECT_EQ(line.at("K"), 8);
}

TEST(RecordJson, EndToEndCountsTheWaitedPartOfTheReductionOnly) {
  EXPECT_EQ(to_json(full_record(), 0).at("time_metrics/end_to_end(s)"),
            0.0625 + 0.125 + 0.25 + 1 + 2 + 4);
}

TEST(RecordJson, AStepSurvives) {
  const Json line = to_json(full_record(), 640);
  EXPECT_EQ(dump(to_json(step_from_json(Json::parse(dump(line))), 640)), dump(line));
}

TEST(RecordJson, TheLedgerSurvives) {
  StepRecord r = full_record();
  r.ledger = full_ledger();
  const Json line = Json::parse(dump(to_json(r, 640)));
  EXPECT_EQ(step_from_json(line).ledger, full_ledger());
  EXPECT_EQ(step_from_json(line).contributors, 3);
  EXPECT_EQ(step_from_json(line).age, 1);
  EXPECT_EQ(step_from_json(line).drift, 0.125);
  EXPECT_EQ(line.at("ledger/contributed"), 29);
  EXPECT_EQ(line.at("ledger/ages"), Json({18, 2, 1}));
  EXPECT_EQ(line.at("ledger/skipped_by_node"), Json({0, 1, 5}));
  EXPECT_EQ(line.at("ledger/samples_returned"), 400);
}

TEST(RecordJson, AnEmptyLedgerIsLeftOut) {
  const Json line = to_json(full_record(), 640);
  for (const auto& [key, value] : line.items()) EXPECT_FALSE(key.starts_with("ledger/")) << key;
  EXPECT_EQ(line.at("sync/contributors"), 3);
  EXPECT_EQ(line.at("sync/age"), 1);
  EXPECT_EQ(step_from_json(line).ledger, LedgerRecord{});
}

TEST(RecordJson, WhatIsNoNumberIsNullAndBackNan) {
  StepRecord r = full_record();
  r.loss = std::numeric_limits<double>::infinity();
  r.global_loss = std::nan("");
  const Json line = Json::parse(dump(to_json(r, std::nan(""))));
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_TRUE(line.at("loss_metrics/global_avg_loss").is_null());
  EXPECT_TRUE(line.at("throughput(tps)").is_null());
  EXPECT_TRUE(std::isnan(step_from_json(line).loss));
}

TEST(RecordJson, EventsKeepTheirFields) {
  const EventRecord e{"skip", "step 5 skipped: a gradient is not finite",
                      1,      5,
                      0.5,    {{"parameter", "conv1.weight"}, {"kind", "cannot hide the kind"}}};
  const Json line = to_json(e);
  EXPECT_EQ(line.at("kind"), "skip");
  EXPECT_EQ(line.at("parameter"), "conv1.weight");
  const EventRecord back = event_from_json(line);
  EXPECT_EQ(back.sentence, e.sentence);
  EXPECT_EQ(back.fields, (Json{{"parameter", "conv1.weight"}}));
}

TEST(RecordJson, RefusesWhatIsNoRecord) {
  EXPECT_THROW(step_from_json(Json::parse("{\"loss\":1}")), Json::exception);
  EXPECT_THROW(step_from_json(Json::parse("3")), Json::exception);
  EXPECT_THROW(step_from_json(Json::parse("{\"step\":1,\"loss\":\"low\"}")), Json::exception);
}

TEST(RecordJson, BrokenUtf8IsReplaced) {
  EXPECT_EQ(dump({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace hybridsync
