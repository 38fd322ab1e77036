// What the Trainer costs a training loop that needs none: one rank, no tiers, against the bare
// loop.
//
//   trainer_cost [--seconds 20] [--micro-steps 8] [--micro-batch 32] [--only MODEL]
//
// Both loops run in this process, on models of their own with equal weights and on the same data in
// memory, in short blocks of `steps` optimizer steps: bare, Trainer, Trainer, bare, and so on.
// Every such pair gives one ratio of CPU seconds; printed is the median with its 95 % interval.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "hybridsync/data/global_order.h"
#include "hybridsync/torch/dataset.h"
#include "hybridsync/torch/models/model.h"
#include "hybridsync/torch/trainer.h"
#include "microbench/interval.h"

namespace {

using namespace hybridsync;

struct Case {
  std::string model;
  std::string data;
  int64_t accumulate;
  RunningStats statistics;
  double goal;  // largest cost, as a fraction; 0: none
};

const std::vector<Case> kCases{
    {"cnn", "fashion-mnist", 1, RunningStats::per_micro_batch, 0.03},
    {"cnn", "fashion-mnist", 4, RunningStats::per_micro_batch, 0.03},
    {"cnn", "fashion-mnist", 1, RunningStats::per_window, 0.05},
    {"cnn", "fashion-mnist", 4, RunningStats::per_window, 0.05},
    {"char-gpt", "bible", 1, RunningStats::per_window, 0},
    {"char-gpt", "bible", 4, RunningStats::per_window, 0},
};

struct Options {
  double seconds = 20;      // CPU seconds for each case
  int64_t micro_steps = 8;  // in a block, at least one window
  int64_t micro_batch = 32;
  std::string only;
};

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Config config_of(const Case& c, const Options& options) {
  Config config;
  config.train.model = c.model;
  config.train.data = c.data;
  config.train.micro_batch = options.micro_batch;
  config.accumulate.steps = c.accumulate;
  config.batch_norm.running_stats = c.statistics;
  return config;
}

std::vector<Batch> some_batches(const Dataset& data, int64_t micro_batch) {
  GlobalOrder order(data.count(Part::train), micro_batch, 1);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < std::min<int64_t>(64, order.micro_batches_per_epoch()); ++i)
    batches.push_back(data.batch(Part::train, order.samples(i)));
  return batches;
}

// A model with its optimizer and its way through the data.
class Loop {
 public:
  Loop(const Config& config, const Dataset& data, const std::vector<Batch>& batches)
      : accumulate_(config.accumulate.steps),
        batches_(batches),
        model_(make_model(config.train, data.shape())),
        optimizer_(model_->parameters(),
                   torch::optim::SGDOptions(config.train.lr).momentum(config.train.momentum)) {}
  virtual ~Loop() = default;
  virtual void step() = 0;
  virtual void finish() {}

  double cpu_seconds_for(int64_t steps) {
    const double start = cpu_seconds();
    for (int64_t i = 0; i < steps; ++i) step();
    return cpu_seconds() - start;
  }
  const Model& model() const { return *model_; }

 protected:
  const Batch& next_batch() { return batches_[next_++ % batches_.size()]; }
  torch::Tensor loss_of(const Batch& batch) {
    return cross_entropy(model_->forward(batch.data), batch.target);
  }

  const int64_t accumulate_;
  const std::vector<Batch>& batches_;
  size_t next_ = 0;
  std::shared_ptr<Model> model_;
  torch::optim::SGD optimizer_;
};

class BareLoop final : public Loop {
 public:
  using Loop::Loop;
  void step() override {
    for (int64_t i = 0; i < accumulate_; ++i)
      (loss_of(next_batch()) / static_cast<double>(accumulate_)).backward();
    optimizer_.step();
    optimizer_.zero_grad();
  }
};

class TrainerLoop final : public Loop {
 public:
  TrainerLoop(const Config& config, const Dataset& data, const std::vector<Batch>& batches)
      : Loop(config, data, batches), trainer_(*model_, optimizer_, config, Environment{}) {}
  void step() override {
    for (int64_t i = 0; i < accumulate_; ++i) {
      const Batch& batch = next_batch();
      trainer_.backward(loss_of(batch), static_cast<double>(batch.data.size(0)));
      trainer_.step();
    }
  }
  void finish() override { trainer_.finish(); }

 private:
  Trainer trainer_;
};

// Largest difference of two models' parameters: the loops must have done the same work.
double difference(const Model& a, const Model& b) {
  double largest = 0;
  const auto x = a.parameters(), y = b.parameters();
  for (size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, (x[i] - y[i]).abs().max().item<double>());
  return largest;
}

struct Measured {
  std::vector<double> ratios;  // Trainer to bare, by pair
  std::vector<double> bare;    // CPU seconds of a step
  std::vector<double> own;     // the Trainer's CPU seconds of a step beyond the bare loop's
};

Measured measure(Loop& bare, Loop& trainer, double seconds, int64_t steps) {
  Measured m;
  for (Loop* loop : {&bare, &trainer}) loop->cpu_seconds_for(steps);  // warm
  for (const double end = cpu_seconds() + seconds; cpu_seconds() < end || m.ratios.empty();) {
    const bool bare_first = m.ratios.size() % 2 == 0;
    Loop* const order[]{bare_first ? &bare : &trainer, bare_first ? &trainer : &bare};
    const double first = order[0]->cpu_seconds_for(steps);
    const double second = order[1]->cpu_seconds_for(steps);
    const double b = bare_first ? first : second, t = bare_first ? second : first;
    m.ratios.push_back(t / b);
    m.bare.push_back(b / static_cast<double>(steps));
    m.own.push_back((t - b) / static_cast<double>(steps));
  }
  return m;
}

std::string verdict(double goal, const Interval& cost) {
  if (goal == 0) return "no goal";
  const std::string text = "goal " + std::to_string(std::lround(100 * goal)) + " %: ";
  if (cost.high <= goal) return text + "met";
  return text + (cost.low > goal ? "NOT met" : "undecided (give more seconds)");
}

void run(const Case& c, const Options& options) {
  const Config config = config_of(c, options);
  const auto data = make_dataset(c.data);
  const auto batches = some_batches(*data, options.micro_batch);
  BareLoop bare(config, *data, batches);
  TrainerLoop trainer(config, *data, batches);
  const Measured m = measure(bare, trainer, options.seconds,
                             std::max<int64_t>(1, options.micro_steps / c.accumulate));
  trainer.finish();
  if (const double apart = difference(bare.model(), trainer.model()); !(apart < 1e-4)) {
    std::fprintf(stderr, "the loops did not do the same work: their parameters are %g apart\n",
                 apart);
    std::exit(1);
  }
  const Interval ratio = interval_of_median(m.ratios);
  const Interval cost{ratio.low - 1, ratio.high - 1};
  std::printf("%-9s %3ld %-16s %6zu %9.3f %8.1f %+7.2f %% %+7.2f .. %+6.2f %%  %s\n",
              c.model.c_str(), static_cast<long>(c.accumulate),
              c.statistics == RunningStats::per_window ? "per_window" : "per_micro_batch",
              m.ratios.size(), 1e3 * median(m.bare), 1e6 * median(m.own),
              100 * (median(m.ratios) - 1), 100 * cost.low, 100 * cost.high,
              verdict(c.goal, cost).c_str());
  std::fflush(stdout);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--seconds" && !value.empty()) {
      options.seconds = std::stod(value);
    } else if (key == "--micro-steps" && !value.empty()) {
      options.micro_steps = std::max(1, std::stoi(value));
    } else if (key == "--micro-batch" && !value.empty()) {
      options.micro_batch = std::max(2, std::stoi(value));
    } else if (key == "--only" && !value.empty()) {
      options.only = value;
    } else {
      std::fprintf(stderr,
                   "usage: trainer_cost [--seconds S] [--micro-steps N] [--micro-batch N] [--only "
                   "MODEL]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  at::set_num_threads(1);
  std::printf("%-9s %3s %-16s %6s %9s %8s %9s %19s  goal\n", "model", "acc", "running_stats",
              "pairs", "bare ms", "own us", "own", "95 % interval");
  for (const Case& c : kCases)
    if (options.only.empty() || c.model == options.only) run(c, options);
}
