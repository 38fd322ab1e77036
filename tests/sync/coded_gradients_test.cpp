// Gradients that travel as codes on every step, against Deep Gradient Compression (Lin et al. 2018)
// written down once more: serially, with all nodes and owners in one place.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "hybridsync/decide/density_warmup.h"
#include "hybridsync/sync/coder.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

using F = std::vector<float>;

constexpr size_t kParameters = 5000;
constexpr size_t kCount = 5008;  // in lines of 64 bytes
constexpr double kRate = 0.5;    // of VectorReplica
constexpr int kSamples = 8;

Config top_k(int ranks, int nodes, double density) {
  Config config = two_tiers(ranks, nodes, Strategy::every_step);
  CodecOptions& codec = config.tiers[1].codec;
  codec.kind = CodecKind::top_k;
  codec.density = density;
  codec.value_bits = 16;
  codec.momentum_correction = true;
  config.tiers[1].fragment_bytes = 4 * 2048;
  return config;
}

float gradient(int node, int step) { return 0.01f * static_cast<float>(1 + node + step % 3); }
float shape(size_t i, int step) {
  return std::sin(static_cast<float>(7 * i + 3 * static_cast<size_t>(step)));
}

struct Plan {
  Config config;
  int steps = 30;
  SenderMomentum momentum;
  std::function<bool(int node, int step)> breaks = [](int, int) { return false; };
};

struct End {
  F theta;
  StepRecord last;
  int64_t sent = 0;
  int64_t before = 0, after = 0;
  std::vector<int64_t> plain_rounds;
};

std::vector<End> train(const Plan& run) {
  std::vector<End> ends(static_cast<size_t>(run.config.ranks()));
  run_all(run.config, [&](const Environment& e) {
    TestRank rank(run.config, e, kParameters, {}, 1, run.momentum);
    End& end = ends[static_cast<size_t>(e.rank)];
    rank.on_record = [&](const StepRecord& r) {
      end.last = r;
      end.sent += r.bytes_sent_slow;
      end.before += r.codec_bytes_before;
      end.after += r.codec_bytes_after;
      if (r.codec_bytes_before == 0) end.plain_rounds.push_back(r.step);
    };
    for (int step = 0; step < run.steps; ++step) {
      rank.shape = [step](size_t i) { return shape(i, step); };
      const bool breaks = run.breaks(e.node, step);
      (void)rank.step(breaks ? std::numeric_limits<float>::quiet_NaN() : gradient(e.node, step),
                      kSamples);
    }
    rank.finish();
    end.theta = rank.replica.theta;
  });
  return ends;
}

// --- the paper once more

void add_coded(const CodecOptions& codec, F& residual, F& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) residual[i] += numbers[i];
  Coder coder(codec);
  const auto code = coder.encode(residual, 0, {});
  ASSERT_TRUE(coder.decode(*code, std::span<float>(numbers)));
  for (size_t i = 0; i < numbers.size(); ++i) residual[i] -= numbers[i];
}

struct TwinNode {
  F u = F(kCount), v = F(kCount);
};

class Twin {
 public:
  explicit Twin(const Plan& run)
      : run_(run),
        table_(plan_fragments(kCount, 0, run.config.nodes(), run.config.ranks_per_node(),
                              run.config.tiers[1].fragment_bytes)),
        nodes_(static_cast<size_t>(run.config.nodes())) {}

  F train() {
    F theta(kCount, 1);
    for (int step = 0; step < run_.steps; ++step) {
      std::vector<F> gradients;
      for (size_t n = 0; n < nodes_.size(); ++n)
        gradients.push_back(own(static_cast<int>(n), step));
      for (const Fragment& f : table_.fragments) {
        const F mean = round(f, step, gradients);
        for (size_t i = 0; i < mean.size(); ++i)
          theta[static_cast<size_t>(f.offset) + i] -= static_cast<float>(kRate) * mean[i];
      }
    }
    return theta;
  }

 private:
  F own(int node, int step) const {
    F g(kCount);
    for (size_t i = 0; i < kCount; ++i)
      g[i] = gradient(node, step) * static_cast<float>(kSamples) * shape(i, step) / kSamples;
    const double norm = std::sqrt(squared_norm(std::span<const float>(g)));
    const double most = run_.config.train.clip / std::sqrt(run_.config.nodes());
    if (most > 0 && norm + 1e-6 > most) scale(std::span<float>(g), most / (norm + 1e-6));
    return g;
  }

  F round(const Fragment& f, int step, const std::vector<F>& gradients) {
    const int64_t coded = step - run_.config.start.every_step;
    CodecOptions codec = run_.config.tiers[1].codec;
    if (coded >= 0) codec.density = density_after(codec, coded);
    const float m = static_cast<float>(run_.momentum.factor);
    std::vector<F> sent;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (run_.breaks(static_cast<int>(n), step)) continue;
      const auto at = static_cast<size_t>(f.offset), count = static_cast<size_t>(f.count);
      F d(count), v(nodes_[n].v.begin() + at, nodes_[n].v.begin() + at + count);
      for (size_t i = 0; i < count; ++i) {
        float& u = nodes_[n].u[at + i];
        u = m * u + gradients[n][at + i];
        d[i] = run_.momentum.nesterov ? gradients[n][at + i] + m * u : u;
      }
      if (coded >= 0) add_coded(codec, v, d);
      for (size_t i = 0; i < count; ++i) {
        nodes_[n].v[at + i] = v[i];
        if (coded >= 0 && d[i] != 0) nodes_[n].u[at + i] = 0;
      }
      sent.push_back(d);
    }
    std::vector<ConstValues> terms;
    for (const F& s : sent) terms.push_back(std::span<const float>(s));
    F mean(static_cast<size_t>(f.count));
    weighted_mean(terms, std::vector<double>(terms.size(), kSamples), std::span<float>(mean));
    F& owner = owners_[f.id];
    owner.resize(mean.size());
    if (coded >= 0) add_coded(codec, owner, mean);
    return mean;
  }

  const Plan& run_;
  const FragmentTable table_;
  std::vector<TwinNode> nodes_;
  std::map<int, F> owners_;
};

void expect_equal(const std::vector<End>& ends, const F& theta) {
  for (const End& end : ends) {
    ASSERT_EQ(end.theta.size(), theta.size());
    EXPECT_EQ(end.theta, theta);
    EXPECT_EQ(end.last.ledger.mismatches, 0);
    EXPECT_EQ(end.last.ledger.contributed, end.last.ledger.applied);
    EXPECT_EQ(end.last.ledger.lost_norm, 0);
  }
}

void expect_twin(const Plan& run) { expect_equal(train(run), Twin(run).train()); }

TEST(CodedGradients, AreWhatThePaperSays) {
  expect_twin({top_k(2, 3, 0.02), 30, {0.9, false}});
  expect_twin({top_k(1, 2, 0.02), 30, {0.9, true}});
  expect_twin({top_k(1, 2, 0.02), 30, {}});
}

TEST(CodedGradients, BeginAfterTheStartWithFallingDensityAndClippedAtTheirNode) {
  Plan run{top_k(1, 3, 0.02), 20, {0.9, false}};
  run.config.start.every_step = 5;
  run.config.tiers[1].codec.density_warmup = 7;
  run.config.train.clip = 1.5;
  const auto ends = train(run);
  expect_equal(ends, Twin(run).train());
  EXPECT_EQ(ends[0].plain_rounds.size(), 5u + 1) << "and the one that ends training";
}

TEST(CodedGradients, OfANodeThatAbstainsNothingChanges) {
  Plan run{top_k(1, 3, 0.02), 20, {0.9, false}};
  run.breaks = [](int node, int step) { return node == 1 && (step == 4 || step == 9); };
  expect_twin(run);
}

TEST(CodedGradients, TakeFewBytesAndForgetWhatTheyHoldInTheEnd) {
  Plan run{top_k(1, 2, 0.02), 30, {0.9, false}};
  const auto coded = train(run);
  run.config.tiers[1].codec = {};
  const auto plain = train(run);
  EXPECT_LT(coded[0].sent, plain[0].sent / 5);
  EXPECT_LT(coded[0].after, coded[0].before / 20);
  EXPECT_EQ(plain[0].before, 0);
  EXPECT_GT(coded[0].last.ledger.decayed_norm, 0);
  EXPECT_EQ(plain[0].last.ledger.decayed_norm, 0);
}

// Where the receiver's momentum would have been.
TEST(CodedGradients, PlainRoundsAreThoseOfAnyRunWithMomentum) {
  for (const bool nesterov : {false, true}) {
    Plan run{top_k(2, 2, 0.02), 20, {0.9, nesterov}};
    run.config.start.every_step = 20;
    const auto ends = train(run);
    run.config.tiers[1].codec = {};
    const auto expected = train(run);
    for (const End& end : ends)
      for (size_t i = 0; i < kCount; ++i)
        ASSERT_NEAR(end.theta[i], expected[0].theta[i], 1e-6) << i;
  }
}

TEST(CodedGradients, OneNodeIsTheIdentity) {
  Plan run{top_k(2, 1, 0.02), 20, {0.9, false}};
  run.config.train.clip = 1;
  const auto ends = train(run);
  run.config.tiers[1].codec = {};
  expect_equal(ends, train(run)[0].theta);
  EXPECT_EQ(ends[0].before, 0);
}

// By every codec, with one residual at each node and one at the owner.
TEST(CodedGradients, OfEveryCodecFollowTheMean) {
  for (const CodecKind kind : {CodecKind::bf16, CodecKind::int8, CodecKind::int4, CodecKind::int2,
                               CodecKind::sign, CodecKind::levels, CodecKind::top_k}) {
    Plan run{top_k(1, 2, 0.1), 60, {}};
    run.config.tiers[1].codec.kind = kind;
    run.config.tiers[1].codec.momentum_correction = false;
    const auto ends = train(run);
    run.config.tiers[1].codec = {};
    const auto expected = train(run);
    EXPECT_EQ(ends[0].theta, ends[1].theta);
    EXPECT_LT(ends[0].sent, expected[0].sent * 6 / 10);
    // What two residuals hold, of which each is of a few steps.
    double apart = 0, moved = 0;
    for (size_t i = 0; i < kParameters; ++i) {
      apart += std::pow(ends[0].theta[i] - expected[0].theta[i], 2);
      moved += std::pow(expected[0].theta[i] - 1, 2);
    }
    EXPECT_GT(apart, 0);
    EXPECT_LT(apart, (kind == CodecKind::top_k ? 0.9 : 0.4) * moved) << static_cast<int>(kind);
  }
}

// A parameter without a gradient in a step moves where earlier gradients arrive, and only there.
TEST(CodedGradients, MoveWhatEarlierOnesWaitFor) {
  const Config config = top_k(1, 2, 0.02);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, kParameters, {});
    const auto used = [&] { return rank.replica.last_used.at(0); };
    rank.uses = false;
    (void)rank.step(0, kSamples);
    EXPECT_FALSE(used());
    rank.uses = true;
    (void)rank.step(1, kSamples);
    EXPECT_TRUE(used());
    rank.uses = false;
    const F before = rank.replica.theta;
    (void)rank.step(0, kSamples);
    EXPECT_TRUE(used());
    EXPECT_NE(rank.replica.theta, before);
    for (int step = 0; step < 60; ++step) (void)rank.step(0, kSamples);
    EXPECT_FALSE(used()) << "all has arrived";
    rank.finish();
  });
}

}  // namespace
}  // namespace hybridsync
