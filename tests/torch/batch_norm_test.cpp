// Batch-norm running statistics: exactly those of the window, once, on every rank.
#include "tests/torch/ranks.h"

namespace hybridsync {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

struct Net : nn::Module {
  explicit Net(nn::BatchNorm2dOptions options = nn::BatchNorm2dOptions(3))
      : conv(register_module("conv", nn::Conv2d(2, 3, 3))),
        bn(register_module("bn", nn::BatchNorm2d(options))) {
    to(torch::kDouble);
    torch::NoGradGuard no_grad;
    for (Tensor& p : parameters())
      p.copy_(torch::linspace(-1, 1, p.numel(), torch::kDouble).view(p.sizes()));
  }
  Tensor forward(const Tensor& x) { return bn(conv(x)).pow(2).mean() + bn->weight.sum(); }
  nn::Conv2d conv;
  nn::BatchNorm2d bn;
};

Tensor images(int64_t n, int seed = 1) {
  torch::manual_seed(seed);
  return torch::randn({n, 2, 5, 5}, torch::kDouble) +
         torch::arange(n, torch::kDouble).view({n, 1, 1, 1});
}

// What one batch of everything makes of the running statistics, in plain torch.
struct Reference {
  std::vector<double> mean, var;
  int64_t tracked;
};
Reference plain(const std::vector<Tensor>& batches,
                nn::BatchNorm2dOptions options = nn::BatchNorm2dOptions(3)) {
  Net net(options);
  for (const Tensor& x : batches) (void)net.forward(x);
  return {numbers(net.bn->running_mean), numbers(net.bn->running_var),
          net.bn->num_batches_tracked.item<int64_t>()};
}

void expect_like(const Net& net, const Reference& r, double tolerance = 1e-10) {
  expect_near(net.bn->running_mean, r.mean, tolerance);
  expect_near(net.bn->running_var, r.var, tolerance * 100);
  EXPECT_EQ(net.bn->num_batches_tracked.item<int64_t>(), r.tracked);
}

// Learning rate 0: the convolution stays, so that windows can be compared with plain batches.
torch::optim::SGD still(const nn::Module& m) { return sgd(m, 0); }

TEST(BatchNorm, FourMicroBatchesOfTwoEqualOneBatchOfEight) {
  const Tensor x = images(8);
  for (const auto& options :
       {nn::BatchNorm2dOptions(3), nn::BatchNorm2dOptions(3).momentum(std::nullopt),
        nn::BatchNorm2dOptions(3).momentum(0.3)}) {
    Net net(options);
    auto opt = still(net);
    Trainer sync(net, opt, small_run(1, 1, 4));
    for (int window = 0; window < 3; ++window)
      for (int i = 0; i < 4; ++i) {
        sync.backward(net.forward(x.narrow(0, 2 * i, 2)), 2);
        (void)sync.step();
      }
    expect_like(net, plain({x, x, x}, options));
  }
}

TEST(BatchNorm, UnevenMicroBatchesInOddShapesAndFormats) {
  const Tensor x = images(24);
  Net net;
  auto opt = still(net);
  Trainer sync(net, opt, small_run(1, 1, 4));
  int64_t at = 0;
  for (int64_t n : {10, 9, 4, 1}) {
    sync.backward(net.forward(x.narrow(0, at, n).contiguous(at::MemoryFormat::ChannelsLast)),
                  double(n));
    (void)sync.step();
    at += n;
  }
  expect_like(net, plain({x}));
}

TEST(BatchNorm, RanksAndNodesWithDifferentCountsFollowTheLawOfTotalVariance) {
  const Tensor x = images(16);
  for (int nodes : {1, 2}) {
    const Config config = small_run(2, nodes);
    const int64_t all = nodes == 1 ? 8 : 16;
    run_all(config, [&](const Environment& e) {
      Net net;
      auto opt = still(net);
      Trainer sync(net, opt, config, e);
      const int64_t at = 8 * e.node + (e.local_rank == 0 ? 0 : 2);
      const int64_t n = e.local_rank == 0 ? 2 : 6;
      sync.backward(net.forward(x.narrow(0, at, n)), double(n));
      (void)sync.step();
      expect_like(net, plain({x.narrow(0, 0, all)}));
      sync.finish();
    });
  }
}

TEST(BatchNorm, TwoForwardsBeforeOneBackwardAreTwoBatchesOfOneWindow) {
  const Tensor x = images(8);
  Net net;
  auto opt = still(net);
  Trainer sync(net, opt, small_run(1, 1));
  const Tensor loss = net.forward(x.narrow(0, 0, 3)) + net.forward(x.narrow(0, 3, 5));
  sync.backward(loss, 8);
  (void)sync.step();
  expect_like(net, plain({x}));
}

TEST(BatchNorm, InsideAWindowEvaluationSeesTheOldStatistics) {
  const Tensor x = images(8);
  Net net;
  auto opt = still(net);
  Trainer sync(net, opt, small_run(1, 1, 2));
  sync.backward(net.forward(x.narrow(0, 0, 4)), 4);
  (void)sync.step();
  expect_near(net.bn->running_mean, {0, 0, 0}, 0);
  expect_near(net.bn->running_var, {1, 1, 1}, 0);
  EXPECT_EQ(net.bn->num_batches_tracked.item<int64_t>(), 0);
}

TEST(BatchNorm, FrozenLayersAndThoseThatTrackNothingAreLeftAlone) {
  const Tensor x = images(8);
  Net frozen;
  frozen.bn->eval();
  auto opt = still(frozen);
  Trainer sync(frozen, opt, small_run(1, 1));
  sync.backward(frozen.forward(x), 8);
  (void)sync.step();
  expect_near(frozen.bn->running_mean, {0, 0, 0}, 0);
  EXPECT_EQ(frozen.bn->num_batches_tracked.item<int64_t>(), 0);

  Net untracked(nn::BatchNorm2dOptions(3).track_running_stats(false));
  auto opt2 = still(untracked);
  Trainer sync2(untracked, opt2, small_run(1, 1));
  sync2.backward(untracked.forward(x), 8);
  EXPECT_TRUE(sync2.step());
}

TEST(BatchNorm, OneAndThreeDimensions) {
  torch::manual_seed(1);
  nn::BatchNorm1d flat(4), rows(4);
  nn::BatchNorm3d cube(2);
  nn::Sequential both;
  struct All : nn::Module {
    All(nn::BatchNorm1d a, nn::BatchNorm1d b, nn::BatchNorm3d c) {
      register_module("a", a);
      register_module("b", b);
      register_module("c", c);
    }
  } model(flat, rows, cube);
  const Tensor x = torch::randn({8, 4}) * 3, y = torch::randn({8, 4, 5}) + 7,
               z = torch::randn({8, 2, 2, 3, 2});
  auto opt = sgd(model, 0);
  Trainer sync(model, opt, small_run(1, 1, 2));
  for (int i = 0; i < 2; ++i) {
    const auto half = [&](const Tensor& t) { return t.narrow(0, 4 * i, 4); };
    sync.backward((flat(half(x)).sum() + rows(half(y)).sum() + cube(half(z)).sum()), 4);
    (void)sync.step();
  }
  const auto check = [](const Tensor& mean, const Tensor& var, const Tensor& data,
                        torch::IntArrayRef dims) {
    expect_near(mean, numbers(0.1 * data.mean(dims)), 1e-5);
    expect_near(var, numbers(0.9 + 0.1 * data.var(dims, true)), 1e-5);
  };
  check(flat->running_mean, flat->running_var, x, {0});
  check(rows->running_mean, rows->running_var, y, {0, 2});
  check(cube->running_mean, cube->running_var, z, {0, 2, 3, 4});
}

TEST(BatchNorm, ALargeMeanKeepsItsVariance) {
  torch::manual_seed(1);
  nn::BatchNorm1d bn(nn::BatchNorm1dOptions(1).momentum(1.0));
  const Tensor x = torch::randn({400, 1}) + 1000;
  auto opt = sgd(*bn, 0);
  Trainer sync(*bn, opt, small_run(1, 1, 4));
  for (int i = 0; i < 4; ++i) {
    sync.backward(bn(x.narrow(0, 100 * i, 100)).sum(), 100);
    (void)sync.step();
  }
  expect_near(bn->running_var, numbers(x.to(torch::kDouble).var({0}, true)), 1e-3);
}

TEST(BatchNorm, ASkippedWindowTouchesNothing) {
  Net net;
  auto opt = still(net);
  Trainer sync(net, opt, small_run(1, 1));
  sync.backward(net.forward(images(4)) * INFINITY, 4);
  EXPECT_TRUE(sync.step()->skipped);
  expect_near(net.bn->running_mean, {0, 0, 0}, 0);
  sync.backward(net.forward(images(4)), 4);  // and the next one starts afresh
  (void)sync.step();
  expect_like(net, plain({images(4)}));
}

TEST(BatchNorm, StatisticsThatCannotBeSeenAreRefusedByName) {
  struct First : nn::Module {
    First()
        : bn(register_module("first", nn::BatchNorm1d(nn::BatchNorm1dOptions(2).affine(false)))),
          fc(register_module("fc", nn::Linear(2, 1))) {}
    nn::BatchNorm1d bn;
    nn::Linear fc;
  } m;
  auto opt = sgd(m, 0.1);
  Trainer sync(m, opt, small_run(1, 1));
  try {
    sync.backward(m.fc(m.bn(torch::randn({4, 2}))).sum(), 4);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("layer first"), std::string::npos) << e.what();
  }
}

TEST(BatchNorm, DeltaRoundsMergeTheNodesRunningStatistics) {
  const Tensor x = images(8);
  for (StatsAtSync at_sync : {StatsAtSync::merge, StatsAtSync::first, StatsAtSync::none}) {
    Config config = small_run(1, 2, 1, Strategy::periodic, 2);
    config.batch_norm.at_sync = at_sync;
    // Node 0 sees two batches of 2, node 1 two of 6.
    const auto a = plain({x.narrow(0, 0, 2), x.narrow(0, 0, 2)});
    const auto b = plain({x.narrow(0, 2, 6), x.narrow(0, 2, 6)});
    run_all(config, [&](const Environment& e) {
      Net net;
      auto opt = still(net);
      Trainer sync(net, opt, config, e);
      for (int i = 0; i < 2; ++i) {
        const int64_t n = e.node == 0 ? 2 : 6;
        sync.backward(net.forward(x.narrow(0, e.node == 0 ? 0 : 2, n)), double(n));
        (void)sync.step();
      }
      if (at_sync == StatsAtSync::first) expect_like(net, a);
      if (at_sync == StatsAtSync::none) expect_like(net, e.node == 0 ? a : b);
      if (at_sync == StatsAtSync::merge)
        for (size_t c = 0; c < 3; ++c) {
          const double mean = 0.25 * a.mean[c] + 0.75 * b.mean[c];
          const double spread = 0.25 * 0.75 * std::pow(a.mean[c] - b.mean[c], 2);
          EXPECT_NEAR(numbers(net.bn->running_mean)[c], mean, 1e-10);
          EXPECT_NEAR(numbers(net.bn->running_var)[c], 0.25 * a.var[c] + 0.75 * b.var[c] + spread,
                      1e-8);
        }
      sync.finish();
    });
  }
}

TEST(BatchNorm, PerMicroBatchIsTorchsOwnWayMergedOverRanks) {
  const Tensor x = images(8);
  Config config = small_run(2, 1, 2);
  config.batch_norm.running_stats = RunningStats::per_micro_batch;
  const auto a = plain({x.narrow(0, 0, 2), x.narrow(0, 2, 2)});
  const auto b = plain({x.narrow(0, 4, 2), x.narrow(0, 6, 2)});
  run_all(config, [&](const Environment& e) {
    Net net;
    auto opt = still(net);
    Trainer sync(net, opt, config, e);
    for (int i = 0; i < 2; ++i) {
      sync.backward(net.forward(x.narrow(0, 4 * e.rank + 2 * i, 2)), 2);
      (void)sync.step();
    }
    for (size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(numbers(net.bn->running_mean)[c], 0.5 * (a.mean[c] + b.mean[c]), 1e-10);
    EXPECT_EQ(net.bn->num_batches_tracked.item<int64_t>(), 2);
    sync.finish();
  });
}

}  // namespace
}  // namespace hybridsync
