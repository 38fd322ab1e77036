// Runs the ranks of a small run as threads of the test, each with its own Trainer.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "hybridsync/torch/trainer.h"
#include "tests/sync/world.h"

namespace hybridsync {

// `ranks` per node and `nodes` nodes; one of each: no tiers at all.
inline Config small_run(int ranks, int nodes, int64_t accumulate = 1,
                        Strategy strategy = Strategy::every_step, int64_t every = 4) {
  Config config;
  config.accumulate.steps = accumulate;
  TierConfig node, site;
  node.size = ranks;
  node.timeout = 60;
  node.bucket_bytes = 256;  // several buckets even for small models
  site.name = "site";
  site.size = nodes;
  site.strategy = strategy;
  site.every = every;
  if (ranks * nodes > 1 || strategy != Strategy::every_step) config.tiers = {node, site};
  if (nodes == 1 && strategy == Strategy::every_step && ranks > 1) config.tiers = {node};
  return config;
}

// A module with one parameter "w" and whatever the test registers.
struct Bare : torch::nn::Module {
  torch::Tensor add(const std::string& name, torch::Tensor value) {
    return register_parameter(name, value);
  }
  torch::Tensor add_buffer(const std::string& name, torch::Tensor value) {
    return register_buffer(name, value);
  }
  torch::Tensor freeze(const std::string& name, torch::Tensor value) {
    return register_parameter(name, value, false);
  }
};

inline std::vector<double> numbers(const torch::Tensor& t) {
  const auto d = t.detach().to(torch::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

inline void expect_near(const torch::Tensor& a, const std::vector<double>& b, double tolerance) {
  const auto x = numbers(a);
  ASSERT_EQ(x.size(), b.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], b[i], tolerance) << "element " << i;
}

inline torch::optim::SGD sgd(const torch::nn::Module& m, double lr, double decay = 0) {
  return torch::optim::SGD(m.parameters(), torch::optim::SGDOptions(lr).weight_decay(decay));
}

}  // namespace hybridsync
