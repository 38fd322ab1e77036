// Samples as tensors: bytes in memory, floats only for the micro-batch at hand.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hybridsync {

struct Batch {
  torch::Tensor data;  // images: float [n, 1, rows, columns], normalised; text: int64 [n, context]
  torch::Tensor target;  // int64: labels [n]; the next characters [n, context]
};

enum class Part { train, held_out };

// What a model must fit.
struct SampleShape {
  bool text = false;
  int64_t classes = 0;  // of labels, or different characters
  int64_t rows = 0;     // images
  int64_t columns = 0;
  int64_t context = 0;  // text: characters that are predicted at once
};

// Reading is thread-safe; a Dataset never changes.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const SampleShape& shape() const = 0;
  virtual int64_t count(Part part) const = 0;
  // Each of `samples` in [0, count(part)).
  virtual Batch batch(Part part, std::span<const int64_t> samples) const = 0;
};

// train.data as tensors. Images are normalised by mean and deviation of the training part; a sample
// of a text is a window of 64 characters. Throws ConfigError.
std::unique_ptr<Dataset> make_dataset(const std::string& name);

}  // namespace hybridsync
