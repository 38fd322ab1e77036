#include "hybridsync/observe/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "hybridsync/config/error.h"
#include "tests/observe/scratch_folder.h"

namespace hybridsync {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

StepRecord record(int node, int64_t step) {
  StepRecord r;
  r.node = node;
  r.step = step;
  r.samples = step * 64;
  r.seconds = 0.5 * double(step);
  r.mode = "every_step";
  return r;
}

std::vector<Json> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string error_of(Recorder::Options options) {
  try {
    Recorder recorder(std::move(options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Recorder, WritesTheWholeFolder) {
  ScratchFolder scratch;
  Recorder recorder({scratch / "runs/a", FolderUse::fresh, {}});
  recorder.write_config("[train]\n");
  recorder.write_environment({{"world_size", 4}});
  recorder.step(record(0, 1));
  recorder.step(record(0, 2));
  recorder.evaluation({2, 128, 1.0, 0.5, 0.75});
  recorder.event({"skip", "why", 0, 2, 1.0, {}});
  recorder.summary({.name = "a"});

  EXPECT_EQ(text_of(scratch / "runs/a/config.toml"), "[train]\n");
  EXPECT_EQ(Json::parse(text_of(scratch / "runs/a/environment.json")).at("world_size"), 4);
  const auto steps = lines_of(scratch / "runs/a/metrics.jsonl");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].at("throughput(tps)"), 128);  // 64 samples in half a second
  EXPECT_EQ(lines_of(scratch / "runs/a/evaluations.jsonl").at(0).at("accuracy"), 0.75);
  EXPECT_EQ(lines_of(scratch / "runs/a/events.jsonl").at(0).at("sentence"), "why");
  EXPECT_EQ(Json::parse(text_of(scratch / "runs/a/summary.json")).at("name"), "a");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch / "runs/a"), {}), 6);  // no drafts left
  EXPECT_EQ(recorder.errors(), 0);
}

TEST(Recorder, RefusesAFolderInUseUnlessAsked) {
  ScratchFolder scratch;
  Recorder({scratch / "a", FolderUse::fresh, {}}).step(record(0, 1));
  const std::string error = error_of({scratch / "a", FolderUse::fresh, {}});
  EXPECT_THAT(error, HasSubstr(scratch / "a"));
  EXPECT_THAT(error, HasSubstr("not empty"));
  EXPECT_EQ(lines_of(scratch / "a/metrics.jsonl").size(), 1u);

  Recorder({scratch / "a", FolderUse::join, {}}).step(record(1, 1));
  EXPECT_EQ(lines_of(scratch / "a/metrics.jsonl").size(), 2u);
  Recorder({scratch / "a", FolderUse::replace, {}}).step(record(0, 1));
  EXPECT_EQ(lines_of(scratch / "a/metrics.jsonl").size(), 1u);
}

TEST(Recorder, LinesOfSeveralProcessesNeverMix) {
  ScratchFolder scratch;
  constexpr int kProcesses = 4, kSteps = 500;
  std::vector<pid_t> children;
  for (int node = 0; node < kProcesses; ++node) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Recorder recorder({scratch / "a", FolderUse::join, {}});
      for (int step = 1; step <= kSteps; ++step) recorder.step(record(node, step));
      ::_exit(recorder.errors() == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::map<int, int> steps;
  for (const Json& line : lines_of(scratch / "a/metrics.jsonl")) {
    EXPECT_EQ(line.at("step"), ++steps[line.at("node").get<int>()]);
  }
  EXPECT_EQ(steps, (std::map<int, int>{{0, kSteps}, {1, kSteps}, {2, kSteps}, {3, kSteps}}));
}

TEST(Recorder, AFolderThatCannotBeIsAMistake) {
  ScratchFolder scratch;
  std::ofstream(scratch / "file") << "text";
  EXPECT_THAT(error_of({scratch / "file/run", FolderUse::fresh, {}}), HasSubstr("record.folder"));
}

// Writes past `bytes` fail while one of these lives, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(Recorder, AFullDiskShowsAtTheStart) {
  ScratchFolder scratch;
  std::string error;
  {
    FullDisk full(100);
    error = error_of({scratch / "a", FolderUse::fresh, {}});
  }
  EXPECT_THAT(error, HasSubstr("cannot write to the folder"));
}

TEST(Recorder, ALaterErrorIsToldOnceAndCounted) {
  ScratchFolder scratch;
  std::vector<std::string> told;
  Recorder recorder(
      {scratch / "a", FolderUse::fresh, [&](const std::string& e) { told.push_back(e); }});
  recorder.step(record(0, 1));
  const auto line_bytes = fs::file_size(scratch / "a/metrics.jsonl");
  {
    FullDisk full(line_bytes + 10);  // the next line is torn
    recorder.step(record(0, 2));
    recorder.step(record(0, 3));
    recorder.summary({.name = std::string(10000, 'x')});
  }
  recorder.step(record(0, 4));  // there is room again

  EXPECT_EQ(recorder.errors(), 3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("metrics.jsonl"));
  std::ifstream file(scratch / "a/metrics.jsonl");
  std::string first, torn, last;
  std::getline(file, first);
  std::getline(file, torn);
  std::getline(file, last);
  EXPECT_EQ(torn.size(), 10u);
  EXPECT_EQ(Json::parse(last).at("step"), 4);
  EXPECT_FALSE(fs::exists(scratch / "a/summary.json"));
}

}  // namespace
}  // namespace hybridsync
