#include "hybridsync/observe/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hybridsync/config/error.h"
#include "tests/observe/sample_run.h"
#include "tests/observe/scratch_folder.h"

namespace hybridsync {
namespace {

using testing::HasSubstr;
using testing::Not;

// The page's own data, out of its script element.
Json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

TEST(Report, HoldsTheCurvesOfEveryRun) {
  ScratchFolder scratch;
  write_report({write_sample_run(scratch / "a", {.steps = 60}),
                write_sample_run(scratch / "b", {.name = "hybrid", .steps = 60, .interval = 8})},
               scratch / "report.html");
  const Json runs = data_of(text_of(scratch / "report.html")).at("runs");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].at("label"), "sync");
  EXPECT_EQ(runs[1].at("label"), "hybrid");
  EXPECT_NE(runs[0].at("colour"), runs[1].at("colour"));
  EXPECT_EQ(runs[1].at("loss").size(), 60u);
  EXPECT_EQ(runs[1].at("interval").back(), 8);
  EXPECT_EQ(runs[0].at("bytes").back(), 60 * 2 * 420'000);
}

TEST(Report, LongRunsAreThinnedOutAndTheCaptionSaysSo) {
  ScratchFolder scratch;
  write_report({write_sample_run(scratch / "a", {.steps = 5000})}, scratch / "report.html");
  const std::string html = text_of(scratch / "report.html");
  EXPECT_EQ(data_of(html).at("runs")[0].at("loss").size(), 2000u);
  EXPECT_THAT(html,
              HasSubstr("thinned out to 2000 points per curve, each the average of up to 3 steps"));
}

TEST(Report, NothingInARunBecomesMarkup) {
  ScratchFolder scratch;
  const std::string name = "</script><b onclick=\"x\">{{data}}";
  write_report({write_sample_run(scratch / "a", {.name = name, .steps = 24})},
               scratch / "report.html");
  const std::string html = text_of(scratch / "report.html");
  EXPECT_THAT(html, Not(HasSubstr("<b onclick")));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));  // in the sample's configuration
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;b onclick=&quot;x&quot;&gt;{{data}}"));
  EXPECT_EQ(data_of(html).at("runs")[0].at("label"), name);
}

TEST(Report, RunsOfOneNameAreToldApart) {
  ScratchFolder scratch;
  const std::string a = write_sample_run(scratch / "a", {.seed = 1, .steps = 24});
  const std::string b = write_sample_run(scratch / "b", {.seed = 2, .steps = 24});
  write_report({a, b}, scratch / "report.html");
  Json runs = data_of(text_of(scratch / "report.html")).at("runs");
  EXPECT_EQ(runs[0].at("label"), "sync, seed 1");
  EXPECT_EQ(runs[1].at("label"), "sync, seed 2");
  EXPECT_EQ(runs[0].at("colour"), runs[1].at("colour"));
  write_report({a, b, a}, scratch / "report.html");
  runs = data_of(text_of(scratch / "report.html")).at("runs");
  EXPECT_EQ(runs[0].at("label"), "a");
  EXPECT_EQ(runs[1].at("label"), "b");
  EXPECT_EQ(runs[2].at("label"), a);
}

TEST(Report, OnlySeedsOfOneConfigurationAreAveraged) {
  ScratchFolder scratch;
  const std::string one = write_sample_run(scratch / "k1", {.seed = 1, .steps = 24});
  const std::string two = write_sample_run(scratch / "k8", {.seed = 2, .steps = 24, .interval = 8});
  write_report({one, two}, scratch / "report.html");
  const std::string html = text_of(scratch / "report.html");
  EXPECT_THAT(html, HasSubstr("2 runs of 2 configurations"));
  EXPECT_THAT(html, Not(HasSubstr("(2 seeds)")));
  EXPECT_EQ(data_of(html).at("runs")[1].at("label"), "k8");
  const std::string other = write_sample_run(scratch / "k1-again", {.seed = 3, .steps = 24});
  write_report({one, other}, scratch / "report.html");
  EXPECT_THAT(text_of(scratch / "report.html"), HasSubstr("sync (2 seeds)"));
}

TEST(Report, RunsWhoseNodesLagShowTheAgesOfContributions) {
  ScratchFolder scratch;
  const std::string sync = write_sample_run(scratch / "a", {.steps = 60, .interval = 8});
  const std::string delayed = write_sample_run(
      scratch / "b", {.name = "delayed", .steps = 400, .interval = 8, .nodes = 3, .staleness = 2});
  write_report({sync}, scratch / "report.html");
  EXPECT_THAT(text_of(scratch / "report.html"), Not(HasSubstr("Age of contributions")));
  write_report({sync, delayed}, scratch / "report.html");
  const std::string html = text_of(scratch / "report.html");
  const RunData run = read_run(delayed);
  const auto cell = [](int64_t n) { return "<td>" + std::to_string(n) + "</td>"; };
  std::string row;
  for (int64_t count : run.summary.ages) row += cell(count);
  row += cell(run.summary.returned) + cell(0) + cell(0) + "<td>0, 0, " +
         std::to_string(run.summary.skipped) + "</td>";
  EXPECT_THAT(html, HasSubstr(row));
  EXPECT_THAT(html, HasSubstr("title=\"age 2: " + std::to_string(run.summary.ages[2]) + " contr"));
}

TEST(Report, UnfinishedRunsAreShownWithANote) {
  ScratchFolder scratch;
  write_report({write_sample_run(scratch / "cut", {.steps = 24, .finished = false})},
               scratch / "report.html");
  const std::string html = text_of(scratch / "report.html");
  EXPECT_THAT(html, HasSubstr("<b>cut</b>: no summary.json"));
  EXPECT_EQ(data_of(html).at("runs")[0].at("loss").size(), 24u);
}

TEST(Report, MistakesAreNamed) {
  ScratchFolder scratch;
  EXPECT_THROW(write_report({}, scratch / "report.html"), ConfigError);
  EXPECT_THROW(write_report({scratch / "none"}, scratch / "report.html"), ConfigError);
  const std::string run = write_sample_run(scratch / "a", {.steps = 12});
  EXPECT_THROW(write_report({run}, scratch / "no/such/folder.html"), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(scratch / "report.html"));
}

}  // namespace
}  // namespace hybridsync
