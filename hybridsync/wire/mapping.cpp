// memfd, mmap, and the list of what this process has mapped.
#include "hybridsync/wire/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

namespace hybridsync {
namespace {

using Identity = std::pair<dev_t, ino_t>;

std::mutex open_mappings_mutex;
std::map<Identity, std::weak_ptr<Mapping>>& open_mappings() {
  static std::map<Identity, std::weak_ptr<Mapping>> mappings;
  return mappings;
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::shared_ptr<Mapping> map_all(const FileDescriptor& memfd, size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (data == MAP_FAILED) fail("mmap of the node's memory");
  ::madvise(data, bytes, MADV_HUGEPAGE);  // a hint: most kernels keep shared memory in small pages
  return std::make_shared<Mapping>(static_cast<std::byte*>(data), bytes);
}

}  // namespace

FileDescriptor Mapping::create(size_t bytes) {
  FileDescriptor memfd(::memfd_create("hybridsync", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) fail("memfd_create");
  if (::ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) fail("size of the node's memory");
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail("F_ADD_SEALS");
  }
  return memfd;
}

std::shared_ptr<Mapping> Mapping::open(const FileDescriptor& memfd) {
  struct stat about {};
  if (::fstat(memfd.get(), &about) != 0) fail("fstat");
  const std::lock_guard lock(open_mappings_mutex);
  std::erase_if(open_mappings(), [](const auto& entry) { return entry.second.expired(); });
  auto& known = open_mappings()[{about.st_dev, about.st_ino}];
  auto mapping = known.lock();
  if (!mapping) {
    mapping = map_all(memfd, static_cast<size_t>(about.st_size));
    known = mapping;
  }
  return mapping;
}

Mapping::~Mapping() { ::munmap(data_, bytes_); }

}  // namespace hybridsync
