#include "hybridsync/launch/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

TEST(RunFolder, IsClaimedOnceItHoldsSomething) {
  char name[] = "/tmp/hybridsync_folder_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string folder = std::string(name) + "/runs/x";
  claim_run_folder(folder);
  claim_run_folder(folder);  // still empty
  release_run_folder(folder);
  EXPECT_FALSE(std::filesystem::exists(folder));
  claim_run_folder(folder);
  std::ofstream(folder + "/file") << "mine";
  EXPECT_THROW(claim_run_folder(folder), ConfigError);
  release_run_folder(folder);
  EXPECT_TRUE(std::filesystem::exists(folder + "/file"));
  EXPECT_THROW(claim_run_folder(folder + "/file/below"), ConfigError);
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace hybridsync
