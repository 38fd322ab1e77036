// The smallest training program of one's own: a model, an optimizer, and hybridsync's Trainer.
//
//   own_loop                                                     one process
//   hybridsync train own_loop.toml -- ./own_loop own_loop.toml   all ranks of the configuration
#include <exception>
#include <iostream>

#include "hybridsync/torch/trainer.h"

namespace {

constexpr int64_t kBatch = 48;  // 2,000 samples: the last batch of an epoch is short
constexpr int64_t kEpochs = 16;

int train(const hybridsync::Config& config) {
  torch::set_num_threads(1);  // per rank; ranks share the cores
  torch::manual_seed(1);      // the same data on every rank: points inside and outside a ball
  const auto data = torch::randn({2000, 8});
  const auto target = (data.square().sum(1) > 7.3).to(torch::kLong);
  const auto batches = data.split(kBatch), targets = target.split(kBatch);

  namespace nn = torch::nn;
  nn::Sequential model(nn::Linear(8, 64), nn::BatchNorm1d(64), nn::ReLU(), nn::Linear(64, 2));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  hybridsync::Trainer sync(*model, optimizer, config);
  const auto& me = sync.environment();
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (size_t i = me.rank; i < batches.size(); i += me.world_size) {
      const auto loss = nn::functional::cross_entropy(model->forward(batches[i]), targets[i]);
      sync.backward(loss, batches[i].size(0));
      sync.step();  // does nothing until the window is full
    }
    sync.end_epoch();  // an incomplete window steps with the samples that it has
  }
  sync.finish();

  model->eval();
  const torch::NoGradGuard no_grad;
  const auto loss = nn::functional::cross_entropy(model->forward(data), target).item<double>();
  std::cout << "steps " << sync.steps() << "  loss " << loss << "  hash " << std::hex << sync.hash()
            << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? hybridsync::load(argv[1]) : hybridsync::Config());
  } catch (const std::exception& e) {  // ConfigError, RunEnded: the sentence says what to do
    std::cerr << "hybridsync: " << e.what() << std::endl;
    return 1;
  }
}
