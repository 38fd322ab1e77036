// SGD whose momentum is at the senders of coded gradients: the receiver's part, weight decay and
// all, against SGD as it is.
#include <mutex>

#include "tests/torch/ranks.h"

namespace hybridsync {
namespace {

using torch::Tensor;
using torch::optim::SGDOptions;

constexpr int64_t kNumbers = 5000;
constexpr int kSteps = 20;

Config top_k(int nodes, double density = 0.05) {
  Config config = small_run(1, nodes);
  if (config.tiers.empty()) config.tiers = small_run(1, 1, 1, Strategy::periodic).tiers;
  config.tiers[1].strategy = Strategy::every_step;
  CodecOptions& codec = config.tiers[1].codec;
  codec.kind = CodecKind::top_k;
  codec.density = density;
  codec.value_bits = 16;
  codec.momentum_correction = true;
  return config;
}

Config plain(Config config) {
  config.tiers[1].codec = {};
  return config;
}

// Three parameters in two groups, of which only one decays: a large one, a small one, and one
// without a gradient in every other step.
struct Model : Bare {
  explicit Model(torch::Dtype type = torch::kFloat)
      : large(add("large", torch::cos(torch::arange(kNumbers)).to(type))),
        small(add("small", torch::ones({8}, type))),
        rare(add("rare", torch::ones({4}, type))) {}
  Tensor loss(int rank, int step) {
    const Tensor target = torch::sin(torch::arange(kNumbers) * (1 + rank)).to(large.scalar_type());
    Tensor sum = (large - target).pow(2).sum() * 0.5 + (small * (rank + 1)).pow(2).sum() * 0.1;
    return step % 2 == 1 ? sum : sum + (rare * rare).sum();
  }
  torch::optim::SGD sgd(double momentum, bool nesterov, double dampening = 0) {
    const auto options = [&](double decay) {
      return std::make_unique<SGDOptions>(
          SGDOptions(0.05).momentum(momentum).nesterov(nesterov).dampening(dampening).weight_decay(
              decay));
    };
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<Tensor>{large, rare}, options(0.1));
    groups.emplace_back(std::vector<Tensor>{small}, options(0));
    return torch::optim::SGD(groups, SGDOptions(0.05));
  }
  Tensor large, small, rare;
};

using Numbers = std::vector<std::vector<double>>;

Numbers numbers_of(const Model& m) { return {numbers(m.large), numbers(m.small), numbers(m.rare)}; }

// Of every rank.
std::vector<Numbers> train(const Config& config, bool nesterov = false, bool always = false) {
  std::vector<Numbers> all(static_cast<size_t>(config.ranks()));
  run_all(config, [&](const Environment& e) {
    Model m;
    auto opt = m.sgd(0.9, nesterov);
    Trainer sync(m, opt, config, e);
    for (int step = 0; step < kSteps; ++step) {
      sync.backward(m.loss(e.rank, always ? 0 : step), 4);
      (void)sync.step();
      const auto& first = static_cast<SGDOptions&>(opt.param_groups()[0].options());
      EXPECT_EQ(first.momentum(), 0.9);
      EXPECT_EQ(first.weight_decay(), 0.1);
      EXPECT_EQ(first.lr(), 0.05);
    }
    sync.finish();
    all[static_cast<size_t>(e.rank)] = numbers_of(m);
  });
  return all;
}

void expect_close(const Numbers& a, const Numbers& b, double tolerance) {
  for (size_t t = 0; t < b.size(); ++t)
    for (size_t i = 0; i < b[t].size(); ++i)
      ASSERT_NEAR(a[t][i], b[t][i], tolerance) << "tensor " << t << " element " << i;
}

TEST(MomentumCorrection, PlainRoundsEqualSgdWithWeightDecay) {
  for (const bool nesterov : {false, true}) {
    Config config = top_k(2);
    config.start.every_step = kSteps;
    const auto expected = train(plain(config), nesterov, true);
    for (const Numbers& rank : train(config, nesterov, true)) expect_close(rank, expected[0], 1e-6);
  }
}

// With everything sent in 16 bits what is left out is rounding, and comes later.
TEST(MomentumCorrection, AtDensityOneItIsSgdToRounding) {
  const Config config = top_k(2, 1);
  const auto expected = train(plain(config), false, true);
  for (const Numbers& rank : train(config, false, true)) expect_close(rank, expected[0], 5e-3);
}

TEST(MomentumCorrection, OneNodeIsTheIdentity) {
  const Config config = top_k(1);
  EXPECT_EQ(train(config), train(plain(config)));
}

TEST(MomentumCorrection, AllNodesHoldTheSameParameters) {
  const auto ranks = train(top_k(3));
  EXPECT_EQ(ranks[1], ranks[0]);
  EXPECT_EQ(ranks[2], ranks[0]);
}

TEST(MomentumCorrection, AParameterThatNeverHasAGradientStaysUntouched) {
  const Config config = top_k(2);
  run_all(config, [&](const Environment& e) {
    Model m;
    auto opt = m.sgd(0.9, false);
    Trainer sync(m, opt, config, e);
    for (int step = 0; step < 5; ++step) {
      sync.backward(m.loss(e.rank, 1), 4);
      (void)sync.step();
    }
    expect_near(m.rare, {1, 1, 1, 1}, 0);
    sync.finish();
  });
}

// The first error of a run with this optimizer, stepped twice.
std::string error_of(const std::function<std::unique_ptr<torch::optim::Optimizer>(Model&)>& make,
                     const Config& config,
                     const std::function<void(torch::optim::Optimizer&)>& between,
                     torch::Dtype type = torch::kFloat) {
  const auto errors = run_world(config, [&](const Environment& e) {
    Model m(type);
    const auto opt = make(m);
    Trainer sync(m, *opt, config, e);
    for (int step = 0; step < 2; ++step) {
      sync.backward(m.loss(e.rank, 0), 4);
      (void)sync.step();
      between(*opt);
    }
    sync.finish();
  });
  return errors[0];
}

using Made = std::unique_ptr<torch::optim::Optimizer>;
void nothing(torch::optim::Optimizer&) {}
Made sgd_of(Model& m) { return std::make_unique<torch::optim::SGD>(m.sgd(0.9, false)); }
Made adam_of(Model& m) {
  return std::make_unique<torch::optim::Adam>(m.parameters(), torch::optim::AdamOptions(0.01));
}

TEST(MomentumCorrection, NeedsSgdWithOneMomentum) {
  const std::string start = "tier[1].momentum_correction = true: ";
  const std::string remedy = "; set momentum_correction = false";
  EXPECT_EQ(error_of(adam_of, top_k(2), nothing),
            start +
                "moves the momentum of torch's SGD to the nodes that send, and this optimizer "
                "is none" +
                remedy);
  const auto dampened = [](Model& m) -> Made {
    return std::make_unique<torch::optim::SGD>(m.sgd(0.9, false, 0.5));
  };
  EXPECT_EQ(error_of(dampened, top_k(2), nothing),
            start + "needs SGD without dampening, and its group 0 has some" + remedy);
  const auto uneven = [](Model& m) -> Made {
    auto opt = sgd_of(m);
    static_cast<SGDOptions&>(opt->param_groups()[1].options()).momentum(0.5);
    return opt;
  };
  EXPECT_EQ(error_of(uneven, top_k(2), nothing),
            start +
                "needs one momentum for all of SGD's groups, and group 1 has another one than "
                "group 0" +
                remedy);
  const auto change = [](torch::optim::Optimizer& opt) {
    for (auto& group : opt.param_groups()) static_cast<SGDOptions&>(group.options()).momentum(0.5);
  };
  EXPECT_EQ(error_of(sgd_of, top_k(2), change),
            start +
                "the optimizer's momentum changed after the Trainer was made, which no sender "
                "knows" +
                remedy);
  Config without = top_k(2);
  without.tiers[1].codec.momentum_correction = false;
  EXPECT_EQ(error_of(adam_of, without, nothing), "");
  EXPECT_EQ(error_of(adam_of, top_k(1), nothing), "") << "nothing travels";
}

TEST(MomentumCorrection, IsForGradientsInSinglePrecision) {
  EXPECT_EQ(error_of(sgd_of, top_k(2), nothing, torch::kBFloat16), "");
  EXPECT_NE(error_of(sgd_of, top_k(2), nothing, torch::kDouble).find("has some in double"),
            std::string::npos);
}

}  // namespace
}  // namespace hybridsync
