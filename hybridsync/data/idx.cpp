#include "hybridsync/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr size_t kChunkBytes = 1 << 20;  // memory follows the file, not what its header claims

class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw ConfigError("cannot open " + path + ": " + std::strerror(errno));
    gzbuffer(file_.get(), 1 << 17);
  }

  // Bytes read: fewer than asked for only at the file's end.
  size_t read(std::span<uint8_t> into) {
    const int n = gzread(file_.get(), into.data(), static_cast<unsigned>(into.size()));
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) throw ConfigError(path_ + ": the compressed file is cut short");
    if (n < 0) {
      throw ConfigError(path_ + ": " + (code == Z_ERRNO ? std::strerror(errno) : message));
    }
    return static_cast<size_t>(n);
  }

  void read_exactly(std::span<uint8_t> into, const char* what) {
    if (read(into) != into.size()) throw ConfigError(path_ + ": ends inside its " + what);
  }

 private:
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

void check_magic(std::span<const uint8_t> magic, const std::string& path) {
  if (magic[0] == 0 && magic[1] == 0 && magic[2] == kUnsignedByte && magic[3] > 0) return;
  std::string found;
  for (uint8_t byte : magic) {
    found += "0123456789abcdef"[byte >> 4];
    found += "0123456789abcdef"[byte & 15];
  }
  throw ConfigError(path + ": not an IDX file of unsigned bytes: it starts with " + found +
                    ", not with 000008 and its number of dimensions");
}

std::vector<int64_t> read_shape(GzipFile& file, int dimensions) {
  std::vector<int64_t> shape;
  for (int i = 0; i < dimensions; ++i) {
    uint8_t b[4];
    file.read_exactly(b, "header");
    shape.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | b[3]);
  }
  return shape;
}

size_t product(const std::vector<int64_t>& shape, const std::string& path) {
  size_t n = 1;
  for (int64_t size : shape) {
    const auto factor = static_cast<size_t>(size);
    if (factor != 0 && n > std::numeric_limits<size_t>::max() / factor) {
      throw ConfigError(path + ": its header asks for more bytes than there can be");
    }
    n *= factor;
  }
  return n;
}

std::vector<uint8_t> read_body(GzipFile& file, size_t count, const std::string& path) {
  std::vector<uint8_t> bytes;
  while (bytes.size() < count) {
    const size_t before = bytes.size();
    bytes.resize(std::min(count, before + kChunkBytes));
    const size_t wanted = bytes.size() - before;
    const size_t read = file.read(std::span(bytes).subspan(before));
    if (read < wanted) {
      throw ConfigError(path + ": truncated: " + std::to_string(before + read) + " of the " +
                        std::to_string(count) + " bytes that its header announces");
    }
  }
  return bytes;
}

}  // namespace

IdxArray read_idx(const std::string& path) {
  GzipFile file(path);
  uint8_t magic[4];
  file.read_exactly(magic, "header");
  check_magic(magic, path);
  IdxArray array;
  array.shape = read_shape(file, magic[3]);
  array.bytes = read_body(file, product(array.shape, path), path);
  uint8_t beyond;
  if (file.read({&beyond, 1}) != 0) {
    throw ConfigError(path + ": holds more than the " + std::to_string(array.bytes.size()) +
                      " bytes that its header announces");
  }
  return array;
}

}  // namespace hybridsync
