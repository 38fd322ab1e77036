#include "hybridsync/launch/run_folder.h"

#include <filesystem>
#include <system_error>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_create(const std::string& folder, const std::error_code& error) {
  throw ConfigError("cannot create the run's folder '" + folder + "': " + error.message());
}

// False when it is there already.
bool create(const std::string& folder) {
  std::error_code error;
  const bool created = fs::create_directory(folder, error);
  if (error && !fs::exists(folder)) cannot_create(folder, error);
  return created;
}

}  // namespace

ClaimedFolder::ClaimedFolder(const std::string& folder, IfTaken if_taken) : path_(folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) cannot_create(folder, error);
  for (int n = 2; !create(path_); ++n) {
    if (if_taken == IfTaken::refuse) {
      throw ConfigError("the run's folder '" + folder +
                        "' is there already: choose another (--name, or record.name)");
    }
    path_ = folder + "-" + std::to_string(n);
  }
}

ClaimedFolder::~ClaimedFolder() {
  std::error_code not_empty;
  fs::remove(path_, not_empty);
}

}  // namespace hybridsync
