#include "hybridsync/torch/program.h"

#include <signal.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "hybridsync/config/error.h"
#include "hybridsync/data/global_order.h"
#include "hybridsync/torch/dataset.h"
#include "hybridsync/torch/models/model.h"
#include "hybridsync/torch/run_log.h"
#include "hybridsync/torch/start_state.h"
#include "hybridsync/torch/trainer.h"

namespace hybridsync {
namespace {

constexpr int64_t kEvaluationBatch = 256;

// While it lives, the signals that end a program interrupt the trainer.
class SignalScope {
 public:
  explicit SignalScope(Trainer& trainer) {
    trainer_ = &trainer;
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (Trainer* running = trainer_) running->interrupt();
    };
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalScope() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    trainer_ = nullptr;
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  inline static std::atomic<Trainer*> trainer_{nullptr};
  static_assert(std::atomic<Trainer*>::is_always_lock_free);
  std::array<struct sigaction, kSignals.size()> before_{};
};

// "cuda" without a number spreads a node's ranks over its devices.
torch::Device device_of(const std::string& name, int local_rank) {
  const int devices =
      torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  if (name == "cpu" || (name == "auto" && devices == 0)) return torch::kCPU;
  const ConfigError wrong("train.device is \"" + name + "\", but torch finds " +
                          std::to_string(devices) + " CUDA devices: use auto, cpu, cuda or cuda:N");
  if (devices == 0) throw wrong;
  if (name == "auto" || name == "cuda")
    return {torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank % devices)};
  try {
    const torch::Device device(name);
    if (device.is_cuda() && device.index() < devices) return device;
  } catch (const c10::Error&) {
  }
  throw wrong;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainConfig& config,
                                                        const Model& model) {
  using namespace torch::optim;
  const auto parameters = model.parameters();
  const auto decay = config.weight_decay;
  if (config.optimizer == "sgd") {
    const auto options = SGDOptions(config.lr).momentum(config.momentum).weight_decay(decay);
    return std::make_unique<SGD>(parameters, options);
  }
  if (config.optimizer == "adam") {
    return std::make_unique<Adam>(parameters, AdamOptions(config.lr).weight_decay(decay));
  }
  if (config.optimizer == "adamw") {
    return std::make_unique<AdamW>(parameters, AdamWOptions(config.lr).weight_decay(decay));
  }
  throw ConfigError("train.optimizer = \"" + config.optimizer +
                    "\": there are sgd, adam and adamw");
}

// Before there is a folder of the run, which a mistake in train.start_from must not leave behind.
std::unique_ptr<torch::optim::Optimizer> make_started(const TrainConfig& config, Model& model,
                                                      const torch::Device& device) {
  model.to(device);
  auto optimizer = make_optimizer(config, model);
  if (!config.start_from.empty()) load_start_state(model, *optimizer, config.start_from);
  return optimizer;
}

class Program {
 public:
  Program(const Config& config, const Environment& environment, std::ostream& out)
      : config_(config),
        environment_(environment),
        device_(device_of(config.train.device, environment.local_rank)),
        data_(make_dataset(config.train.data)),
        model_(make_model(config.train, data_->shape())),
        optimizer_(make_started(config.train, *model_, device_)),
        order_(data_->count(Part::train), config.train.micro_batch, config.train.seed),
        log_(config, environment, out) {
    trainer_ = std::make_unique<Trainer>(*model_, *optimizer_, config, environment);
    trainer_->on_step([this](const StepRecord& record) { record_step(record); });
    trainer_->on_event([this](const std::string& kind, const std::string& sentence) {
      log_.event(kind, sentence);
    });
    trainer_->on_wait([this](const std::string& sentence) { log_.waiting(sentence); });
  }

  RunSummary run() {
    const SignalScope signals(*trainer_);
    log_.begin({{"torch", TORCH_VERSION},
                {"device", device_.str()},
                {"threads", config_.train.threads},
                {"parameters", parameter_count()}});
    try {
      train();
      return finish();
    } catch (const Interrupted& e) {
      log_.event("interrupted", e.what());
      throw;
    } catch (const RunEnded& e) {
      log_.event("run_ended", e.what());
      throw;
    }
  }

 private:
  void train() {
    for (int64_t step = 0; !trained_enough(step); ++step) {
      take_step(step);
      if (evaluates_after(step + 1)) evaluate_meanwhile();
    }
    trainer_->finish();
  }

  int64_t parameter_count() const {
    int64_t count = 0;
    for (const torch::Tensor& parameter : model_->parameters()) count += parameter.numel();
    return count;
  }

  // Nodes that go at speeds of their own end together by what all of them have trained on.
  bool trained_enough(int64_t step) const {
    if (config_.outer_tier().strategy != Strategy::delayed) return step >= config_.train.steps;
    const int64_t window =
        config_.train.micro_batch * config_.accumulate.steps * environment_.world_size;
    return trainer_->samples() >= config_.train.steps * window;
  }

  void take_step(int64_t step) {
    for (int64_t i = 0; i < config_.accumulate.steps; ++i) {
      const auto samples = order_.samples(micro_batch_index(
          step, i, environment_.rank, config_.accumulate.steps, environment_.world_size));
      const Batch batch = at_device(Part::train, samples);
      const torch::Tensor loss = cross_entropy(model_->forward(batch.data), batch.target);
      trainer_->backward(loss, static_cast<double>(samples.size()));
      trainer_->step();
    }
  }

  void record_step(const StepRecord& record) {
    log_.step(record);
    if (record.skipped) {
      log_.event("skip",
                 "step " + std::to_string(record.step) + " was skipped: a gradient was not finite");
    }
  }

  // The last step's evaluation is that of the final weights.
  bool evaluates_after(int64_t step) const {
    const int64_t every = config_.train.evaluate_every;
    return log_.records() && every > 0 && step % every == 0 && step < config_.train.steps;
  }

  void evaluate_meanwhile() {
    const auto start = std::chrono::steady_clock::now();
    trainer_->busy(true);
    log_.evaluation(evaluate());
    trainer_->busy(false);
    trainer_->exclude(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  RunSummary finish() {
    EvaluationRecord last;
    last.loss = last.accuracy = std::numeric_limits<double>::quiet_NaN();
    if (log_.leads()) {
      save_start_state(*model_, *optimizer_, log_.folder());
      last = evaluate();
      log_.evaluation(last);
    }
    const auto totals = trainer_->totals();
    return log_.finish(last, totals.interval, totals.rounds);
  }

  EvaluationRecord evaluate() {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const int64_t all = data_->count(Part::held_out);
    const int64_t wanted = config_.train.evaluate_samples;
    const int64_t count = wanted == 0 ? all : std::min(wanted, all);
    EvaluationRecord record{.step = trainer_->steps(), .samples = trainer_->samples()};
    for (int64_t first = 0; first < count; first += kEvaluationBatch) {
      std::vector<int64_t> samples;
      for (int64_t i = first; i < std::min(first + kEvaluationBatch, count); ++i)
        samples.push_back(i * all / count);
      const Batch batch = at_device(Part::held_out, samples);
      const torch::Tensor logits = model_->forward(batch.data);
      const double share = static_cast<double>(samples.size()) / static_cast<double>(count);
      record.loss += share * cross_entropy(logits, batch.target).item<double>();
      record.accuracy += share * accuracy(logits, batch.target);
    }
    model_->train();
    return record;
  }

  Batch at_device(Part part, std::span<const int64_t> samples) const {
    Batch batch = data_->batch(part, samples);
    return {batch.data.to(device_), batch.target.to(device_)};
  }

  const Config& config_;
  const Environment& environment_;
  const torch::Device device_;
  const std::unique_ptr<Dataset> data_;
  const std::shared_ptr<Model> model_;
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
  GlobalOrder order_;
  RunLog log_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace

RunSummary run_training(const Config& config, const Environment& environment, std::ostream& out) {
  at::set_num_threads(config.train.threads);
  return Program(config, environment, out).run();
}

}  // namespace hybridsync
