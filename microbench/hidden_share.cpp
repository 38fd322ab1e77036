// How much of the in-node reduction hides behind computing: ranks as processes, one table.
//
//   hidden_share [--ranks 2] [--layers 8] [--width 1024] [--micro-batch 32] [--blocks 20]
//                [--steps 5]
//
// Every rank holds one model and one Trainer for each value of tier[0].overlap, and trains them in
// turns, `steps` optimizer steps each, forwards and backwards through the list. Numbers are rank
// 0's medians over the blocks; steps/s are compared within a block. A reduction's seconds include
// those that it waits for the other ranks to arrive.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/torch/trainer.h"
#include "hybridsync/wire/rendezvous.h"
#include "microbench/interval.h"

namespace {

using namespace hybridsync;

struct Variant {
  const char* name;
  Overlap overlap;
};
constexpr Variant kVariants[]{
    {"off", Overlap::off}, {"backward", Overlap::backward}, {"next_window", Overlap::next_window}};
constexpr size_t kCount = std::size(kVariants);

std::map<std::string, int> settings{{"--ranks", 2},        {"--layers", 8},  {"--width", 1024},
                                    {"--micro-batch", 32}, {"--blocks", 20}, {"--steps", 5}};

Config config_of(Overlap overlap) {
  Config config;
  TierConfig node;
  node.size = settings["--ranks"];
  node.overlap = overlap;
  config.tiers = {node};
  return config;
}

torch::nn::Sequential make_mlp() {
  torch::manual_seed(1);
  torch::nn::Sequential mlp;
  for (int i = 0; i < settings["--layers"]; ++i) {
    mlp->push_back(torch::nn::Linear(settings["--width"], settings["--width"]));
    mlp->push_back(torch::nn::ReLU());
  }
  return mlp;
}

// Means over one block of steps.
struct Block {
  double steps_per_second = 0;
  double reduce_seconds = 0;
  double waited_seconds = 0;
};

class Training {
 public:
  Training(Overlap overlap, const Environment& environment)
      : model_(make_mlp()),
        optimizer_(model_->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)),
        trainer_(*model_, optimizer_, config_of(overlap), environment),
        data_(torch::randn({settings["--micro-batch"], settings["--width"]})) {
    trainer_.on_step([this](const StepRecord& record) { take(record); });
  }

  Block block(int steps) {
    records_ = 0;
    sum_ = {};
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) step();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double counted = std::max(1, records_ - 1);
    return {steps / seconds.count(), sum_.reduce_seconds / counted, sum_.waited_seconds / counted};
  }
  void finish() { trainer_.finish(); }

 private:
  void step() {
    const auto loss = torch::mse_loss(model_->forward(data_), data_);
    trainer_.backward(loss, static_cast<double>(data_.size(0)));
    trainer_.step();
  }
  // With next_window a block's first record belongs to the last step of the block before.
  void take(const StepRecord& record) {
    if (records_++ == 0) return;
    sum_.reduce_seconds += record.reduce_seconds;
    sum_.waited_seconds += record.reduce_wait_seconds;
  }

  torch::nn::Sequential model_;
  torch::optim::SGD optimizer_;
  Trainer trainer_;
  torch::Tensor data_;
  int records_ = 0;
  Block sum_;
};

using Blocks = std::vector<Block>;  // of one variant

std::vector<Blocks> train(int rank, const std::vector<std::string>& addresses,
                          const std::string& run_id) {
  at::set_num_threads(1);
  std::vector<std::unique_ptr<Training>> trainings;
  for (size_t v = 0; v < kCount; ++v) {
    Environment e;
    e.rank = e.local_rank = rank;
    e.world_size = e.local_world_size = settings["--ranks"];
    e.rendezvous = addresses[v];
    e.run_id = run_id + kVariants[v].name;
    trainings.push_back(std::make_unique<Training>(kVariants[v].overlap, e));
    trainings.back()->block(2);  // warm
  }
  std::vector<Blocks> blocks(kCount);
  for (int b = 0; b < settings["--blocks"]; ++b)
    for (size_t i = 0; i < kCount; ++i) {
      const size_t v = b % 2 == 0 ? i : kCount - 1 - i;
      blocks[v].push_back(trainings[v]->block(settings["--steps"]));
    }
  for (auto& training : trainings) training->finish();
  return blocks;
}

template <class F>
std::vector<double> each(const Blocks& blocks, F f) {
  std::vector<double> values;
  for (size_t i = 0; i < blocks.size(); ++i) values.push_back(f(blocks[i], i));
  return values;
}

void print(const std::vector<Blocks>& blocks) {
  std::printf("%-12s %10s %10s %8s %9s %18s %18s\n", "overlap", "reduce ms", "waited ms", "hidden",
              "steps/s", "against off", "95 % interval");
  for (size_t v = 0; v < kCount; ++v) {
    const auto gains = each(blocks[v], [&](const Block& block, size_t i) {
      return block.steps_per_second / blocks[0][i].steps_per_second;
    });
    const Interval gain = interval_of_median(gains);
    const auto hidden = [](const Block& b, size_t) {
      return std::clamp(1 - b.waited_seconds / b.reduce_seconds, 0.0, 1.0);
    };
    std::printf("%-12s %10.2f %10.2f %7.0f%% %9.2f %18.3f %8.3f .. %6.3f\n", kVariants[v].name,
                1e3 * median(each(blocks[v], [](auto& b, size_t) { return b.reduce_seconds; })),
                1e3 * median(each(blocks[v], [](auto& b, size_t) { return b.waited_seconds; })),
                100 * median(each(blocks[v], hidden)),
                median(each(blocks[v], [](auto& b, size_t) { return b.steps_per_second; })),
                median(gains), gain.low, gain.high);
  }
}

void read_settings(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const auto setting = settings.find(argv[i]);
    if (setting == settings.end() || i + 1 == argc) {
      std::fprintf(stderr, "usage: hidden_share");
      for (const auto& [key, value] : settings)
        std::fprintf(stderr, " [%s %d]", key.c_str(), value);
      std::fprintf(stderr, "\n");
      std::exit(2);
    }
    setting->second = std::max(2, std::stoi(argv[i + 1]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  read_settings(argc, argv);
  const int ranks = settings["--ranks"];
  const std::string run_id = "hidden-share-" + std::to_string(::getpid()) + "-";
  std::vector<std::unique_ptr<RendezvousHost>> hosts;
  std::vector<std::string> addresses;
  for (const Variant& variant : kVariants) {
    hosts.push_back(std::make_unique<RendezvousHost>(ranks, run_id + variant.name));
    addresses.push_back(hosts.back()->address());
  }
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    train(rank, addresses, run_id);
    ::_exit(0);
  }
  const unsigned cores = std::thread::hardware_concurrency();
  std::printf("%d ranks on %u cores, %.1f MB of gradients\n", ranks, cores,
              4e-6 * settings["--layers"] * settings["--width"] * (settings["--width"] + 1));
  if (cores <= static_cast<unsigned>(ranks))
    std::printf("the ranks fill all cores: what is hidden need not be gained in steps/s\n");
  std::fflush(stdout);
  print(train(0, addresses, run_id));
  bool all_well = true;
  for (const pid_t child : children) {
    int status = 0;
    all_well = ::waitpid(child, &status, 0) == child && status == 0 && all_well;
  }
  return all_well ? 0 : 1;
}
