#include "hybridsync/launch/suite_plan.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/launch/bench.h"
#include "hybridsync/launch/suite_folder.h"

namespace hybridsync {
namespace {

using testing::HasSubstr;

PlanOptions everything() { return {.seeds = 2, .full = true}; }

TEST(SuitePlan, NamesAreUniqueAndFitFolders) {
  for (const Suite& suite : suites()) {
    std::set<std::string> names;
    std::map<std::string, std::string> row_of_key;
    for (const PlannedRun& run : plan(suite, everything())) {  // accepts every row's overrides
      EXPECT_TRUE(names.insert(run.name).second) << run.name;
      EXPECT_EQ(run.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789._-"),
                std::string::npos)
          << run.name;
      const std::string row = std::to_string(run.part) + " " + std::to_string(run.row);
      EXPECT_EQ(row_of_key.emplace(run.key, row).first->second, row) << run.key;
    }
  }
}

TEST(SuitePlan, EveryPartHasItsTwoReferencesAtSeveralRates) {
  for (const Suite& suite : suites()) {
    for (const SuitePart& part : suite.parts) {
      std::map<Role, int> roles;
      std::set<std::string> names;
      for (const SuiteRow& row : part.rows) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.rates.empty()) << row.name;
        ++roles[row.role];
        if (row.role != Role::measured) {
          EXPECT_EQ(row.rates.size(), 2u) << row.name;
          EXPECT_FALSE(row.full) << row.name;
        }
      }
      EXPECT_EQ(roles[Role::synchronous], 1);
      EXPECT_EQ(roles[Role::alone], 1);
    }
  }
}

TEST(SuitePlan, RowsOfAPartHaveEqualSamples) {
  for (const Suite& suite : suites()) {
    std::map<size_t, std::set<int64_t>> samples;
    for (const PlannedRun& run : plan(suite, everything())) {
      if (run.row < 0) continue;
      const bool alone = suite.parts[run.part].rows[run.row].role == Role::alone;
      EXPECT_EQ(run.config.nodes(), alone ? 1 : 4) << run.name;
      samples[run.part].insert(total_samples(run.config) * (alone ? 4 : 1));
    }
    for (const auto& [part, counts] : samples) EXPECT_EQ(counts.size(), 1u);
  }
}

TEST(SuitePlan, StartsComeBeforeWhatNeedsThem) {
  std::set<std::string> starts;
  for (const PlannedRun& run : plan(suites()[0], everything())) {
    if (run.row < 0) {
      EXPECT_EQ(run.start, "");
      starts.insert(run.name);
    } else {
      EXPECT_TRUE(starts.contains(run.start)) << run.name;
      EXPECT_THAT(run.start, HasSubstr("-seed" + std::to_string(run.seed) + "-"));
    }
  }
}

// A row, and its start run, of a suite of one part.
Suite small(const std::string& row_set, const std::string& start_set) {
  SuitePart part{.task = "cnn", .name = "steep", .toml = "[train]\nsteps = 4\n"};
  part.start_sets = {start_set};
  part.rows = {{"a row", {row_set}, {0.1}}};
  return {"small", {part}};
}

std::string name_of_row(const Suite& suite, int64_t steps = 0) {
  return plan(suite, {.seeds = 1, .steps = steps}).back().name;
}

TEST(SuitePlan, ANameFollowsAllSettingsAndThoseOfTheStart) {
  const std::string name = name_of_row(small("train.clip=1", "train.steps=3"));
  EXPECT_THAT(name, testing::StartsWith("cnn-steep-a-row-lr0.1-seed1-"));
  EXPECT_EQ(name, name_of_row(small("train.clip=1", "train.steps=3")));
  EXPECT_NE(name, name_of_row(small("train.clip=2", "train.steps=3")));
  EXPECT_NE(name, name_of_row(small("train.clip=1", "train.steps=4")));
  EXPECT_NE(name, name_of_row(small("train.clip=1", "train.steps=3"), 2));
}

TEST(SuitePlan, RowsMarkedFullAreLeftOut) {
  Suite suite = small("train.clip=1", "train.steps=3");
  EXPECT_EQ(plan(suite, {.seeds = 3}).size(), 6u);
  suite.parts[0].rows[0].full = true;
  EXPECT_EQ(plan(suite, {.seeds = 3}).size(), 3u);
  EXPECT_EQ(plan(suite, {.seeds = 3, .full = true}).size(), 6u);
}

TEST(SuitePlan, AnUnknownSuiteIsToldWhichThereAre) {
  try {
    find_suite("speed");
    FAIL() << "found";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("--suite speed: there is no such suite; there are: compression"));
  }
}

TEST(SuitePlan, ARunCanBeTyped) {
  const Suite suite = small("train.clip=1", "train.steps=3");
  const PlannedRun run = plan(suite, {.seeds = 1}).back();
  EXPECT_EQ(typed(command_of("my suite", suite, run)),
            "hybridsync train 'my suite/cnn.toml' --set train.clip=1 --set train.lr=0.1 "
            "--set train.seed=1 --set 'train.start_from=\"my suite/runs/" +
                run.start + "\"'");
}

}  // namespace
}  // namespace hybridsync
