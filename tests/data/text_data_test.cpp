#include "hybridsync/data/text_data.h"

#include <gmock/gmock.h>

namespace hybridsync {
namespace {

using testing::ElementsAre;

TEST(TextData, NumbersTheBytesThatOccurInAscendingOrder) {
  const TextData data = to_text_data("banana \xff!an");
  EXPECT_EQ(data.vocabulary, " !abn\xff");
  EXPECT_THAT(data.train, ElementsAre(3, 2, 4, 2, 4, 2, 0, 5, 1, 2));
  EXPECT_THAT(data.held_out, ElementsAre(4));
}

TEST(TextData, EveryWindowHasASuccessorForEachToken) {
  EXPECT_EQ(window_count({}, 4), 0);
  EXPECT_EQ(window_count(std::vector<uint8_t>(4), 4), 0);
  EXPECT_EQ(window_count(std::vector<uint8_t>(5), 4), 1);
  EXPECT_EQ(window_count(std::vector<uint8_t>(8), 4), 1);
  EXPECT_EQ(window_count(std::vector<uint8_t>(9), 4), 2);
}

}  // namespace
}  // namespace hybridsync
