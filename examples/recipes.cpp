// Recipes for a loop of one's own, one function each; the program runs them all on a toy model.
#include <csignal>
#include <iostream>

#include "hybridsync/torch/trainer.h"

namespace nn = torch::nn;
using hybridsync::Config;
using hybridsync::Trainer;

namespace {

struct Toy {
  nn::Sequential model{nn::Linear(4, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Linear(16, 3)};
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1)};
  torch::Tensor data = torch::randn({12, 4});
  torch::Tensor target = torch::randint(3, {12});

  torch::Tensor loss() { return nn::functional::cross_entropy(model->forward(data), target); }
};

// Micro-batches of any size: each counts by its samples.
void unequal_micro_batches() {
  Toy toy;
  Config config;
  config.accumulate.steps = 3;
  Trainer sync(*toy.model, toy.optimizer, config);
  for (const auto& [data, target] :
       {std::pair{toy.data.narrow(0, 0, 7), toy.target.narrow(0, 0, 7)},
        std::pair{toy.data.narrow(0, 7, 5), toy.target.narrow(0, 7, 5)}}) {
    const auto loss = nn::functional::cross_entropy(toy.model->forward(data), target);
    sync.backward(loss, data.size(0));
    sync.step();
  }
  sync.empty();  // this rank has no third micro-batch: weight zero
  sync.step();
  TORCH_CHECK(sync.steps() == 1 && sync.samples() == 12);
}

// A language model's loss is a mean over the tokens that count; so they are the weight.
void token_weights() {
  Toy toy;
  Trainer sync(*toy.model, toy.optimizer, Config());
  const auto mask = torch::arange(12) < 9;  // padding does not count
  const auto tokens = mask.sum().item<double>();
  const auto each = nn::functional::cross_entropy(
      toy.model->forward(toy.data), toy.target,
      nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  const auto loss = (each * mask).sum() / tokens;
  sync.backward(loss, tokens);  // 0 tokens are empty(): the loss is not even looked at
  sync.step();
  TORCH_CHECK(sync.samples() == 9);
}

// Half precision: the loss is scaled up, hybridsync takes the scale out again. A window whose
// gradient is not finite is skipped on all ranks of the node, and the scale goes down.
void loss_scale() {
  Toy toy;
  Trainer sync(*toy.model, toy.optimizer, Config());
  double scale = 65536;
  const auto loss = toy.loss();
  sync.backward(loss * scale, 12, scale);
  if (const auto record = sync.step()) scale *= record->skipped ? 0.5 : 1;
  TORCH_CHECK(scale == 65536);
}

// One norm over the whole gradient, after the reduction and the same on all ranks.
void clipping() {
  Toy toy;
  Config config;
  config.train.clip = 0.5;
  Trainer sync(*toy.model, toy.optimizer, config);
  sync.on_step([](const hybridsync::StepRecord& r) { TORCH_CHECK(r.grad_norm > 0.5); });
  sync.backward(toy.loss() * 100, 12);
  sync.step();
}

// Your own evaluation, without making the run look slow.
void evaluation() {
  Toy toy;
  Trainer sync(*toy.model, toy.optimizer, Config());
  const auto start = std::chrono::steady_clock::now();
  toy.model->eval();
  toy.loss();
  toy.model->train();
  const auto end = std::chrono::steady_clock::now();
  sync.exclude(std::chrono::duration<double>(end - start).count());
}

// Waits speak, and Ctrl-C ends them.
Trainer* running = nullptr;
void waits_and_signals() {
  Toy toy;
  Trainer sync(*toy.model, toy.optimizer, Config());
  sync.on_wait([](const std::string& sentence) { std::cerr << sentence << "\n"; });
  running = &sync;
  std::signal(SIGINT, [](int) { running->interrupt(); });
  std::raise(SIGINT);
  sync.backward(toy.loss(), 12);
  try {
    sync.step();
  } catch (const hybridsync::Interrupted& e) {
    std::cout << e.what() << "\n";  // save what you need here
  }
  std::signal(SIGINT, SIG_DFL);
}

// What a step cost, and what the run has sent so far.
void records() {
  Toy toy;
  Trainer sync(*toy.model, toy.optimizer, Config());
  sync.on_step([](const hybridsync::StepRecord& r) {
    std::cout << "step " << r.step << "  K " << r.interval << "  " << r.mode << "  lr " << r.lr
              << "\n";
  });
  sync.backward(toy.loss(), 12);
  sync.step();
  sync.finish();
  const auto totals = sync.totals();
  std::cout << totals.rounds << " rounds, " << totals.bytes_sent_slow << " bytes between nodes\n";
}

}  // namespace

int main() {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  unequal_micro_batches();
  token_weights();
  loss_scale();
  clipping();
  evaluation();
  waits_and_signals();
  records();
}
