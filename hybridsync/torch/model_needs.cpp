// What the program's own model and data need: see the header.
#include "hybridsync/torch/model_needs.h"

#include "hybridsync/torch/dataset.h"
#include "hybridsync/torch/models/model.h"
#include "hybridsync/torch/parameters.h"

namespace hybridsync {
namespace {

// A byte per pixel, or per character.
int64_t bytes_of(const Dataset& data) {
  const SampleShape& shape = data.shape();
  const int64_t samples = data.count(Part::train) + data.count(Part::held_out);
  return samples * (shape.text ? shape.context : shape.rows * shape.columns);
}

}  // namespace

ModelNeeds model_needs(const Config& config) {
  const auto data = make_dataset(config.train.data);
  const auto model = make_model(config.train, data->shape());
  ModelNeeds needs;
  needs.layout = Parameters(*model, config.node_tier().bucket_bytes).layout();
  for (const torch::Tensor& buffer : model->buffers())
    needs.buffer_bytes += static_cast<int64_t>(buffer.nbytes());
  needs.data_bytes = bytes_of(*data);
  return needs;
}

}  // namespace hybridsync
