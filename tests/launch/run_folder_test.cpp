#include "hybridsync/launch/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

class RunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hybridsync_folder_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    scratch_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  std::string scratch_;
};

TEST_F(RunFolder, IsClaimedOnce) {
  const std::string folder = scratch_ + "/runs/x";
  {
    const ClaimedFolder mine(folder, IfTaken::refuse);
    EXPECT_EQ(mine.path(), folder);
    EXPECT_THROW(ClaimedFolder(folder, IfTaken::refuse), ConfigError);
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  {
    const ClaimedFolder mine(folder, IfTaken::refuse);
    std::ofstream(folder + "/file") << "mine";
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/file"));
  EXPECT_THROW(ClaimedFolder(folder, IfTaken::refuse), ConfigError);
  EXPECT_THROW(ClaimedFolder(folder + "/file/below", IfTaken::number), ConfigError);
}

TEST_F(RunFolder, OfTheTimeIsNumberedWhenTaken) {
  const std::string folder = scratch_ + "/x";
  const ClaimedFolder first(folder, IfTaken::number), second(folder, IfTaken::number),
      third(folder, IfTaken::number);
  EXPECT_EQ(first.path(), folder);
  EXPECT_EQ(second.path(), folder + "-2");
  EXPECT_EQ(third.path(), folder + "-3");
}

TEST_F(RunFolder, IsOfOneOnlyAmongManyAtOnce) {
  std::vector<std::string> paths(16);
  std::vector<std::thread> threads;
  for (std::string& path : paths) {
    threads.emplace_back([&] {
      const ClaimedFolder mine(scratch_ + "/x", IfTaken::number);
      path = mine.path();
      std::ofstream(path + "/file") << "mine";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), paths.size());
}

}  // namespace
}  // namespace hybridsync
