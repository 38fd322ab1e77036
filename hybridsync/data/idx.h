// IDX: the file format of MNIST and its relatives, an array of bytes with its shape in front.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hybridsync {

struct IdxArray {
  std::vector<int64_t> shape;  // outermost dimension first
  std::vector<uint8_t> bytes;  // row-major, as many as the shape's product
};

// Reads a file of unsigned bytes, plain or compressed by gzip. Throws ConfigError that names the
// file and what is wrong with it.
IdxArray read_idx(const std::string& path);

}  // namespace hybridsync
