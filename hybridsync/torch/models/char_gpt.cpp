// A small transformer that predicts the next character.
#include <cmath>
#include <string>
#include <vector>

#include "hybridsync/torch/models/model.h"

namespace hybridsync {
namespace {

namespace nn = torch::nn;

constexpr int64_t kLayers = 4;
constexpr int64_t kHeads = 4;
constexpr int64_t kWidth = 64;
constexpr double kInitialDeviation = 0.02;  // of GPT-2

class Layer final : public nn::Module {
 public:
  Layer()
      : norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        qkv_(register_module("qkv", nn::Linear(kWidth, 3 * kWidth))),
        merge_(register_module("merge", nn::Linear(kWidth, kWidth))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        up_(register_module("up", nn::Linear(kWidth, 4 * kWidth))),
        down_(register_module("down", nn::Linear(4 * kWidth, kWidth))) {}

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor x = input + attend(norm1_(input));
    return x + down_(torch::gelu(up_(norm2_(x))));
  }

  // What adds to the residual stream starts smaller, so that the stream's variance does not depend
  // on the number of layers.
  void initialise() {
    for (auto& linear : {qkv_, merge_, up_, down_}) {
      nn::init::normal_(linear->weight, 0, kInitialDeviation);
      nn::init::zeros_(linear->bias);
    }
    const torch::NoGradGuard no_grad;
    for (auto& linear : {merge_, down_}) linear->weight.div_(std::sqrt(2.0 * kLayers));
  }

 private:
  torch::Tensor attend(const torch::Tensor& x) {
    const auto batch = x.size(0);
    const auto length = x.size(1);
    const auto heads = qkv_(x)
                           .view({batch, length, 3, kHeads, kWidth / kHeads})
                           .permute({2, 0, 3, 1, 4})
                           .unbind(0);
    const torch::Tensor mixed = torch::scaled_dot_product_attention(
        heads[0], heads[1], heads[2], /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    return merge_(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
  }

  nn::LayerNorm norm1_;
  nn::Linear qkv_;
  nn::Linear merge_;
  nn::LayerNorm norm2_;
  nn::Linear up_;
  nn::Linear down_;
};

class CharGpt final : public Model {
 public:
  explicit CharGpt(const SampleShape& shape)
      : tokens_(register_module("tokens", nn::Embedding(shape.classes, kWidth))),
        positions_(register_module("positions", nn::Embedding(shape.context, kWidth))),
        norm_(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})))) {
    for (int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>()));
      layers_.back()->initialise();
    }
    nn::init::normal_(tokens_->weight, 0, kInitialDeviation);
    nn::init::normal_(positions_->weight, 0, kInitialDeviation);
  }

  torch::Tensor forward(const torch::Tensor& data) override {
    torch::Tensor x = tokens_(data) + positions_->weight.narrow(0, 0, data.size(1));
    for (auto& layer : layers_) x = layer->forward(x);
    return torch::linear(norm_(x), tokens_->weight);
  }

 private:
  nn::Embedding tokens_;
  nn::Embedding positions_;
  nn::LayerNorm norm_;
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace

std::shared_ptr<Model> make_char_gpt(const SampleShape& shape) {
  return std::make_shared<CharGpt>(shape);
}

}  // namespace hybridsync
