// Runs the ranks of a small run as threads of the test, each with its own Trainer.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/torch/trainer.h"
#include "hybridsync/wire/rendezvous.h"

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

inline Environment test_environment(const Config& config, int rank, const std::string& address) {
  Environment e;
  e.rank = rank;
  e.world_size = config.ranks();
  e.local_world_size = config.ranks_per_node();
  e.local_rank = rank % e.local_world_size;
  e.node = rank / e.local_world_size;
  e.rendezvous = address;
  return e;
}

// What each rank threw, empty for nothing.
inline std::vector<std::string> run_ranks(const Config& config,
                                          const std::function<void(const Environment&)>& body) {
  static int runs = 0;
  const std::string run_id = "torch-" + std::to_string(getpid()) + "-" + std::to_string(++runs);
  RendezvousHost host(config.ranks(), run_id);
  std::vector<std::string> errors(static_cast<size_t>(config.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < config.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      Environment e = test_environment(config, rank, host.address());
      e.run_id = run_id;
      try {
        body(e);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return errors;
}

inline void run_all(const Config& config, const std::function<void(const Environment&)>& body) {
  const auto errors = run_ranks(config, body);
  for (size_t r = 0; r < errors.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
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
