#include "hybridsync/data/idx.h"

#include <gmock/gmock.h>

#include "hybridsync/config/error.h"
#include "tests/data/files.h"

namespace hybridsync {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& path) {
  try {
    read_idx(path);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Idx, ReadsPlainAndCompressedFilesAlike) {
  const Folder folder;
  const auto bytes = idx_bytes({2, 3}, 250);
  for (const auto& path : {folder.write("plain", bytes), folder.write_gz("packed.gz", bytes)}) {
    const IdxArray array = read_idx(path);
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_THAT(array.bytes, ElementsAre(250, 251, 252, 253, 254, 255));
  }
}

TEST(Idx, NamesTheFileAndWhatIsWrong) {
  const Folder folder;
  const auto good = idx_bytes({2, 3});
  auto bad_magic = good;
  bad_magic[2] = 0x0d;
  auto truncated = good;
  truncated.pop_back();
  auto longer = good;
  longer.push_back(0);
  const std::vector<uint8_t> huge(12, 0xff);
  std::vector<uint8_t> claims = {0, 0, 8, 3};
  claims.insert(claims.end(), huge.begin(), huge.end());
  const std::vector<uint8_t> headless(good.begin(), good.begin() + 9);

  EXPECT_THAT(error_of(folder.file("none")), HasSubstr("none: No such file"));
  EXPECT_THAT(error_of(folder.write("magic", bad_magic)), HasSubstr("starts with 00000d02"));
  EXPECT_THAT(error_of(folder.write("short", truncated)), HasSubstr("truncated: 5 of the 6"));
  EXPECT_THAT(error_of(folder.write("long", longer)), HasSubstr("more than the 6 bytes"));
  EXPECT_THAT(error_of(folder.write("huge", claims)), HasSubstr("more bytes than there can be"));
  EXPECT_THAT(error_of(folder.write("head", headless)), HasSubstr("head: ends inside its header"));
}

TEST(Idx, NoticesADamagedCompressedFile) {
  const Folder folder;
  const std::string path = folder.write_gz("cut.gz", idx_bytes({200, 200}));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THAT(error_of(path), HasSubstr("cut.gz: the compressed file is cut short"));

  const std::string broken = folder.write_gz("broken.gz", idx_bytes({200, 200}));
  std::fstream file(broken, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(30);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(0xa5));
  file.close();
  EXPECT_THAT(error_of(broken), HasSubstr("broken.gz: "));
}

}  // namespace
}  // namespace hybridsync
