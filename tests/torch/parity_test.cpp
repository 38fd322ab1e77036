// The whole against one process that runs the same micro-batches, and runs against themselves.
#include <mutex>

#include "hybridsync/torch/gradient_views.h"
#include "tests/torch/ranks.h"

namespace hybridsync {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

struct Net : nn::Module {
  explicit Net(torch::ScalarType type)
      : conv(register_module("conv", nn::Conv2d(1, 4, 3))),
        bn(register_module("bn", nn::BatchNorm2d(4))),
        hidden(register_module("hidden", nn::Linear(4 * 16, 20))),
        out(register_module("out", nn::Linear(20, 5))) {
    to(type);
    torch::NoGradGuard no_grad;
    int64_t k = 0;
    for (Tensor& p : parameters())
      p.copy_(torch::sin(torch::arange(k, k + p.numel(), type) * 1.7).view(p.sizes()) * 0.2),
          k += p.numel();
  }
  Tensor loss(const Tensor& x, const Tensor& y) {
    const Tensor h = torch::relu(bn(conv(x))).flatten(1);
    return nn::functional::cross_entropy(out(torch::relu(hidden(h))), y);
  }
  nn::Conv2d conv;
  nn::BatchNorm2d bn;
  nn::Linear hidden, out;
};

// Micro-batch `i` of step `step`: sizes differ.
struct Batch {
  Tensor x, y;
};
Batch micro_batch(int step, int i, torch::ScalarType type) {
  const int64_t n = 2 + (step * 7 + i * 3) % 5;
  const Tensor seed = torch::arange(n * 36, torch::kDouble) + 1000.0 * step + 77.0 * i;
  return {torch::cos(seed * 0.37).view({n, 1, 6, 6}).to(type) + 0.1 * i,
          (torch::arange(n) + step + i) % 5};
}

struct Trained {
  std::vector<std::vector<double>> tensors;
  std::vector<double> losses;
};

Trained trained(Net& net) {
  Trained t;
  for (const Tensor& p : net.parameters()) t.tensors.push_back(numbers(p));
  for (const Tensor& b : net.buffers()) t.tensors.push_back(numbers(b));
  return t;
}

// `ranks` x `nodes` ranks and `accumulate` micro-steps; 16 micro-batches per step in all.
std::vector<Trained> train(const Config& config, int steps, torch::ScalarType type) {
  std::vector<Trained> all(static_cast<size_t>(config.ranks()));
  const int ranks = config.ranks();
  run_all(config, [&](const Environment& e) {
    Net net(type);
    torch::optim::SGD opt(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    Trainer sync(net, opt, config, e);
    std::vector<double> losses;
    sync.on_step([&](const StepRecord& r) {
      if (r.step <= static_cast<int64_t>(losses.size())) return;  // a round of finish()
      losses.push_back(std::isnan(r.global_loss) ? r.loss : r.global_loss);
    });
    for (int step = 0; step < steps; ++step)
      for (int64_t i = 0; i < config.accumulate.steps; ++i) {
        const Batch b = micro_batch(step, static_cast<int>(i) * ranks + e.rank, type);
        sync.backward(net.loss(b.x, b.y), double(b.x.size(0)));
        (void)sync.step();
      }
    sync.finish();
    Trained t = trained(net);
    t.losses = losses;
    all[static_cast<size_t>(e.rank)] = t;
  });
  return all;
}

void expect_close(const Trained& a, const Trained& b, double tolerance) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i)
    for (size_t k = 0; k < a.tensors[i].size(); ++k)
      ASSERT_NEAR(a.tensors[i][k], b.tensors[i][k], tolerance)
          << "tensor " << i << " element " << k;
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i) ASSERT_NEAR(a.losses[i], b.losses[i], tolerance);
}

TEST(Parity, TwentyStepsInDoubleEqualOneProcess) {
  const auto one = train(small_run(1, 1, 16), 20, torch::kDouble);
  for (const Trained& rank : train(small_run(2, 2, 4), 20, torch::kDouble))
    expect_close(rank, one[0], 1e-10);
}

TEST(Parity, OneStepInSingleEqualsOneProcess) {
  const auto one = train(small_run(1, 1, 16), 1, torch::kFloat);
  for (const Trained& rank : train(small_run(2, 2, 4), 1, torch::kFloat))
    expect_close(rank, one[0], 1e-6);
}

TEST(Parity, OtherShapesOfTheSameRun) {
  const auto one = train(small_run(1, 1, 16), 3, torch::kDouble);
  for (const Config& config :
       {small_run(4, 1, 4), small_run(1, 4, 4), small_run(2, 1, 8), small_run(1, 2, 8)})
    for (const Trained& rank : train(config, 3, torch::kDouble)) expect_close(rank, one[0], 1e-10);
}

// The same arithmetic as one process, in plain torch without a Trainer.
TEST(Parity, OneProcessEqualsPlainTorch) {
  Net net(torch::kDouble);
  torch::optim::SGD opt(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 5; ++step) {
    opt.zero_grad();
    double n = 0;
    for (int i = 0; i < 4; ++i) n += double(micro_batch(step, i, torch::kDouble).x.size(0));
    for (int i = 0; i < 4; ++i) {
      const Batch b = micro_batch(step, i, torch::kDouble);
      (net.loss(b.x, b.y) * (double(b.x.size(0)) / n)).backward();
    }
    opt.step();
  }
  const auto ours = train(small_run(1, 1, 4), 5, torch::kDouble);
  const auto parameters = net.parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    expect_near(parameters[i], ours[0].tensors[i], 1e-13);
}

TEST(Parity, TwoRunsAndOverlapOnOrOffGiveTheSameBits) {
  Config on = small_run(2, 2, 4, Strategy::periodic, 3);
  Config off = on;
  off.tiers[0].overlap = Overlap::off;
  const auto first = train(on, 7, torch::kFloat);
  const auto again = train(on, 7, torch::kFloat);
  const auto without = train(off, 7, torch::kFloat);
  for (size_t r = 0; r < first.size(); ++r) {
    EXPECT_EQ(first[r].tensors, first[0].tensors);
    EXPECT_EQ(first[r].tensors, again[r].tensors);
    EXPECT_EQ(first[r].tensors, without[r].tensors);
  }
}

TEST(Parity, OneMemberTrainsAsIfAloneWhateverItsStrategy) {
  const auto alone = train(small_run(1, 1, 4), 9, torch::kDouble);
  const auto periodic = train(small_run(1, 1, 4, Strategy::periodic, 3), 9, torch::kDouble);
  ASSERT_EQ(alone[0].tensors.size(), periodic[0].tensors.size());
  for (size_t i = 0; i < alone[0].tensors.size(); ++i)
    for (size_t k = 0; k < alone[0].tensors[i].size(); ++k)
      EXPECT_NEAR(alone[0].tensors[i][k], periodic[0].tensors[i][k], 1e-13);
}

// next_window: the first micro-step of a window sees the parameters from before the last window's
// step.
TEST(Parity, NextWindowEqualsItsTwin) {
  for (int64_t accumulate : {1, 3}) {
    Net net(torch::kDouble);
    torch::optim::SGD opt(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::vector<Tensor> pending;
    const auto apply = [&] {
      if (pending.empty()) return;
      const auto parameters = net.parameters();
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = pending[i];
      opt.step();
      pending.clear();
    };
    for (int step = 0; step < 6; ++step) {
      std::vector<Tensor> sum;
      double n = 0;
      for (int64_t i = 0; i < accumulate; ++i) {
        const Batch b = micro_batch(step, int(i), torch::kDouble);
        const auto g = torch::autograd::grad({net.loss(b.x, b.y)}, net.parameters());
        const double w = double(b.x.size(0));
        n += w;
        for (size_t k = 0; k < g.size(); ++k) {
          if (i == 0)
            sum.push_back(g[k] * w);
          else
            sum[k] = sum[k] + g[k] * w;
        }
        if (i == 0) apply();
      }
      for (Tensor& g : sum) g = g / n;
      pending = sum;
    }
    apply();
    Config config = small_run(1, 1, accumulate);
    TierConfig node;
    node.overlap = Overlap::next_window;
    config.tiers = {node};
    const auto ours = train(config, 6, torch::kDouble);
    const auto parameters = net.parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      expect_near(parameters[i], ours[0].tensors[i], 1e-12);
    EXPECT_EQ(ours[0].losses.size(), 6u);
  }
}

TEST(Parity, NextWindowGivesTheSameBitsOnAllRanks) {
  Config config = small_run(2, 2, 2, Strategy::periodic, 2);
  config.tiers[0].overlap = Overlap::next_window;
  const auto all = train(config, 6, torch::kFloat);
  const auto again = train(config, 6, torch::kFloat);
  for (size_t r = 0; r < all.size(); ++r) {
    EXPECT_EQ(all[r].tensors, all[0].tensors);
    EXPECT_EQ(all[r].tensors, again[r].tensors);
  }
}

TEST(Parity, StartSynchronouslyEqualsSynchronousUntilThen) {
  Config start = small_run(2, 2, 4, Strategy::periodic, 4);
  start.start.every_step = 5;
  const auto synchronous = train(small_run(2, 2, 4), 5, torch::kDouble);
  const auto hybrid = train(start, 5, torch::kDouble);
  for (size_t r = 0; r < hybrid.size(); ++r) expect_close(hybrid[r], synchronous[r], 1e-12);
}

TEST(Parity, OuterRateZeroKeepsTheStart) {
  Config config = small_run(1, 2, 1, Strategy::periodic, 2);
  config.tiers[1].outer.lr = 0;
  Net fresh(torch::kFloat);
  const auto all = train(config, 4, torch::kFloat);
  const auto parameters = fresh.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) expect_near(parameters[i], all[0].tensors[i], 0);
}

// What a GPU's gradients go through, exercised on the CPU: accumulate apart, copy to shared memory,
// copy back.
TEST(GradientViews, StagingMovesTheSameNumbers) {
  Net net(torch::kFloat);
  Parameters parameters(net, 256);
  std::vector<float> memory(static_cast<size_t>(parameters.layout().count_f32));
  const Gradients shared{std::span<float>(memory), std::span<double>()};
  GradientViews views(parameters, {shared}, true);
  views.zero(0);
  std::vector<int> left;
  views.attach(0, 1, false, [&](int bucket) { left.push_back(bucket); });
  const Batch b = micro_batch(0, 0, torch::kFloat);
  const auto expected = torch::autograd::grad({net.loss(b.x, b.y)}, net.parameters());
  net.loss(b.x, b.y).backward();
  views.detach();
  EXPECT_EQ(left.size(), net.parameters().size());
  views.leave(0);
  for (float& g : memory) g *= 2;  // the reduction
  views.expose(0, views.used(0));
  for (size_t i = 0; i < expected.size(); ++i)
    expect_near(net.parameters()[i].grad(), numbers(expected[i] * 2), 1e-6);
}

}  // namespace
}  // namespace hybridsync
