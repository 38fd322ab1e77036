// A model without a framework: one vector of numbers and SGD.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/sync/synchronizer.h"
#include "tests/sync/world.h"

namespace hybridsync {

class VectorReplica final : public Replica {
 public:
  VectorReplica(size_t n, float start, double lr, const SenderMomentum& momentum = {})
      : theta(n, start), lr_(lr), momentum_(momentum), buffer_(n) {}

  void read(const Fragment& f, Values out) const override {
    copy(std::span<const float>(theta).subspan(f.offset, f.count), out);
  }
  void write(const Fragment& f, ConstValues values) override {
    copy(values, std::span<float>(theta).subspan(f.offset, f.count));
  }
  void round(const Fragment&, Values) const override {}
  double optimizer_step(int, double factor, const SideData& agreed) override {
    const auto g = std::get<std::span<float>>(gradients.f32);
    const auto m = static_cast<float>(momentum_.factor);
    for (size_t i = 0; i < theta.size(); ++i) {
      buffer_[i] = m * buffer_[i] + g[i];
      const float d = momentum_.nesterov ? g[i] + m * buffer_[i] : buffer_[i];
      theta[i] -= static_cast<float>(lr_ * factor) * d;
    }
    last_used = agreed.used;
    ++steps;
    return lr_ * factor;
  }
  void begin_momentum_pull() override { pulls = 0; }
  void pull_momentum(std::span<const Fragment>, ConstValues, double) override { ++pulls; }
  SenderMomentum take_momentum() override { return std::exchange(momentum_, {}); }
  void advance_statistics(const std::vector<Moments>& window) override { last_window = window; }
  SideData running_statistics(double weight) const override {
    return {{}, {{weight, {mean}, {1}}}, {steps}};
  }
  void set_running_statistics(const SideData& side) override {
    mean = side.batch_norm[0].mean[0];
    batches_tracked = side.batches_tracked[0];
  }

  std::vector<float> theta;
  Gradients gradients;
  std::vector<Moments> last_window;
  std::vector<uint8_t> last_used;
  double mean = 0;
  int64_t batches_tracked = 0;
  int64_t steps = 0;
  int64_t pulls = -1;

 private:
  double lr_;
  SenderMomentum momentum_;
  std::vector<float> buffer_;
};

// One rank of a run; layout and side data of a model with these parameters, or one of `n` numbers.
class TestRank {
 public:
  TestRank(const Config& config, const Environment& environment, size_t n, const Patience& patience,
           float start = 1, const SenderMomentum& momentum = {})
      : TestRank(config, environment,
                 std::vector<ParameterShape>{{Real::f32, static_cast<int64_t>(n)}}, patience, start,
                 momentum) {}
  TestRank(const Config& config, const Environment& environment,
           const std::vector<ParameterShape>& parameters, const Patience& patience, float start = 1,
           const SenderMomentum& momentum = {})
      : node(environment.node),
        layout(plan_buckets(parameters, 1 << 20)),
        replica(static_cast<size_t>(layout.count_f32), start, 0.5, momentum),
        wires(connect(config, environment, patience)),
        sync({config, environment, layout, SideData{{0}, {{0, {0}, {0}}}, {}}, 1, patience}, wires,
             replica) {
    replica.gradients = sync.gradients(0);
  }

  // A window with this gradient, times shape(i) for the i-th parameter, of so many samples.
  std::optional<StepRecord> step(float gradient, double samples, bool finished = false) {
    Window window;
    open();
    if (samples > 0) {
      const auto all = std::get<std::span<float>>(sync.gradients(0).f32);
      for (size_t i = 0; i < all.size(); ++i)
        all[i] = gradient * static_cast<float>(samples) * shape(i);
      window = {1, samples, samples * gradient, samples};
    }
    window.finished = finished;
    window.side = {{samples > 0 && uses}, {{samples, {double(gradient)}, {0}}}, {}};
    const auto record = sync.close(window);
    if (record) on_record(*record);
    return record;
  }
  void finish() {
    while (!sync.node().finished) (void)step(0, 0, true);
    sync.leave([this](const StepRecord& r) { on_record(r); });
  }

  int node;
  Layout layout;
  VectorReplica replica;
  Wires wires;
  Synchronizer sync;
  bool uses = true;  // its parameters, in a step with samples
  std::function<float(size_t)> shape = [](size_t) { return 1.0f; };
  std::function<void(const StepRecord&)> on_record = [](const StepRecord&) {};

 private:
  void open() {
    for (float& g : std::get<std::span<float>>(sync.gradients(0).f32)) g = 0;
    sync.open(0);
  }
};

// `nodes` nodes of `ranks` ranks; nodes by this strategy.
inline Config two_tiers(int ranks, int nodes, Strategy strategy, int64_t every = 1) {
  Config config;
  TierConfig node, site;
  node.size = ranks;
  node.timeout = 60;
  site.name = "site";
  site.size = nodes;
  site.strategy = strategy;
  site.every = every;
  config.tiers = {node, site};
  return config;
}

}  // namespace hybridsync
