// The program's own models: seeded, small enough for a laptop, trained by cross entropy.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "hybridsync/config/config.h"
#include "hybridsync/torch/dataset.h"

namespace hybridsync {

// A network that scores each class: logits [..., classes] for a Batch's data.
class Model : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& data) = 0;
};

// train.model for data of this shape, on the CPU, with initial weights that depend on train.seed
// alone (sets torch's seed). Throws ConfigError on an unknown model or one that does not fit the
// data.
std::shared_ptr<Model> make_model(const TrainConfig& config, const SampleShape& shape);

// conv3x3(16)-bn-relu-pool, conv3x3(32)-bn-relu-pool, fc(128)-relu-fc: 206,970 parameters for 28 x
// 28 and 10 classes.
std::shared_ptr<Model> make_cnn(const SampleShape& shape);

// A pre-norm transformer that predicts the next character: 4 layers, 4 heads, width 64, learned
// positions, GELU, output tied to the embedding; about 209,000 parameters.
std::shared_ptr<Model> make_char_gpt(const SampleShape& shape);

// Mean over all targets of a batch, and the fraction of targets with the highest score.
torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& target);
double accuracy(const torch::Tensor& logits, const torch::Tensor& target);

}  // namespace hybridsync
