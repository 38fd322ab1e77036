#include "hybridsync/observe/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace hybridsync {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgressState half_way() {
  ProgressState s;
  s.step = 50;
  s.steps = 100;
  s.samples_per_second = 12'345;
  s.loss = 0.41237;
  s.interval = 8;
  s.bytes_slow = 12'345'678;
  s.seconds = 12.3;
  s.seconds_left = 12.3;
  return s;
}

StepRecord record(int64_t step, double seconds) {
  StepRecord r;
  r.step = step;
  r.samples = step * 64;
  r.seconds = seconds;
  r.loss = 0.5;
  r.bytes_sent_slow = 1000;
  return r;
}

Progress::Options terminal(int width) { return {.terminal = true, .width = width, .steps = 100}; }

TEST(ProgressLine, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(line(half_way(), 120),
            "[===============>              ] 50/100  12.3k samples/s  loss 0.4124  K 8  "
            "12.3 MB slow  12.3 s left");
}

TEST(ProgressLine, DropsTheLeastImportantFirst) {
  EXPECT_EQ(line(half_way(), 60), "[====>   ] 50/100  12.3k samples/s  loss 0.4124  12.3 s left");
  EXPECT_EQ(line(half_way(), 40), "50/100  loss 0.4124  12.3 s left");
  EXPECT_EQ(line(half_way(), 20), "50/100  loss 0.4124");
  EXPECT_EQ(line(half_way(), 6), "50/100");
}

TEST(ProgressLine, NeverWiderThanAsked) {
  ProgressState s = half_way();
  s.waiting = "waiting 4 s for node 1, fragment 5, version 17 \u2013 \u00fcber";
  for (int width = 0; width < 160; ++width) {
    for (const std::string& text : {line(half_way(), width), line(s, width)}) {
      const auto columns =
          std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, width) << text;
    }
  }
}

TEST(ProgressLine, ShowsWhatItWaitsFor) {
  ProgressState s = half_way();
  s.waiting = "waiting 4 s for node 1, fragment 5, version 17";
  EXPECT_EQ(line(s, 80),
            "[===========>           ] 50/100  waiting 4 s for node 1, fragment 5, version 17");
}

TEST(ProgressLine, SamplesTellHowFarItIsWhereTheyEndTheRun) {
  ProgressState s;
  s.step = 30;  // of a slow node
  s.samples = 500;
  s.samples_in_all = 1000;
  EXPECT_EQ(line(s, 80), "[===============>              ] 50 %  step 30  K 1  0 B slow");
  EXPECT_THAT(plain_line(s), HasSubstr("50 %  step 30"));
}

TEST(Progress, WhatIsLeftFollowsTheSamples) {
  std::ostringstream out;
  Progress progress(out, {.samples = 256});
  progress.step(record(1, 3), 0);  // 64 samples in 3 s
  EXPECT_EQ(progress.state().seconds_left, 9);
  progress.step(record(5, 20), 1);  // a result more than was to do
  EXPECT_EQ(progress.state().seconds_left, 0);
}

TEST(ProgressLine, TheBarIsFullAtTheEnd) {
  ProgressState s;
  s.step = s.steps = 10;
  EXPECT_THAT(line(s, 40), HasSubstr("[====="));
  EXPECT_THAT(line(s, 40), Not(HasSubstr(">")));
}

TEST(Progress, RedrawsOneLineAtMostTenTimesASecond) {
  std::ostringstream out;
  Progress progress(out, terminal(60));
  for (int64_t i = 0; i < 100; ++i)
    progress.step(record(i + 1, 0.01 * double(i)), 0.01 * double(i));
  const std::string text = out.str();
  const auto draws = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(draws, 9);
  EXPECT_LE(draws, 10);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  progress.finish();
  EXPECT_EQ(out.str().back(), '\n');
  EXPECT_THAT(out.str(), HasSubstr("100/100"));
}

TEST(Progress, WritesPlainLinesOffATerminal) {
  std::ostringstream out;
  Progress progress(out, {.steps = 10});
  for (int64_t i = 1; i <= 10; ++i) progress.step(record(i, double(i)), double(i));
  progress.finish();
  EXPECT_EQ(out.str(),
            "1.00 s  1/10  64 samples/s  loss 0.5000  K 1  1.00 kB slow  9.00 s left\n"
            "6.00 s  6/10  64 samples/s  loss 0.5000  K 1  6.00 kB slow  4.00 s left\n"
            "10.0 s  10/10  64 samples/s  loss 0.5000  K 1  10.0 kB slow  0 s left\n");
}

TEST(Progress, DoesNotRepeatItselfAtTheEnd) {
  std::ostringstream out;
  Progress progress(out, {.steps = 1});
  progress.step(record(1, 1), 1);
  progress.finish();
  EXPECT_EQ(out.str(), "1.00 s  1/1  64 samples/s  loss 0.5000  K 1  1.00 kB slow  0 s left\n");
}

TEST(Progress, SaysNothingOfARunThatNeverBegan) {
  std::ostringstream out;
  Progress(out, terminal(80)).finish();
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, WaitingComesAndGoes) {
  std::ostringstream out;
  Progress progress(out, terminal(80));
  progress.step(record(1, 1), 1);
  progress.waiting("waiting 4 s for node 1", 5);
  EXPECT_THAT(out.str(), HasSubstr("1/100  waiting 4 s for node 1\x1b[K"));
  out.str("");
  progress.step(record(2, 6), 6);
  EXPECT_THAT(out.str(), Not(HasSubstr("waiting")));
}

TEST(Progress, LeavesTheLastColumnFree) {
  std::ostringstream out;
  Progress progress(out, terminal(20));
  progress.waiting("a sentence that is longer than the terminal", 1);
  EXPECT_EQ(out.str(), "\r0/100  a sentence t\x1b[K");
}

TEST(Progress, NotesStayAboveTheBar) {
  std::ostringstream out;
  Progress progress(out, terminal(40));
  progress.step(record(1, 1), 1);
  out.str("");
  progress.note("disk full");
  EXPECT_THAT(out.str(), testing::StartsWith("\r\x1b[Kdisk full\n\r"));
}

}  // namespace
}  // namespace hybridsync
