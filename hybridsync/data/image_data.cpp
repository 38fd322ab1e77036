#include "hybridsync/data/image_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "hybridsync/config/error.h"
#include "hybridsync/data/idx.h"

namespace hybridsync {
namespace {

std::string find(const std::string& folder, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    const auto path = std::filesystem::path(folder) / (name + ending);
    if (std::filesystem::exists(path)) return path.string();
  }
  throw ConfigError("no " + name + " or " + name + ".gz in " + folder);
}

IdxArray read_shaped(const std::string& path, size_t dimensions) {
  IdxArray array = read_idx(path);
  if (array.shape.size() != dimensions) {
    throw ConfigError(path + ": has " + std::to_string(array.shape.size()) + " dimensions, not " +
                      std::to_string(dimensions));
  }
  if (array.bytes.empty()) throw ConfigError(path + ": is empty");
  return array;
}

struct Part {
  IdxArray images;
  IdxArray labels;
  std::string images_path;
};

Part read_part(const std::string& folder, const std::string& prefix) {
  const std::string images_path = find(folder, prefix + "-images-idx3-ubyte");
  const std::string labels_path = find(folder, prefix + "-labels-idx1-ubyte");
  Part part{read_shaped(images_path, 3), read_shaped(labels_path, 1), images_path};
  if (part.images.shape[0] != part.labels.shape[0]) {
    throw ConfigError(images_path + " holds " + std::to_string(part.images.shape[0]) +
                      " images, but " + labels_path + " " + std::to_string(part.labels.shape[0]) +
                      " labels");
  }
  return part;
}

ImageSet to_set(Part&& part) {
  return {part.images.shape[0], std::move(part.images.bytes), std::move(part.labels.bytes)};
}

// Sums of integers, so that every machine finds the same bits.
void measure(ImageData& data) {
  std::array<uint64_t, 256> histogram{};
  for (uint8_t pixel : data.train.pixels) ++histogram[pixel];
  const auto n = static_cast<double>(data.train.pixels.size());
  uint64_t sum = 0;
  uint64_t squares = 0;
  for (uint64_t value = 0; value < 256; ++value) {
    sum += value * histogram[value];
    squares += value * value * histogram[value];
  }
  const double mean = static_cast<double>(sum) / n;
  const double variance = static_cast<double>(squares) / n - mean * mean;
  data.mean = mean / 255;
  data.deviation = variance > 0 ? std::sqrt(variance) / 255 : 1.0;
}

}  // namespace

ImageData read_images(const std::string& folder) {
  Part train = read_part(folder, "train");
  Part held_out = read_part(folder, "t10k");
  ImageData data;
  data.rows = train.images.shape[1];
  data.columns = train.images.shape[2];
  if (held_out.images.shape[1] != data.rows || held_out.images.shape[2] != data.columns) {
    throw ConfigError(held_out.images_path + ": its images have another size than those of " +
                      train.images_path);
  }
  data.train = to_set(std::move(train));
  data.held_out = to_set(std::move(held_out));
  data.classes = 1 + std::max(*std::ranges::max_element(data.train.labels),
                              *std::ranges::max_element(data.held_out.labels));
  measure(data);
  return data;
}

}  // namespace hybridsync
