// Rounds pull an optimizer's momentum by the stated formula, and floor Adam's second moments.
#include <cmath>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/flat_tensor.h"
#include "hybridsync/torch/optimizer_moments.h"
#include "tests/torch/ranks.h"

namespace hybridsync {
namespace {

using torch::Tensor;
using namespace torch::optim;

constexpr double kShare = 0.6, kRate = 0.01;

struct Two : Bare {
  Two()
      : a(add("a", torch::linspace(-1, 1, 30).view({5, 6}).t().clone(at::MemoryFormat::Preserve))),
        b(add("b", torch::linspace(2, 3, 7))) {}
  void step(Optimizer& optimizer, double scale) {
    a.mutable_grad() = torch::cos(a.detach() * 3) * scale;
    b.mutable_grad() = torch::sin(b.detach() * 5) * scale;
    optimizer.step();
  }
  Tensor a, b;
};

// The whole flat vector as two ranges, the second one first.
std::vector<Fragment> ranges_of(const Layout& layout) {
  const int64_t cut = 21;
  return {{3, Real::f32, cut, layout.count_f32 - cut}, {3, Real::f32, 0, cut}};
}

std::vector<float> deltas(const Layout& layout) {
  std::vector<float> d(static_cast<size_t>(layout.count_f32));
  for (size_t i = 0; i < d.size(); ++i) d[i] = 0.01f * std::sin(static_cast<float>(i));
  return d;
}

// What `deltas` are for this tensor, in memory order.
Tensor deltas_of(const Parameters& parameters, const Tensor& tensor) {
  const auto ranges = ranges_of(parameters.layout());
  const auto d = deltas(parameters.layout());
  Tensor out = torch::empty({tensor.numel()});
  int64_t at = 0;
  for (const Fragment& range : ranges) {
    for (const auto& part : parameters.parts(range))
      if (part.entry->tensor.is_same(tensor))
        for (int64_t i = 0; i < part.count; ++i)
          out[part.begin + i] = d[static_cast<size_t>(at + part.at + i)];
    at += range.count;
  }
  return out;
}

Tensor flat(const Tensor& t) { return Parameters::in_memory_order(t, 0, t.numel()).clone(); }

template <class State>
State& state(Optimizer& optimizer, const Tensor& p) {
  return static_cast<State&>(*optimizer.state().at(p.unsafeGetTensorImpl()));
}

template <class Adam, class Options, class State>
void expect_adam_pulled() {
  Two model;
  const Parameters parameters(model, 1 << 20);
  Adam optimizer(model.parameters(), Options(kRate).betas({0.9, 0.95}));
  OptimizerMoments moments(parameters, optimizer, 0);
  const auto step = [&](double scale) {
    model.step(optimizer, scale);
    moments.stepped();
  };
  step(1);
  moments.begin_pull();
  step(2);
  step(-1);
  const auto d = deltas(parameters.layout());
  for (int round = 1; round <= 2; ++round) {
    std::vector<Tensor> expected;
    const double steps = round == 1 ? 2 : 1;  // since the last round
    for (const Tensor& p : model.parameters()) {
      const auto& s = state<State>(optimizer, p);
      const double t = round == 1 ? 3 : 4;
      const Tensor den = (flat(s.exp_avg_sq()) / (1 - std::pow(0.95, t))).sqrt() + 1e-8;
      const Tensor wanted = deltas_of(parameters, p) * den / (steps * kRate);
      expected.push_back((1 - kShare) * flat(s.exp_avg()) +
                         kShare * (1 - std::pow(0.9, t)) * wanted);
    }
    moments.pull(ranges_of(parameters.layout()), std::span<const float>(d), kShare);
    for (size_t i = 0; i < expected.size(); ++i)
      expect_near(flat(state<State>(optimizer, model.parameters()[i]).exp_avg()),
                  numbers(expected[i]), 1e-6);
    step(3);
  }
}

TEST(Moments, OfAdamArePulled) { expect_adam_pulled<Adam, AdamOptions, AdamParamState>(); }
TEST(Moments, OfAdamWArePulled) { expect_adam_pulled<AdamW, AdamWOptions, AdamWParamState>(); }

TEST(Moments, OfSgdAreTheStepOverTheRates) {
  Two model;
  const Parameters parameters(model, 1 << 20);
  SGD optimizer(model.parameters(), SGDOptions(kRate).momentum(0.9));
  OptimizerMoments moments(parameters, optimizer, 0.03);
  moments.begin_pull();
  for (int i = 0; i < 3; ++i) {
    model.step(optimizer, 1);
    moments.stepped();
  }
  const auto buffer = [&] {
    return flat(state<SGDParamState>(optimizer, model.b).momentum_buffer());
  };
  const Tensor expected =
      (1 - kShare) * buffer() + kShare * deltas_of(parameters, model.b) / (3 * kRate);
  const auto d = deltas(parameters.layout());
  moments.pull(ranges_of(parameters.layout()), std::span<const float>(d), kShare);
  expect_near(buffer(), numbers(expected), 1e-6);
}

TEST(Moments, NothingIsPulledBeforeAStep) {
  Two model;
  const Parameters parameters(model, 1 << 20);
  AdamW optimizer(model.parameters(), AdamWOptions(kRate));
  OptimizerMoments moments(parameters, optimizer, 0.03);
  moments.begin_pull();
  const auto d = deltas(parameters.layout());
  moments.pull(ranges_of(parameters.layout()), std::span<const float>(d), kShare);
  EXPECT_TRUE(optimizer.state().empty());
}

TEST(Moments, AreRefusedWithoutMomentum) {
  Two model;
  const Parameters parameters(model, 1 << 20);
  SGD optimizer(model.parameters(), SGDOptions(kRate));
  OptimizerMoments moments(parameters, optimizer, 0);
  try {
    moments.begin_pull();
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("momentum_pull"), std::string::npos) << e.what();
  }
}

TEST(Moments, SecondOnesHaveAFloor) {
  Two model;
  const Parameters parameters(model, 1 << 20);
  AdamW optimizer(model.parameters(), AdamWOptions(kRate));
  OptimizerMoments moments(parameters, optimizer, 0.5);
  model.step(optimizer, 1);
  const Tensor before = flat(state<AdamWParamState>(optimizer, model.a).exp_avg_sq());
  moments.stepped();
  const Tensor after = flat(state<AdamWParamState>(optimizer, model.a).exp_avg_sq());
  const double floor = 0.5 * before.mean().item<double>();
  EXPECT_LT(before.min().item<double>(), floor);
  expect_near(after, numbers(before.clamp_min(floor)), 1e-9);
}

}  // namespace
}  // namespace hybridsync
