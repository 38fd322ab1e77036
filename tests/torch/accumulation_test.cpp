// Accumulation and gradients: one test for each way in which similar systems were reported wrong.
#include "tests/torch/ranks.h"

namespace hybridsync {
namespace {

using torch::Tensor;

// The loss whose gradient in w is this constant.
Tensor pull(const Tensor& w, std::vector<double> gradient) {
  return (w * torch::tensor(gradient, w.options().requires_grad(false))).sum();
}

// Mean loss over rows of different lengths: sum of squares, over tokens.
Tensor token_loss(const Tensor& w, const Tensor& tokens) { return ((w * tokens).pow(2)).mean(); }

TEST(Accumulation, UnevenTokenCountsEqualOneBatch) {
  torch::manual_seed(1);
  const Tensor all = torch::randn({112}, torch::kDouble);
  Bare one, many;
  Tensor a = one.add("w", torch::ones({1}, torch::kDouble));
  Tensor b = many.add("w", torch::ones({1}, torch::kDouble));
  auto opt_a = sgd(one, 0.1), opt_b = sgd(many, 0.1);
  Trainer whole(one, opt_a, small_run(1, 1));
  whole.backward(token_loss(a, all), 112);
  ASSERT_TRUE(whole.step());
  Trainer parts(many, opt_b, small_run(1, 1, 3));
  parts.backward(token_loss(b, all.narrow(0, 0, 11)), 11);
  EXPECT_FALSE(parts.step());
  parts.backward(token_loss(b, all.narrow(0, 11, 101)), 101);
  EXPECT_FALSE(parts.step());
  const Tensor masked = (b * torch::zeros({0}, torch::kDouble)).mean();  // NaN: no token at all
  parts.backward(masked, 0);
  const auto record = parts.step();
  ASSERT_TRUE(record);
  EXPECT_FALSE(record->skipped);
  EXPECT_EQ(record->samples, 112);
  expect_near(b, numbers(a), 1e-14);
}

TEST(Accumulation, TokensOnTwoRanksEqualOneProcessWithAllFour) {
  torch::manual_seed(1);
  const Tensor all = torch::randn({115}, torch::kDouble);
  Bare one;
  Tensor a = one.add("w", torch::ones({1}, torch::kDouble));
  auto opt_a = sgd(one, 0.1);
  Trainer whole(one, opt_a, small_run(1, 1));
  whole.backward(token_loss(a, all), 115);
  ASSERT_TRUE(whole.step());
  const int counts[2][2] = {{3, 5}, {7, 100}};
  const int starts[2][2] = {{0, 3}, {8, 15}};
  const Config config = small_run(2, 1, 2);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::ones({1}, torch::kDouble));
    auto opt = sgd(m, 0.1);
    Trainer sync(m, opt, config, e);
    for (int i = 0; i < 2; ++i) {
      const int n = counts[e.rank][i];
      sync.backward(token_loss(w, all.narrow(0, starts[e.rank][i], n)), n);
      (void)sync.step();
    }
    expect_near(w, numbers(a), 1e-14);
    sync.finish();
  });
}

TEST(Accumulation, MeanOfMeansOnRequest) {
  Config config = small_run(1, 1, 2);
  config.accumulate.weighting = Weighting::mean_of_means;
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, config);
  sync.backward(pull(w, {1}), 1);
  sync.backward(pull(w, {3}), 99);
  (void)sync.step();
  expect_near(w, {-2}, 1e-7);
}

TEST(Accumulation, TheTailIsAppliedByWhatItHolds) {
  for (int batches : {7, 3, 8}) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, small_run(1, 1, 4));
    for (int i = 0; i < batches; ++i) {
      sync.backward(pull(w, {double(i)}), 1);
      (void)sync.step();
    }
    sync.end_epoch();
    const double expected = batches == 7 ? -(1.5 + 5) : batches == 3 ? -1 : -(1.5 + 5.5);
    expect_near(w, {expected}, 1e-6);
    EXPECT_EQ(sync.steps(), (batches + 3) / 4);
    sync.backward(pull(w, {100}), 1);  // nothing has leaked over the border
    sync.finish();
    expect_near(w, {expected - 100}, 1e-4);
  }
}

TEST(Accumulation, ZeroStepsAreRefused) {
  Bare m;
  (void)m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  EXPECT_THROW(Trainer(m, opt, small_run(1, 1, 0)), ConfigError);
}

TEST(Accumulation, TheScheduleAdvancesOncePerOptimizerStep) {
  Config config = small_run(2, 1, 4);
  config.train.steps = 10;
  config.learning_rate.schedule = LrSchedule::cosine;
  config.learning_rate.final_factor = 0;
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 2);
    Trainer sync(m, opt, config, e);
    std::vector<double> lr;
    for (int i = 0; i < 40; ++i) {
      sync.backward(pull(w, {1}), 1);
      if (auto record = sync.step()) lr.push_back(record->lr);
    }
    ASSERT_EQ(lr.size(), 10u);
    EXPECT_EQ(lr.front(), 2);
    EXPECT_NEAR(lr[9], 0, 1e-12);
    for (size_t i = 1; i < lr.size(); ++i) EXPECT_LT(lr[i], lr[i - 1]);
    // Between steps the optimizer shows the base, so that nothing compounds.
    EXPECT_EQ(opt.param_groups()[0].options().get_lr(), 2);
    sync.finish();
  });
}

TEST(Accumulation, TheRateIsScaledFromTheBaseByTheWholeBatch) {
  Config config = small_run(2, 2, 2);
  config.learning_rate.reference_batch = 4;
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; i < 2; ++i) sync.backward(pull(w, {1}), 8);
      EXPECT_EQ(sync.step()->lr, 4);  // sqrt(2 * 2 * 2 * 8 / 4)
    }
    sync.finish();
  });
}

TEST(Accumulation, ClippingSeesTheWindowsMean) {
  for (double scale : {1.0, 1024.0})
    for (Overlap overlap : {Overlap::off, Overlap::backward}) {
      Config config = small_run(2, 1, 1);
      config.train.clip = 1;
      config.tiers[0].overlap = overlap;
      run_all(config, [&](const Environment& e) {
        Bare m;
        Tensor w = m.add("w", torch::zeros({2}));
        auto opt = sgd(m, 1);
        Trainer sync(m, opt, config, e);
        const Tensor loss =
            pull(w, e.rank == 0 ? std::vector<double>{20, 0} : std::vector<double>{0, 20});
        sync.backward(loss * scale, 1, scale);
        EXPECT_NEAR(sync.step()->grad_norm, 10 * std::sqrt(2.0), 1e-5);
        expect_near(w, {-std::sqrt(0.5), -std::sqrt(0.5)}, 1e-6);
        sync.finish();
      });
    }
}

TEST(Accumulation, OneReductionPerWindowAlsoWhenForwardsComeFirst) {
  const Config config = small_run(2, 1, 4);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    for (int window = 1; window <= 3; ++window) {
      std::vector<Tensor> losses;
      for (int i = 0; i < 4; ++i) losses.push_back(pull(w, {1}));
      for (const Tensor& loss : losses) {
        sync.backward(loss, 1);
        (void)sync.step();
      }
      EXPECT_EQ(sync.totals().reductions, window);
    }
    sync.finish();
  });
}

TEST(Accumulation, ForgettingStepIsAClearError) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1, 2));
  sync.backward(pull(w, {1}), 1);
  sync.backward(pull(w, {1}), 1);
  EXPECT_THROW(sync.backward(pull(w, {1}), 1), ConfigError);
}

TEST(Accumulation, AConstantLossIsLoggedAsItIs) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1, 4));
  std::optional<StepRecord> record;
  for (int i = 0; i < 4; ++i) {
    sync.backward(pull(w, {0}) + 3.0, 1 + i);
    record = sync.step();
  }
  EXPECT_EQ(record->loss, 3.0);
}

TEST(Accumulation, LossScalesOfRanksMayDiffer) {
  const Config config = small_run(2, 1);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({2}, torch::kHalf));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    const double scale = e.rank == 0 ? 1024 : 2048;
    sync.backward(pull(w, {1, 2}) * scale, 1, scale);
    EXPECT_NEAR(sync.step()->grad_norm, std::sqrt(5.0), 1e-3);
    expect_near(w, {-1, -2}, 1e-3);
    sync.finish();
  });
}

TEST(Accumulation, AnInfiniteGradientOnOneRankIsSkippedByAll) {
  const Config config = small_run(2, 1);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({2}));
    torch::optim::Adam opt(m.parameters(), torch::optim::AdamOptions(0.1));
    Trainer sync(m, opt, config, e);
    std::vector<double> before;
    for (int step = 1; step <= 4; ++step) {
      const bool bad = step == 3 && e.rank == 1;
      if (step == 3) before = numbers(w);
      sync.backward(pull(w, {bad ? INFINITY : 1, 1}), 1);
      const auto record = sync.step();
      EXPECT_EQ(record->skipped, step == 3);
      EXPECT_EQ(record->step, step);
      if (step == 3) expect_near(w, before, 0);
    }
    auto& state =
        static_cast<torch::optim::AdamParamState&>(*opt.state().at(w.unsafeGetTensorImpl()));
    EXPECT_EQ(state.step(), 3);
    sync.finish();
  });
}

TEST(Accumulation, HalfPrecisionAccumulatesInSingle) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}, torch::kBFloat16));
  (void)m.add_buffer("mask", torch::ones({3}, torch::kBool));
  (void)m.add_buffer("counter", torch::zeros({1}, torch::kLong));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1, 257));
  std::optional<StepRecord> record;
  for (int i = 0; i < 257; ++i) {
    sync.backward(pull(w, {i == 0 ? 256.0 : 1.0}), 1);
    record = sync.step();
  }
  EXPECT_NEAR(record->grad_norm, 512.0 / 257, 1e-6);  // bf16 alone would stay at 256 / 257
  EXPECT_EQ(w.scalar_type(), torch::kBFloat16);
}

TEST(Accumulation, SumThenDivideForAnyNumberOfElements) {
  const Config config = small_run(3, 1);
  run_all(config, [&](const Environment& e) {
    Bare m;
    std::vector<Tensor> w;
    for (int n : {1, 3, 2, 5}) w.push_back(m.add("w" + std::to_string(n), torch::zeros({n})));
    w.push_back(m.add("scalar", torch::zeros({})));
    w.push_back(m.add("empty", torch::zeros({0})));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    Tensor loss = torch::zeros({});
    for (const Tensor& t : w) loss = loss + t.sum() * double(e.rank);
    sync.backward(loss, 1);
    (void)sync.step();
    for (const Tensor& t : w) expect_near(t, std::vector<double>(size_t(t.numel()), -1), 1e-6);
    sync.finish();
  });
}

TEST(Accumulation, UnusedEverywhereStaysUntouchedUnusedHereGetsTheAverage) {
  for (int nodes : {1, 2}) {
    const Config config = small_run(2, nodes);
    run_all(config, [&](const Environment& e) {
      Bare m;
      Tensor a = m.add("a", torch::ones({4})), b = m.add("b", torch::ones({4}));
      Tensor c = m.add("c", torch::ones({4}));
      auto opt = sgd(m, 1, 0.5);  // weight decay would show
      Trainer sync(m, opt, config, e);
      Tensor loss = a.sum();
      if (e.rank == config.ranks() - 1) loss = loss + b.sum() * double(config.ranks());
      sync.backward(loss, 1);
      (void)sync.step();
      expect_near(a, std::vector<double>(4, 1 - 1.5), 1e-6);
      expect_near(b, std::vector<double>(4, 1 - 1.5), 1e-6);
      expect_near(c, std::vector<double>(4, 1), 0);
      EXPECT_FALSE(c.grad().defined());
      sync.finish();
    });
  }
}

TEST(Accumulation, ZeroGradInAnyFormNeitherLosesNorLeaks) {
  for (int way = 0; way < 4; ++way) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({2}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, small_run(1, 1, 2));
    for (int step = 1; step <= 3; ++step) {
      for (int i = 0; i < 2; ++i) {
        if (way == 1) opt.zero_grad(true);
        if (way == 2) opt.zero_grad(false);
        if (way == 3) w.mutable_grad() = torch::full({2}, 1e6f);
        sync.backward(pull(w, {1, 2}), 1);
        (void)sync.step();
      }
      expect_near(w, {-1.0 * step, -2.0 * step}, 1e-6);
      expect_near(w.grad(), {1, 2}, 1e-6);  // to look at, until the next backward
    }
  }
}

TEST(Accumulation, ARankWithFewerBatchesDoesNotHang) {
  for (int nodes : {1, 2}) {
    const Config config = small_run(2, nodes, 2);
    run_all(config, [&](const Environment& e) {
      Bare m;
      Tensor w = m.add("w", torch::zeros({1}));
      auto opt = sgd(m, 1);
      Trainer sync(m, opt, config, e);
      for (int i = 0; i < (e.rank == 0 ? 5 : 3); ++i) {
        sync.backward(pull(w, {1}), 1);
        (void)sync.step();
      }
      sync.finish();
      expect_near(w, {-3}, 1e-6);
      EXPECT_EQ(sync.samples(), 5 + 3 * (config.ranks() - 1));
    });
  }
}

TEST(Accumulation, EndEpochWaitsForTheNodesOtherRanks) {
  const Config config = small_run(2, 1, 2);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    for (int epoch = 1; epoch <= 2; ++epoch) {
      for (int i = 0; i < (e.rank == 0 ? 5 : 3); ++i) {
        sync.backward(pull(w, {1}), 1);
        (void)sync.step();
      }
      sync.end_epoch();
      EXPECT_EQ(sync.steps(), 3 * epoch);
      expect_near(w, {-3.0 * epoch}, 1e-6);
    }
    sync.finish();
  });
}

TEST(Accumulation, AnEmptyBatchOnOneRankHasNoWeight) {
  const Config config = small_run(2, 1);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    if (e.rank == 0)
      sync.backward(pull(w, {1}), 4);
    else
      sync.empty();
    EXPECT_EQ(sync.step()->samples, 4);
    expect_near(w, {-1}, 1e-7);
    sync.finish();
  });
}

TEST(Accumulation, FrozenTiedAndMixedParameters) {
  const Config config = small_run(2, 1);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor a = m.add("a", torch::zeros({2}));
    Tensor d = m.add("d", torch::zeros({2}, torch::kDouble));
    (void)m.freeze("frozen_half", torch::ones({2}, torch::kHalf));  // the only one of its type
    (void)m.add("tied", a);
    torch::optim::SGD opt({a, d}, torch::optim::SGDOptions(1));
    Trainer sync(m, opt, config, e);
    sync.backward((a * 2).sum() + d.sum().to(torch::kFloat), 1);
    (void)sync.step();
    expect_near(a, {-2, -2}, 1e-6);
    expect_near(d, {-1, -1}, 1e-12);
    sync.finish();
  });
}

TEST(Accumulation, NothingToTrainIsAPlainError) {
  Bare none, frozen, buffers;
  Tensor stray = torch::zeros({1}).requires_grad_();
  (void)frozen.freeze("w", torch::zeros({1}));
  (void)buffers.add_buffer("b", torch::zeros({1}));
  torch::optim::SGD opt({stray}, torch::optim::SGDOptions(1));
  for (Bare* m : {&none, &frozen, &buffers})
    EXPECT_THROW(Trainer(*m, opt, small_run(1, 1)), ConfigError);
}

TEST(Accumulation, ChangesOfTheModelAfterwardsAreRefusedByName) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1})), v = m.add("v", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1));
  v.set_requires_grad(false);
  sync.backward(pull(w, {1}), 1);
  try {
    (void)sync.step();
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("parameter v was frozen"), std::string::npos) << e.what();
  }
}

TEST(Accumulation, AParameterGroupAddedAfterwardsIsRefused) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1));
  opt.add_param_group(torch::optim::OptimizerParamGroup(
      {torch::zeros({1}).requires_grad_()}, std::make_unique<torch::optim::SGDOptions>(1)));
  sync.backward(pull(w, {1}), 1);
  EXPECT_THROW((void)sync.step(), ConfigError);
}

TEST(Accumulation, DifferentModelsAreRefusedWithTheFirstDifference) {
  const Config config = small_run(2, 1);
  const auto errors = run_world(config, [&](const Environment& e) {
    Bare m;
    (void)m.add("same", torch::zeros({2}));
    (void)m.add("w", torch::zeros({2, e.rank == 0 ? 3 : 4}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 0 has parameter w Float[2, 3]"), std::string::npos) << error;
    EXPECT_NE(error.find("rank 1 has parameter w Float[2, 4]"), std::string::npos) << error;
  }
}

TEST(Accumulation, DifferentWeightsBecomeThoseOfRankZero) {
  const Config config = small_run(2, 2);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::full({3}, double(e.rank)));
    Tensor b = m.add_buffer("b", torch::full({2}, double(e.rank)));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    expect_near(w, {0, 0, 0}, 0);
    expect_near(b, {0, 0}, 0);
    sync.finish();
  });
}

TEST(Accumulation, SparseEmbeddingGradientsAreTakenWhole) {
  const Config config = small_run(2, 1);
  run_all(config, [&](const Environment& e) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(4, 2).sparse(true).padding_idx(3));
    {
      torch::NoGradGuard no_grad;
      table->weight.zero_();
    }
    auto opt = sgd(*table, 1);
    Trainer sync(*table, opt, config, e);
    // Rank 1 has nothing but padding.
    const Tensor index = e.rank == 0 ? torch::tensor({0, 1, 1}) : torch::tensor({3, 3, 3});
    sync.backward(table->forward(index).sum(), 1);
    (void)sync.step();
    expect_near(table->weight, {-0.5, -0.5, -1, -1, 0, 0, 0, 0}, 1e-6);
    sync.finish();
  });
}

TEST(Accumulation, NoBackwardWithoutAGradientOrAfterTheEnd) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1));
  EXPECT_THROW(sync.backward(torch::ones({}), 1), ConfigError);
  EXPECT_THROW(sync.backward(w * torch::ones({2}), 1), ConfigError);
  EXPECT_THROW(sync.backward(pull(w, {1}), -1), ConfigError);
  EXPECT_THROW(sync.backward(pull(w, {1}), NAN), ConfigError);
  sync.finish();
  sync.finish();
  EXPECT_THROW(sync.backward(pull(w, {1}), 1), ConfigError);
}

TEST(Accumulation, AnExceptionInTheMiddleOfAReductionEndsAllRanksSoon) {
  Config config = small_run(2, 1);
  config.tiers[0].bucket_bytes = 64;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_world(config, [&](const Environment& e) {
    Bare m;
    Tensor first = m.add("first", torch::zeros({16})), last = m.add("last", torch::zeros({16}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    // Backward reaches "last" before "first", so one bucket has left when this goes wrong.
    Tensor x = first * 2;
    if (e.rank == 0)
      x.register_hook([](Tensor g) -> Tensor {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        throw std::runtime_error("the user's own");
        return g;
      });
    sync.backward((x * 3).sum() + last.sum(), 1);
    (void)sync.step();
  });
  EXPECT_NE(errors[0].find("the user's own"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1], "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Accumulation, AfterAnExceptionInBackwardTheWindowIsNotUsed) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1, 2));
  Tensor x = w * 2;
  x.register_hook([](Tensor g) -> Tensor {
    throw std::runtime_error("the user's own");
    return g;
  });
  EXPECT_ANY_THROW(sync.backward(x.sum(), 1));
  EXPECT_THROW(sync.backward(pull(w, {1}), 1), RunEnded);
  EXPECT_THROW(sync.finish(), RunEnded);
}

TEST(Accumulation, ASchedulerOfTheUsersOwnHoldsForRanksThatHaveFinished) {
  for (int nodes : {1, 2}) {
    const Config config = small_run(2, nodes);
    run_all(config, [&](const Environment& e) {
      Bare m;
      Tensor w = m.add("w", torch::zeros({1}));
      auto opt = sgd(m, 1);
      Trainer sync(m, opt, config, e);
      for (int i = 0; i < (e.rank == 0 ? 5 : 3); ++i) {
        sync.backward(pull(w, {1}), 1);
        (void)sync.step();
        auto& options = opt.param_groups()[0].options();
        options.set_lr(options.get_lr() / 2);
      }
      sync.finish();
      expect_near(w, {-(1 + 0.5 + 0.25 + 0.125 + 0.0625)}, 1e-6);
    });
  }
}

TEST(Accumulation, AnInfiniteLossWithFiniteGradientsIsStillLearnedFrom) {
  const Config config = small_run(1, 2, 1, Strategy::periodic, 2);
  run_all(config, [&](const Environment& e) {
    Bare m;
    Tensor w = m.add("w", torch::zeros({1}));
    auto opt = sgd(m, 1);
    Trainer sync(m, opt, config, e);
    for (int i = 0; i < 2; ++i) {
      sync.backward(pull(w, {1}) + INFINITY, 1);
      (void)sync.step();
    }
    expect_near(w, {-2}, 1e-6);
    sync.finish();
  });
}

TEST(Accumulation, AScaledLossReachesBackwardScaled) {
  Bare m;
  Tensor w = m.add("w", torch::zeros({1}));
  auto opt = sgd(m, 1);
  Trainer sync(m, opt, small_run(1, 1));
  Tensor x = w * 2;
  double seen = 0;
  x.register_hook([&](Tensor g) {
    seen = g.item<double>();
    return g;
  });
  sync.backward(x.sum() * 1024, 8, 1024);
  (void)sync.step();
  EXPECT_EQ(seen, 1024);
  expect_near(w, {-2}, 1e-6);
}

TEST(Accumulation, OptimizersThatNeedAClosureAreRefused) {
  Bare m;
  (void)m.add("w", torch::zeros({1}));
  torch::optim::LBFGS opt(m.parameters(), torch::optim::LBFGSOptions(1));
  EXPECT_THROW(Trainer(m, opt, small_run(1, 1)), ConfigError);
}

TEST(Accumulation, OuterRoundsCountSteps) {
  const Config config = small_run(1, 2, 1, Strategy::periodic, 4);
  run_all(config, [&](const Environment& e) {
    Bare m;
    std::vector<Tensor> w;
    for (int i = 0; i < 10; ++i) w.push_back(m.add("w" + std::to_string(i), torch::zeros({3})));
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (int g = 0; g < 3; ++g)
      groups.emplace_back(
          std::vector<Tensor>(w.begin() + g * 3, g == 2 ? w.end() : w.begin() + g * 3 + 3));
    torch::optim::SGD opt(groups, torch::optim::SGDOptions(1));
    Trainer sync(m, opt, config, e);
    for (int step = 0; step < 12; ++step) {
      Tensor loss = torch::zeros({});
      for (const Tensor& t : w) loss = loss + t.sum();
      sync.backward(loss, 1);
      (void)sync.step();
    }
    EXPECT_EQ(sync.totals().rounds, 3);
    sync.finish();
  });
}

// What codes leave out of half precision stays beside the parameters; double travels as it is.
TEST(Accumulation, CodesAreForSinglePrecision) {
  const auto train = [](torch::Dtype type, Residual residual) {
    Config config = small_run(1, 2, 1, Strategy::periodic, 2);
    config.tiers[1].codec.kind = CodecKind::int4;
    config.tiers[1].codec.residual = residual;
    const auto errors = run_world(config, [&](const Environment& e) {
      Bare m;
      Tensor w = m.add("w", torch::zeros({5000}, type));
      torch::optim::SGD opt(m.parameters(), torch::optim::SGDOptions(0.25));
      Trainer sync(m, opt, config, e);
      for (int step = 0; step < 8; ++step) {
        sync.backward((w * (torch::arange(5000) % 64).to(type)).sum(), 1);
        (void)sync.step();
      }
      sync.finish();
      const Tensor expected = -2 * (torch::arange(5000) % 64).to(torch::kFloat);
      EXPECT_TRUE(torch::allclose(w.detach().to(torch::kFloat), expected, 0.02, 0.01));
    });
    return errors[0];
  };
  EXPECT_EQ(train(torch::kFloat, Residual::buffer), "");
  EXPECT_EQ(train(torch::kBFloat16, Residual::automatic), "");
  EXPECT_NE(train(torch::kBFloat16, Residual::local).find("needs parameters in single precision"),
            std::string::npos);
  EXPECT_NE(train(torch::kDouble, Residual::automatic).find("this model has some in double"),
            std::string::npos);
}

}  // namespace
}  // namespace hybridsync
