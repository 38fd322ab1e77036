// Two convolutions with batch norm and two linear layers, for images of 28 x 28.
#include "hybridsync/torch/models/model.h"

namespace hybridsync {
namespace {

namespace nn = torch::nn;

nn::Sequential block(int64_t in, int64_t out) {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false)),
                        nn::BatchNorm2d(out), nn::ReLU(nn::ReLUOptions(true)), nn::MaxPool2d(2));
}

class Cnn final : public Model {
 public:
  explicit Cnn(const SampleShape& shape)
      : block1_(register_module("block1", block(1, 16))),
        block2_(register_module("block2", block(16, 32))),
        hidden_(register_module("hidden",
                                nn::Linear(32 * (shape.rows / 4) * (shape.columns / 4), 128))),
        output_(register_module("output", nn::Linear(128, shape.classes))) {}

  torch::Tensor forward(const torch::Tensor& data) override {
    const torch::Tensor features = block2_->forward(block1_->forward(data));
    return output_(hidden_(features.flatten(1)).relu_());
  }

 private:
  nn::Sequential block1_;
  nn::Sequential block2_;
  nn::Linear hidden_;
  nn::Linear output_;
};

}  // namespace

std::shared_ptr<Model> make_cnn(const SampleShape& shape) { return std::make_shared<Cnn>(shape); }

}  // namespace hybridsync
