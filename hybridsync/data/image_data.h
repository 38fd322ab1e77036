// Labelled grey images in bytes, with a training and a held-out part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hybridsync {

struct ImageSet {
  int64_t count = 0;
  std::vector<uint8_t> pixels;  // count x rows x columns
  std::vector<uint8_t> labels;  // count
};

struct ImageData {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t classes = 0;   // largest label + 1
  double mean = 0;       // of the training pixels, with 0..255 taken as 0..1
  double deviation = 1;  // their standard deviation; 1 where all are equal
  ImageSet train;
  ImageSet held_out;
};

// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] of a folder. Throws ConfigError that
// names the file and what is wrong with it.
ImageData read_images(const std::string& folder);

}  // namespace hybridsync
