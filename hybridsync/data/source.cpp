#include "hybridsync/data/source.h"

#include <cstdlib>
#include <filesystem>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

std::string fashion_mnist_folder() {
  const char* chosen = std::getenv("HYBRIDSYNC_DATA");
  const std::string folder = chosen ? chosen : kFashionMnist;
  if (!std::filesystem::is_directory(folder)) {
    throw ConfigError("train.data = \"fashion-mnist\": there is no folder " + folder +
                      (chosen ? " ($HYBRIDSYNC_DATA)" : "") +
                      ": apt-get install dataset-fashion-mnist");
  }
  return folder;
}

}  // namespace

Data read_data(const std::string& name) {
  if (name == "fashion-mnist") return read_images(fashion_mnist_folder());
  if (name == "bible") return read_bible();
  if (std::filesystem::is_directory(name)) return read_images(name);
  if (std::filesystem::exists(name)) return read_text(name);
  throw ConfigError("train.data = \"" + name +
                    "\": neither fashion-mnist or bible nor a folder or file that exists");
}

}  // namespace hybridsync
