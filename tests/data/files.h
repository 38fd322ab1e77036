// Small files of a test's own, gone with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hybridsync {

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "hybridsync_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    std::ofstream(file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    return file(name);
  }
  std::string write_gz(const std::string& name, const std::vector<uint8_t>& bytes) const {
    gzFile f = gzopen(file(name).c_str(), "wb");
    gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(f);
    return file(name);
  }

 private:
  std::string path_;
};

// An IDX file of sizes below 256 whose bytes count up from `first`.
inline std::vector<uint8_t> idx_bytes(const std::vector<uint8_t>& shape, uint8_t first = 0) {
  std::vector<uint8_t> bytes = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  size_t count = 1;
  for (uint8_t size : shape) {
    bytes.insert(bytes.end(), {0, 0, 0, size});
    count *= size;
  }
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(first + i));
  return bytes;
}

}  // namespace hybridsync
