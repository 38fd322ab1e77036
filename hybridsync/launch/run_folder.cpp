#include "hybridsync/launch/run_folder.h"

#include <filesystem>
#include <system_error>

#include "hybridsync/config/error.h"

namespace hybridsync {

void claim_run_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw ConfigError("cannot create the run's folder '" + folder + "': " + error.message());
  if (!std::filesystem::is_empty(folder, error) || error) {
    throw ConfigError("the run's folder '" + folder +
                      "' holds something already: choose another (--name, or record.name)");
  }
}

void release_run_folder(const std::string& folder) {
  std::error_code not_empty;
  std::filesystem::remove(folder, not_empty);
}

}  // namespace hybridsync
