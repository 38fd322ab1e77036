#include "hybridsync/torch/models/model.h"

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

void need(bool fits, const TrainConfig& config, const char* wanted) {
  if (fits) return;
  throw ConfigError("train.model = \"" + config.model + "\" needs " + wanted +
                    ", but train.data = \"" + config.data + "\" is not");
}

}  // namespace

std::shared_ptr<Model> make_model(const TrainConfig& config, const SampleShape& shape) {
  torch::manual_seed(config.seed);
  if (config.model == "cnn") {
    need(!shape.text && shape.rows >= 4 && shape.columns >= 4, config, "images of 4 x 4 or more");
    return make_cnn(shape);
  }
  if (config.model == "char-gpt") {
    need(shape.text, config, "a text");
    return make_char_gpt(shape);
  }
  throw ConfigError("train.model = \"" + config.model + "\": there are cnn and char-gpt");
}

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& target) {
  return torch::nn::functional::cross_entropy(logits.flatten(0, -2), target.flatten());
}

double accuracy(const torch::Tensor& logits, const torch::Tensor& target) {
  return logits.argmax(-1).eq(target).to(torch::kFloat64).mean().item<double>();
}

}  // namespace hybridsync
