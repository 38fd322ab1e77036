#include "hybridsync/observe/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hybridsync/config/error.h"
#include "tests/observe/sample_run.h"
#include "tests/observe/scratch_folder.h"

namespace hybridsync {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string error_of(const std::string& folder) {
  try {
    read_run(folder);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RunData, ReadsWhatTheRecorderWrote) {
  ScratchFolder scratch;
  const RunData run = read_run(write_sample_run(scratch / "a", {.steps = 48, .interval = 8}));
  EXPECT_EQ(run.steps.size(), 96u);  // of two nodes
  EXPECT_EQ(run.evaluations.size(), 12u);
  EXPECT_EQ(run.events.size(), 1u);
  EXPECT_TRUE(run.finished);
  EXPECT_THAT(run.notes, IsEmpty());
  EXPECT_EQ(run.summary.k_final, 8);
  EXPECT_EQ(run.summary.final_accuracy, run.evaluations.back().accuracy);
  EXPECT_THAT(run.config, HasSubstr("every = 8"));
  EXPECT_THAT(run.environment, HasSubstr("world_size"));
}

TEST(RunData, ARunCutShortShowsWhatItHas) {
  ScratchFolder scratch;
  const RunData whole = read_run(write_sample_run(scratch / "whole", {.steps = 48}));
  const RunData cut = read_run(write_sample_run(scratch / "cut", {.steps = 48, .finished = false}));
  EXPECT_FALSE(cut.finished);
  EXPECT_THAT(cut.notes,
              ElementsAre(HasSubstr("last line is cut short"), HasSubstr("no summary.json")));
  EXPECT_EQ(cut.summary.name, "cut");
  EXPECT_EQ(cut.summary.steps, whole.summary.steps);
  EXPECT_EQ(cut.summary.samples, whole.summary.samples);
  EXPECT_EQ(cut.summary.bytes_sent_slow, whole.summary.bytes_sent_slow);
  EXPECT_EQ(cut.summary.rounds, whole.summary.rounds);
  EXPECT_DOUBLE_EQ(cut.summary.final_loss, whole.summary.final_loss);
  EXPECT_NEAR(cut.summary.utilisation, whole.summary.utilisation, 0.02);
}

TEST(RunData, LedgersOfTheLastLinesAddUp) {
  StepRecord early, one, other;
  early.ledger.applied = 1;
  early.ledger.ages = {1};
  one.ledger.applied = 7;
  one.ledger.lost_norm = 3;
  one.ledger.ages = {5, 0, 2};
  one.ledger.skipped_by_node = {0, 4};
  other.node = 1;
  other.ledger.applied = 2;
  other.ledger.lost_norm = 4;
  other.ledger.ages = {1, 1};
  const LedgerRecord sum = ledger_of({early, other, one});
  EXPECT_EQ(sum.applied, 9);
  EXPECT_EQ(sum.lost_norm, 5);
  EXPECT_THAT(sum.ages, ElementsAre(6, 1, 2));
  EXPECT_THAT(sum.skipped_by_node, ElementsAre(0, 4));
}

TEST(RunData, TheRecordsShowWhatBecameOfContributions) {
  ScratchFolder scratch;
  const SampleRun sample{
      .steps = 400, .interval = 8, .nodes = 3, .staleness = 2, .finished = false};
  const RunSummary s = read_run(write_sample_run(scratch / "cut", sample)).summary;
  EXPECT_EQ(s.contributed, s.applied + s.returned);
  EXPECT_EQ(s.contributed, 3 * s.rounds);
  ASSERT_EQ(s.ages.size(), 3u);
  EXPECT_EQ(s.ages[0] + s.ages[1] + s.ages[2], s.applied);
  EXPECT_GT(s.returned, 0);
  EXPECT_EQ(s.skipped, s.ages[1] + 2 * s.ages[2]);
}

TEST(RunData, UnreadableLinesAreCounted) {
  ScratchFolder scratch;
  const std::string folder = write_sample_run(scratch / "a", {.steps = 12, .nodes = 1});
  std::ofstream(folder + "/metrics.jsonl", std::ios::app) << "{\"st\n\n[1]\n{\"step\":13}\n";
  const RunData run = read_run(folder);
  EXPECT_EQ(run.steps.size(), 13u);
  EXPECT_THAT(run.notes,
              ElementsAre("metrics.jsonl: 2 unreadable lines are left out, the first is line 13"));
}

TEST(RunData, ABrokenSummaryIsNoted) {
  ScratchFolder scratch;
  const std::string folder = write_sample_run(scratch / "a", {.steps = 12});
  std::ofstream(folder + "/summary.json") << "{\"name\": 3}";
  const RunData run = read_run(folder);
  EXPECT_FALSE(run.finished);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("summary.json cannot be read")));
  EXPECT_EQ(run.summary.steps, 12);
}

TEST(RunData, AFolderThatIsNoRunIsNamed) {
  ScratchFolder scratch;
  EXPECT_THAT(error_of(scratch / "none"),
              HasSubstr(scratch / "none is no run: there is no such folder"));
  std::filesystem::create_directory(scratch / "empty");
  EXPECT_THAT(error_of(scratch / "empty"),
              HasSubstr(scratch / "empty is no run: it holds no metrics.jsonl"));
}

// A finished run of a configuration called "c".
RunData run_of(const std::string& folder, uint64_t seed, const std::string& config) {
  RunData run;
  run.folder = folder;
  run.summary.name = "c";
  run.summary.seed = seed;
  run.config = config;
  run.finished = true;
  return run;
}

std::vector<std::string> names_of(std::vector<RunData> runs) {
  tell_apart(runs);
  std::vector<std::string> names;
  for (const RunData& run : runs) names.push_back(run.summary.name);
  return names;
}

TEST(RunData, SeedsOfOneConfigurationKeepItsName) {
  EXPECT_THAT(
      names_of({run_of("runs/x", 1, "[train]\nlr = 1\nseed = 1\n\n[record]\nname = \"x\"\n"),
                run_of("runs/y", 2, "[train]\nlr = 1\nseed = 2\n\n[record]\nname = \"y\"\n")}),
      ElementsAre("c", "c"));
}

TEST(RunData, OtherRunsOfOneNameAreNamedAfterTheirFolders) {
  const std::string config = "[train]\nlr = 1\nseed = 1\n";
  EXPECT_THAT(names_of({run_of("runs/x", 1, config), run_of("runs/y", 1, config)}),
              ElementsAre("x", "y"));
  EXPECT_THAT(names_of({run_of("a/x", 1, config), run_of("b/x/", 2, "[train]\nlr = 2\n")}),
              ElementsAre("x", "b/x/"));
  EXPECT_THAT(names_of({run_of("x", 1, config), run_of("x", 1, config), run_of("x", 1, config)}),
              ElementsAre("x", "x #2", "x #3"));
  EXPECT_THAT(names_of({run_of("x", 1, "[tier]\nseed = 1\n"), run_of("y", 2, "[tier]\n")}),
              ElementsAre("x", "y"));
}

}  // namespace
}  // namespace hybridsync
