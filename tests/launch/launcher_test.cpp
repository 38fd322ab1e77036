// The launcher with small shell scripts as ranks: environment, exit codes, output, and nothing left
// running.
#include "hybridsync/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "hybridsync/config/error.h"
#include "hybridsync/launch/rank_process.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hybridsync_launch_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    setenv("DIR", name, 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static LaunchOptions script(const std::string& text, int ranks, int per_node = 1) {
    LaunchOptions options;
    options.argv = {"sh", "-c", text};
    options.world_size = ranks;
    options.ranks_per_node = per_node;
    options.grace = milliseconds(300);
    return options;
  }

  std::string content(const std::string& file) const {
    std::ifstream in(folder_ + "/" + file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  // Generous: only a bound against hanging.
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return condition();
  }

  bool ranks_are_there(int ranks) const {
    return eventually([&] {
      for (int r = 0; r < ranks; ++r)
        if (!content("pid" + std::to_string(r)).ends_with("\n")) return false;
      return true;
    });
  }

  // A zombie that its new parent has not yet reaped is gone, too.
  bool rank_is_gone(int rank) const {
    const std::string pid = content("pid" + std::to_string(rank));
    return eventually([&] {
      std::ifstream stat("/proc/" + pid.substr(0, pid.find('\n')) + "/stat");
      std::string number, name, state;
      return !(stat >> number >> name >> state) || state == "Z";
    });
  }

  // Starts launch_program in a process of its own.
  static RankProcess start_launcher(const std::string& text, int ranks, int grace_ms) {
    RankStart start;
    start.argv = {
        LAUNCH_PROGRAM, std::to_string(ranks), "2", std::to_string(grace_ms), "sh", "-c", text};
    for (char** e = environ; *e; ++e) start.environment.emplace_back(*e);
    return RankProcess(start);
  }

  static int exit_code_of(RankProcess& process) {
    eventually([&] { return process.reap().has_value(); });
    const int status = process.reap().value_or(-1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string folder_;
};

// Writes its pid, then stays whatever it is asked.
constexpr const char* kStubborn =
    "trap '' TERM INT HUP; echo $$ > $DIR/pid$RANK; while :; do sleep 0.05; done";

TEST_F(LauncherTest, EveryRankKnowsItsPlace) {
  LaunchOptions options = script(
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $HYBRIDSYNC_RUN_FOLDER > "
      "$DIR/place$RANK; echo $HYBRIDSYNC_RUN_ID > $DIR/id$RANK; "
      "echo $MASTER_ADDR:$MASTER_PORT > $DIR/master$RANK",
      4, 2);
  options.run_folder = "runs/x";
  setenv("RANK", "77", 1);
  EXPECT_EQ(launch(options), 0);
  unsetenv("RANK");
  EXPECT_EQ(content("place0"), "0 4 0 2 0 runs/x\n");
  EXPECT_EQ(content("place1"), "1 4 1 2 0 runs/x\n");
  EXPECT_EQ(content("place2"), "2 4 0 2 1 runs/x\n");
  EXPECT_EQ(content("place3"), "3 4 1 2 1 runs/x\n");
  EXPECT_EQ(content("id0").size(), 33u);
  EXPECT_EQ(content("id3"), content("id0"));
  EXPECT_THAT(content("master0"), ::testing::MatchesRegex("[0-9.]+:[1-9][0-9]*\n"));
  EXPECT_EQ(content("master2"), content("master0"));
  const std::string first_id = content("id0");
  EXPECT_EQ(launch(options), 0);
  EXPECT_NE(content("id0"), first_id);
}

TEST_F(LauncherTest, ShowsAndReturnsTheFirstFailure) {
  ::testing::internal::CaptureStderr();
  const int code = launch(script(
      "if [ $RANK = 2 ]; then echo first >&2; echo boom >&2; exit 3; fi; exec sleep 1000", 4, 2));
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 3);
  EXPECT_THAT(shown, HasSubstr("[rank 2] boom\n"));
  EXPECT_THAT(shown, HasSubstr("hybridsync: rank 2 (node 1) exited with code 3: boom\n"));
  EXPECT_THAT(shown, Not(HasSubstr("rank 0 (node 0)")));
}

TEST_F(LauncherTest, EndsRanksThatIgnoreSigterm) {
  const std::string fail =
      "if [ $RANK = 1 ]; then while [ ! -s $DIR/pid0 ] || [ ! -s $DIR/pid2 ]; "
      "do sleep 0.02; done; exit 5; fi; ";
  EXPECT_EQ(launch(script(fail + kStubborn, 3)), 5);
  EXPECT_TRUE(rank_is_gone(0));
  EXPECT_TRUE(rank_is_gone(2));
}

TEST_F(LauncherTest, NamesARankThatWasKilled) {
  ::testing::internal::CaptureStderr();
  const int code = launch(script("[ $RANK = 1 ] && kill -9 $$; exec sleep 1000", 2));
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_THAT(shown, HasSubstr("rank 1 (node 1) was killed by signal 9 (Killed)\n"));
}

TEST_F(LauncherTest, PassesOutputOnByLines) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(launch(script("echo out; printf err >&2", 2)), 0);
  const std::string err = ::testing::internal::GetCapturedStderr();
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(out, ::testing::AnyOf("out\n[rank 1] out\n", "[rank 1] out\nout\n"));
  EXPECT_THAT(err, ::testing::AnyOf("err\n[rank 1] err\n", "[rank 1] err\nerr\n"));
}

TEST_F(LauncherTest, ShowsAMessageForTheWholeRunOnce) {
  ::testing::internal::CaptureStderr();
  const int code = launch(script("echo 'hybridsync: models differ' >&2; exit 2", 4, 2));
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 2);
  size_t times = 0;
  for (size_t at = 0; (at = shown.find("hybridsync: models differ", at)) != std::string::npos; ++at)
    ++times;
  EXPECT_EQ(times, 1u) << shown;
  EXPECT_THAT(shown, HasSubstr("exited with code 2: models differ\n"));
}

TEST_F(LauncherTest, SendsOutputWhereItIsTold) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  LaunchOptions options = script("echo out", 2);
  options.output_fd = 2;
  EXPECT_EQ(launch(options), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("[rank 1] out\n"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(LauncherTest, RefusesAProgramThatIsNotThere) {
  LaunchOptions options;
  options.argv = {"./no_such_program"};
  try {
    launch(options);
    FAIL() << "started";
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "cannot start './no_such_program': No such file or directory");
  }
}

TEST_F(LauncherTest, PassesSignalsOn) {
  for (auto [signal, name] : {std::pair{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}}) {
    for (int r = 0; r < 2; ++r) std::filesystem::remove(folder_ + "/pid" + std::to_string(r));
    const std::string trap =
        std::string("trap 'echo ") + name + " > $DIR/got$RANK; exit 3' " + name;
    RankProcess launcher =
        start_launcher(trap + "; echo $$ > $DIR/pid$RANK; while :; do sleep 0.05; done", 2, 20000);
    ASSERT_TRUE(ranks_are_there(2));
    launcher.send(signal);
    EXPECT_EQ(exit_code_of(launcher), kInterrupted);
    EXPECT_EQ(content("got0"), std::string(name) + "\n");
    EXPECT_EQ(content("got1"), std::string(name) + "\n");
    EXPECT_TRUE(rank_is_gone(0) && rank_is_gone(1));
  }
}

// Rank 0 is a shell that waits for a program of its own.
TEST_F(LauncherTest, NothingThatARankStartedOutlivesIt) {
  for (const char* stubborn : {"", "trap '' TERM; "}) {
    std::filesystem::remove(folder_ + "/pid0");
    const std::string wrapper =
        std::string("if [ $RANK = 0 ]; then (") + stubborn +
        "echo $(exec sh -c 'echo $PPID') > $DIR/pid0; sleep 1000; :); :; fi; "
        "while [ ! -s $DIR/pid0 ]; do sleep 0.02; done; exit 5";
    EXPECT_EQ(launch(script(wrapper, 2)), 5);
    EXPECT_TRUE(rank_is_gone(0));
  }
}

TEST_F(LauncherTest, ASecondSignalEndsStubbornRanksAtOnce) {
  RankProcess launcher = start_launcher(kStubborn, 2, 3600 * 1000);
  ASSERT_TRUE(ranks_are_there(2));
  launcher.send(SIGINT);
  std::this_thread::sleep_for(milliseconds(700));  // less counts as the same signal
  launcher.send(SIGINT);
  EXPECT_EQ(exit_code_of(launcher), kInterrupted);
  EXPECT_TRUE(rank_is_gone(0) && rank_is_gone(1));
}

TEST_F(LauncherTest, NothingOutlivesAKilledLauncher) {
  RankProcess launcher = start_launcher(kStubborn, 4, 3600 * 1000);
  ASSERT_TRUE(ranks_are_there(4));
  launcher.send(SIGKILL);
  EXPECT_EQ(exit_code_of(launcher), -SIGKILL);
  for (int r = 0; r < 4; ++r) EXPECT_TRUE(rank_is_gone(r)) << r;
}

}  // namespace
}  // namespace hybridsync
