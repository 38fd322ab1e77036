#include "hybridsync/data/source.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "hybridsync/config/error.h"
#include "tests/data/files.h"

namespace hybridsync {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& name) {
  try {
    read_data(name);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

void write_images(const Folder& folder, uint8_t training_labels = 3) {
  folder.write_gz("train-images-idx3-ubyte.gz", idx_bytes({3, 1, 2}));
  folder.write("train-labels-idx1-ubyte", idx_bytes({training_labels}));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({2, 1, 2}, 100));
  folder.write("t10k-labels-idx1-ubyte", idx_bytes({2}, 3));
}

TEST(Source, ReadsAFolderOfIdxFiles) {
  const Folder folder;
  write_images(folder);
  const auto data = std::get<ImageData>(read_data(folder.path()));
  EXPECT_EQ(data.rows, 1);
  EXPECT_EQ(data.columns, 2);
  EXPECT_EQ(data.classes, 5);
  EXPECT_EQ(data.train.count, 3);
  EXPECT_THAT(data.train.pixels, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(data.held_out.pixels, ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(data.held_out.labels, ElementsAre(3, 4));
  EXPECT_NEAR(data.mean, 2.5 / 255, 1e-15);
  EXPECT_NEAR(data.deviation, std::sqrt(35.0 / 12) / 255, 1e-15);
}

TEST(Source, CountsThatDisagreeAreNamed) {
  const Folder folder;
  write_images(folder, 4);
  EXPECT_THAT(error_of(folder.path()),
              AllOf(HasSubstr("train-images-idx3-ubyte.gz holds 3 images"), HasSubstr("4 labels")));
}

TEST(Source, AMissingFileIsNamed) {
  const Folder folder;
  EXPECT_THAT(error_of(folder.path()), HasSubstr("no train-images-idx3-ubyte"));
  EXPECT_THAT(error_of(folder.file("nothing")), HasSubstr("nothing\": neither fashion-mnist"));
}

TEST(Source, AnyOtherFileIsText) {
  const Folder folder;
  const auto data = std::get<TextData>(read_data(folder.write("text", {'b', 'a', 'b'})));
  EXPECT_EQ(data.vocabulary, "ab");
  EXPECT_THAT(error_of(folder.write("empty", {})), HasSubstr("empty: is empty"));
}

TEST(Source, FashionMnistNamesThePackageWhereItIsMissing) {
  const Folder folder;
  setenv("HYBRIDSYNC_DATA", folder.file("nowhere").c_str(), 1);
  const std::string error = error_of("fashion-mnist");
  unsetenv("HYBRIDSYNC_DATA");
  EXPECT_THAT(error,
              AllOf(HasSubstr("nowhere"), HasSubstr("apt-get install dataset-fashion-mnist")));
}

TEST(Source, FashionMnist) {
  const auto data = std::get<ImageData>(read_data("fashion-mnist"));
  EXPECT_EQ(data.train.count, 60000);
  EXPECT_EQ(data.held_out.count, 10000);
  EXPECT_EQ(data.rows, 28);
  EXPECT_EQ(data.columns, 28);
  EXPECT_EQ(data.classes, 10);
  EXPECT_NEAR(data.mean, 0.2860, 1e-4);  // as published for this data
  EXPECT_NEAR(data.deviation, 0.3530, 1e-4);
}

TEST(Source, Bible) {
  const auto data = std::get<TextData>(read_data("bible"));
  EXPECT_GT(data.train.size(), 3'900'000u);
  std::string start;
  for (size_t i = 6; i < 28; ++i) start += data.vocabulary[data.train[i]];
  EXPECT_EQ(start, "In the beginning God c");
}

}  // namespace
}  // namespace hybridsync
