#include "hybridsync/torch/trainer.h"

#include <atomic>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

#include "hybridsync/sync/synchronizer.h"
#include "hybridsync/torch/batch_norm.h"
#include "hybridsync/torch/gradient_views.h"
#include "hybridsync/torch/model_check.h"
#include "hybridsync/torch/module_replica.h"
#include "hybridsync/torch/parameters.h"

namespace hybridsync {
namespace {

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

Config validated(Config config) {
  validate(config);
  return config;
}

Environment checked(Environment environment, const Config& config) {
  check(environment, config);
  return environment;
}

const char* name_of(Report::Kind kind) {
  switch (kind) {
    case Report::Kind::skipped:
      return "round_skipped_node";
    case Report::Kind::mismatch:
      return "hash_mismatch";
    case Report::Kind::lost:
      return "lost";
    case Report::Kind::started:
      return "epoch";
    case Report::Kind::view:
      return "view";
    case Report::Kind::not_finite:
      return "not_finite";
    case Report::Kind::codec:
      return "codec_costs_more";
    case Report::Kind::interval:
      return "interval_changed";
    case Report::Kind::stale:
      return "parameters_stale";
  }
  return "";
}

// What must be equal on all ranks beside the model.
std::vector<std::string> rules(const Config& config) {
  std::vector<std::string> lines;
  std::istringstream toml(to_toml(config));
  for (std::string line, section; std::getline(toml, line);) {
    if (line.starts_with("[")) section = line;
    lines.push_back("configuration " + section + " " + line);
  }
  return lines;
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Config config,
       Environment environment)
      : config_(validated(std::move(config))),
        environment_(checked(std::move(environment), config_)),
        model_(model),
        wires_(connect(config_, environment_, patience("rank"))) {
    require_same_model(model, rules(config_), *wires_.rendezvous);
    broadcast_from_first(model, environment_.rank, *wires_.rendezvous);
    parameters_.emplace(model, config_.node_tier().bucket_bytes);
    batch_norm_.emplace(model, config_.batch_norm.running_stats);
    replica_.emplace(*parameters_, optimizer, *batch_norm_,
                     config_.outer_tier().second_moment_floor);
    Synchronizer::Options options{config_, environment_,          parameters_->layout(),
                                  side(0), next_window() ? 2 : 1, patience("node")};
    synchronizer_.emplace(std::move(options), wires_, *replica_);
    std::vector<Gradients> sets{synchronizer_->gradients(0)};
    if (next_window()) sets.push_back(synchronizer_->gradients(1));
    views_.emplace(*parameters_, std::move(sets), false);
    replica_->use(*views_);
    start_ = last_close_ = Clock::now();
  }

  // After an exception in the middle of a window a reduction may still be waiting for the others.
  ~Impl() { leaving_ = true; }

  void backward(const torch::Tensor& loss, double samples, double loss_scale) {
    if (samples == 0) return empty();
    check_call(loss, samples);
    begin_micro_step();
    const double weight = config_.accumulate.weighting == Weighting::samples ? samples : 1;
    broken_ = true;
    batch_norm_->before_backward(loss);
    run_backward(loss, weight / loss_scale, loss_scale != 1);
    batch_norm_->after_backward(samples);
    broken_ = false;
    losses_.emplace_back(loss.detach(), weight / loss_scale);
    window_.weight += weight;
    window_.samples += samples;
    finish_pending();
  }

  void empty() {
    begin_micro_step();
    finish_pending();
  }

  std::optional<StepRecord> step() {
    if (interrupt_ || window_.micro_steps >= config_.accumulate.steps) end_window();
    return std::exchange(completed_, std::nullopt);
  }

  void end_epoch() {
    check_whole();
    finish_pending();
    ++epochs_;
    do flush();
    while (synchronizer_->node().epochs_ended < epochs_);
    completed_.reset();
  }

  void finish() {
    if (finished_) return;
    check_whole();
    finish_pending();
    finished_ = true;
    do flush();
    while (!synchronizer_->node().finished);
    synchronizer_->leave([this](const StepRecord& r) { report(r); });
    tell_events();
    completed_.reset();
  }

  void exclude(double seconds) {
    excluded_ += seconds;
    excluded_since_close_ += seconds;
  }

  Totals totals() const {
    const Synchronizer& s = *synchronizer_;
    Totals t;
    t.reductions = s.reductions();
    t.rounds = s.rounds();
    t.bytes_sent_slow = s.bytes_sent_slow();
    t.bytes_received_slow = s.bytes_received_slow();
    t.bytes_fast = s.node().bytes_fast;
    t.skipped = s.skipped();
    t.interval = s.interval();
    return t;
  }

  const Config config_;
  const Environment environment_;
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> leaving_{false};
  std::function<void(const StepRecord&)> on_step_;
  std::function<void(const std::string&, const std::string&)> on_event_ =
      [](const std::string& kind, const std::string& sentence) {
        std::cerr << kind << ": " << sentence << std::endl;
      };
  std::function<void(const std::string&)> on_wait_ = [](const std::string& sentence) {
    std::cerr << sentence << std::endl;
  };
  torch::nn::Module& model_;
  Wires wires_;
  std::optional<Parameters> parameters_;
  std::optional<BatchNorm> batch_norm_;
  std::optional<ModuleReplica> replica_;
  std::optional<Synchronizer> synchronizer_;
  std::optional<GradientViews> views_;

 private:
  bool next_window() const { return config_.node_tier().overlap == Overlap::next_window; }

  Patience patience(const std::string& noun) {
    Patience p;
    p.limit = std::chrono::milliseconds(static_cast<int64_t>(1e3 * config_.node_tier().timeout));
    if (noun == "node") p.limit.reset();
    p.interrupt = &interrupt_;
    p.leave = &leaving_;
    p.show = [this, noun](const Waiting& w) {
      on_wait_("waiting " + std::to_string(std::llround(w.seconds)) + " s for " +
               counted(noun, w.peers) +
               (noun == "rank" ? " of node " + std::to_string(environment_.node) : "") + ", " +
               w.what);
    };
    return p;
  }

  SideData side(int set) const {
    SideData side;
    side.used = views_ ? views_->used(set) : std::vector<uint8_t>(parameters_->entries().size());
    side.batch_norm = batch_norm_->window();
    side.batches_tracked.resize(side.batch_norm.size());
    side.rates = replica_->base_rates();
    return side;
  }

  void check_call(const torch::Tensor& loss, double samples) const {
    if (!(samples > 0) || !std::isfinite(samples))
      throw ConfigError("backward() got samples = " + std::to_string(samples) +
                        ": give the number of samples (or tokens) behind the mean loss");
    if (!loss.defined() || loss.numel() != 1)
      throw ConfigError("backward() needs a scalar loss: the mean over the micro-batch");
    if (!loss.requires_grad())
      throw ConfigError(
          "backward() got a loss that needs no gradient: every parameter it depends on is "
          "frozen, or it was computed under NoGradGuard");
  }

  void begin_micro_step() {
    if (finished_) throw ConfigError("backward() or empty() after finish(): training is over");
    check_whole();
    if (window_.micro_steps >= config_.accumulate.steps)
      throw ConfigError("backward() was called " + std::to_string(window_.micro_steps + 1) +
                        " times without step(), but accumulate.steps is " +
                        std::to_string(config_.accumulate.steps) +
                        ": call step() after every backward()");
    if (window_.micro_steps == 0) open_window();
    ++window_.micro_steps;
  }

  void check_whole() const {
    if (broken_)
      throw RunEnded(
          "an earlier backward() of this window threw in the middle: part of its gradient may "
          "have left already, so the run cannot go on");
  }

  void open_window() {
    if (next_window()) set_ = 1 - set_;
    views_->zero(set_);
    if (!next_window()) synchronizer_->open(set_);
  }

  // A scaled loss, or one in half precision, keeps its own seed of 1: what the scale is for would
  // be undone by a small seed, and a large one would overflow.
  void run_backward(const torch::Tensor& loss, double scale, bool scaled) {
    const bool last = window_.micro_steps == config_.accumulate.steps;
    std::function<void(int)> ready;
    if (last && config_.node_tier().overlap == Overlap::backward)
      ready = [this](int bucket) { synchronizer_->ready(bucket); };
    const bool unseeded = scaled || loss.element_size() < 4;
    views_->attach(set_, scale, unseeded, std::move(ready));
    struct Detach {
      GradientViews& views;
      ~Detach() { views.detach(); }
    } detach{*views_};
    loss.backward(torch::full_like(loss, views_->seed()));
  }

  Window take_window() {
    Window window = std::exchange(window_, Window{});
    for (const auto& [loss, weight] : losses_) window.loss_sum += weight * loss.item<double>();
    losses_.clear();
    window.side = side(set_);
    if (window.micro_steps == 0)
      std::fill(window.side.rates.begin(), window.side.rates.end(),
                std::numeric_limits<double>::quiet_NaN());
    batch_norm_->reset();
    window.epochs_ended = finished_ ? std::numeric_limits<int64_t>::max() : epochs_;
    window.finished = finished_;
    window.interrupted = interrupt_;
    return window;
  }

  void end_window() {
    check_whole();
    replica_->check_unchanged();
    views_->leave(set_);
    if (!next_window()) return close(take_window());
    synchronizer_->open(set_);
    synchronizer_->launch();
    pending_ = take_window();
  }

  void finish_pending() {
    if (pending_) close(*std::exchange(pending_, std::nullopt));
  }

  // An incomplete window, or none at all, so that the node's other ranks can go on with theirs.
  void flush() {
    if (window_.micro_steps == 0) open_window();
    if (next_window()) synchronizer_->open(set_);
    views_->leave(set_);
    close(take_window());
  }

  void close(Window window) {
    synchronizer_->pad();
    const auto start = Clock::now();
    auto record = synchronizer_->close(std::move(window));
    const auto end = Clock::now();
    if (record) {
      record->compute_seconds = seconds_between(last_close_, start) - excluded_since_close_;
      record->other_seconds = seconds_between(start, end) - record->reduce_wait_seconds -
                              record->agree_seconds - record->optimizer_seconds -
                              record->exchange_seconds;
      report(*record);
    }
    tell_events();
    last_close_ = end;
    excluded_since_close_ = 0;
  }

  void tell_events() {
    for (const Report& event : synchronizer_->reports()) on_event_(name_of(event.kind), event.text);
  }

  void report(StepRecord record) {
    record.node = environment_.node;
    record.seconds = seconds_between(start_, Clock::now()) - excluded_;
    completed_ = record;
    if (on_step_) on_step_(record);
  }

  Window window_;                                      // this rank's part of the open window
  std::vector<std::pair<at::Tensor, double>> losses_;  // of the open window, read at its end
  int set_ = 0;
  std::optional<Window> pending_;  // next_window: launched, not closed
  std::optional<StepRecord> completed_;
  int64_t epochs_ = 0;
  bool finished_ = false;
  bool broken_ = false;  // by an exception inside backward()
  Clock::time_point start_;
  Clock::time_point last_close_;
  double excluded_ = 0;
  double excluded_since_close_ = 0;
};

Trainer::Trainer(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Config config,
                 Environment environment)
    : impl_(std::make_unique<Impl>(model, optimizer, std::move(config), std::move(environment))) {}

Trainer::~Trainer() = default;

void Trainer::backward(const torch::Tensor& loss, double samples, double loss_scale) {
  impl_->backward(loss, samples, loss_scale);
}
void Trainer::empty() { impl_->empty(); }
std::optional<StepRecord> Trainer::step() { return impl_->step(); }
void Trainer::end_epoch() { impl_->end_epoch(); }
void Trainer::finish() { impl_->finish(); }
void Trainer::exclude(double seconds) { impl_->exclude(seconds); }
void Trainer::on_step(std::function<void(const StepRecord&)> f) { impl_->on_step_ = std::move(f); }
void Trainer::on_wait(std::function<void(const std::string&)> f) { impl_->on_wait_ = std::move(f); }
void Trainer::on_event(std::function<void(const std::string&, const std::string&)> f) {
  impl_->on_event_ = std::move(f);
}
void Trainer::busy(bool busy) { impl_->synchronizer_->set_busy(busy); }
void Trainer::interrupt() { impl_->interrupt_ = true; }
const Config& Trainer::config() const { return impl_->config_; }
const Environment& Trainer::environment() const { return impl_->environment_; }
int64_t Trainer::steps() const { return impl_->synchronizer_->steps(); }
int64_t Trainer::samples() const { return impl_->synchronizer_->samples(); }
uint64_t Trainer::hash() const { return hash_of(impl_->model_); }
Trainer::Totals Trainer::totals() const { return impl_->totals(); }

}  // namespace hybridsync
