// Anonymous shared memory: created once as a memfd, mapped once per process, however many ranks of
// the node live in that process as threads.
#pragma once

#include <cstddef>
#include <memory>

#include "hybridsync/wire/file_descriptor.h"

namespace hybridsync {

class Mapping {
 public:
  // Zeroed, of a size that nobody can change any more. Throws std::system_error.
  static FileDescriptor create(size_t bytes);

  // All of it. Two opens of one memfd in one process give the same addresses. Any thread.
  static std::shared_ptr<Mapping> open(const FileDescriptor& memfd);

  Mapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

}  // namespace hybridsync
