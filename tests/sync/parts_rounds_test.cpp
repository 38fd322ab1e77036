// Rounds of parts, with codes, gains and outer momentum, against a serial twin.
#include <gtest/gtest.h>

#include <cmath>

#include "hybridsync/config/presets.h"
#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/outer.h"
#include "hybridsync/sync/coder.h"
#include "hybridsync/sync/gains.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

using F = std::vector<float>;
constexpr int kNodes = 3, kSteps = 40;
const std::vector<ParameterShape> kModel = {
    {Real::f32, 9000}, {Real::f32, 100}, {Real::f32, 4000}, {Real::f32, 12000}, {Real::f32, 7}};

Config config_of(double lr, int64_t every, int parts, int ranks = 1) {
  Config config = two_tiers(ranks, kNodes, Strategy::periodic);
  TierConfig& tier = config.tiers[1];
  find_preset("sparse_sign")->apply(tier);
  tier.every = every;
  tier.parts = parts;
  tier.outer.lr = lr;
  return config;
}

float gradient(int node, int64_t step) {
  return 0.01f * (static_cast<float>(1 + node) + std::cos(static_cast<float>(3 * step + node)));
}
float shape(size_t i) { return std::sin(static_cast<float>(7 * i)); }

// The parameters of a node after every step, and after the end.
std::vector<F> train(const Config& config, int wanted = 0, int64_t* pulls = nullptr) {
  std::vector<F> trace;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, kModel, {});
    rank.shape = shape;
    for (int64_t step = 1; step <= kSteps; ++step) {
      (void)rank.step(gradient(e.node, step), 8);
      if (e.rank == wanted) trace.push_back(rank.replica.theta);
    }
    rank.finish();
    if (e.rank == wanted) trace.push_back(rank.replica.theta);
    if (e.rank == wanted && pulls) *pulls = rank.replica.pulls;
  });
  return trace;
}

// mathematics: d, y, w, u, h, b, a of one process that plays all nodes.
class Twin {
 public:
  explicit Twin(const Config& config)
      : tier_(config.tiers[1]),
        layout_(plan_buckets(kModel, 1 << 20)),
        table_(plan_parts(layout_.count_f32, 0, kNodes, 1, tier_.fragment_bytes, tier_.parts,
                          config.train.seed)),
        coder_(tier_.codec),
        anchor_(static_cast<size_t>(layout_.count_f32), 1.0f),
        theta_(kNodes, anchor_) {
    for (const Fragment& f : table_.fragments) {
      const auto n = static_cast<size_t>(f.count);
      h_.emplace_back(n);
      b_.emplace_back(n);
    }
    // An owner knows only its own rounds.
    for (int owner = 0; owner < kNodes; ++owner) gains_.emplace_back(true);
  }

  std::vector<F> train() {
    std::vector<F> trace;
    for (int64_t step = 1; step <= kSteps; ++step) {
      for (int node = 0; node < kNodes; ++node)
        for (size_t i = 0; i < anchor_.size(); ++i)
          theta_[node][i] -= 0.5f * gradient(node, step) * shape(i);
      for (const Fragment& f : table_.fragments)
        if (step % tier_.every == first(f) % tier_.every && step >= first(f)) exchange(f);
      trace.push_back(theta_[0]);
    }
    return trace;
  }

  // The last round: whatever is left, plainly.
  F end() const {
    F mean(anchor_.size());
    for (const F& theta : theta_)
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += (anchor_[i] - theta[i]) / kNodes;
    for (const Fragment& f : table_.fragments) {
      size_t at = 0;
      for (const Piece& p : table_.pieces(f))
        for (int64_t i = p.offset; i < p.offset + p.count; ++i) mean[i] += 0.9f * h_[f.id][at++];
    }
    F end = anchor_;
    for (size_t i = 0; i < end.size(); ++i) end[i] -= mean[i];
    return end;
  }

 private:
  int64_t first(const Fragment& f) const {
    return tier_.every - f.part * tier_.every / tier_.parts;
  }
  F part(const F& of, const Fragment& f) const {
    F out;
    for (const Piece& p : table_.pieces(f))
      out.insert(out.end(), of.begin() + p.offset, of.begin() + p.offset + p.count);
    return out;
  }
  void put(const F& numbers, const Fragment& f, F& into) const {
    size_t at = 0;
    for (const Piece& p : table_.pieces(f))
      for (int64_t i = 0; i < p.count; ++i) into[p.offset + i] = numbers[at++];
  }
  F decoded(const Bytes& code, size_t count) {
    F out(count);
    EXPECT_TRUE(coder_.decode(code, std::span<float>(out)));
    return out;
  }

  void exchange(const Fragment& f) {
    const auto n = static_cast<size_t>(f.count);
    F a = part(anchor_, f), w(n);
    std::vector<F> y, left(kNodes, F(n));
    double squares = 0;
    for (int node = 0; node < kNodes; ++node) {
      const F theta = part(theta_[node], f);
      F d(n);
      for (size_t i = 0; i < n; ++i) d[i] = a[i] - theta[i];
      squares += squared_norm(std::span<const float>(d));
      y.push_back(decoded(*coder_.encode(d, 0, left[node]), n));
      for (size_t i = 0; i < n; ++i) w[i] += y.back()[i] / kNodes;
    }
    const F mean = w;
    F& h = h_[f.id];
    const F u = decoded(*coder_.encode(w, 0.9f, h), n);
    move(f, y, mean, u, squares, a);
    put(a, f, anchor_);
    for (int node = 0; node < kNodes; ++node) {
      F theta(n);
      for (size_t i = 0; i < n; ++i) theta[i] = a[i] - 0.8f * left[node][i];
      put(theta, f, theta_[node]);
    }
  }

  void move(const Fragment& f, const std::vector<F>& y, const F& mean, const F& u, double squares,
            F& a) {
    F& b = b_[f.id];
    for (size_t i = 0; i < b.size(); ++i) b[i] = 0.3f * b[i] + u[i];
    const auto by = [&](double gain) {
      for (size_t i = 0; i < a.size(); ++i) a[i] -= static_cast<float>(gain) * (u[i] + 0.3f * b[i]);
    };
    if (tier_.outer.lr != kAutoLr) return by(tier_.outer.lr);
    Gains& gains = gains_[table_.owner(f.id)];
    const std::vector<ConstValues> values(y.begin(), y.end());
    gains.contributed(values, mean, squares);
    F whole = u;
    for (size_t i = 0; i < whole.size(); ++i) whole[i] += h_[f.id][i];
    gains.encoded(squared_norm(std::span<const float>(whole)),
                  squared_norm(std::span<const float>(u)));
    by(gain_of(std::to_integer<uint8_t>(gains.find(kNodes))));
  }

  TierConfig tier_;
  Layout layout_;
  FragmentTable table_;
  Coder coder_;
  F anchor_;
  std::vector<F> theta_, h_, b_;
  std::vector<Gains> gains_;
};

double distance(const F& a, const F& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

class PartsRounds : public testing::TestWithParam<std::tuple<double, int64_t, int>> {};

TEST_P(PartsRounds, AreTheTwinsAtEveryStep) {
  const auto [lr, every, parts] = GetParam();
  const Config config = config_of(lr, every, parts);
  int64_t pulls = -1;
  const auto trace = train(config, 0, &pulls);
  Twin twin(config);
  const auto expected = twin.train();
  for (size_t step = 0; step < expected.size(); ++step)
    ASSERT_LT(distance(trace[step], expected[step]), 2e-5) << "step " << step + 1;
  EXPECT_LT(distance(trace.back(), twin.end()), 2e-5);
  EXPECT_GT(distance(trace.back(), F(trace.back().size(), 1.0f)), 0.1) << "something was learned";
  EXPECT_GE(pulls, kSteps / every * parts) << "one for each fragment's round";
}

INSTANTIATE_TEST_SUITE_P(FixedAndSelfTuned, PartsRounds,
                         testing::Values(std::tuple(3.0, 4, 4), std::tuple(1.5, 7, 3),
                                         std::tuple(2.0, 5, 1), std::tuple(kAutoLr, 4, 4),
                                         std::tuple(kAutoLr, 6, 2)));

TEST(PartsRounds, RanksOfANodeHoldTheSameBitsAndInTheEndAllDo) {
  const Config config = config_of(kAutoLr, 4, 4, 2);
  const auto first = train(config, 0), second = train(config, 1), other = train(config, 5);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.back(), other.back());
  EXPECT_NE(first.front(), other.front()) << "what is not sent stays with its node";
}

TEST(PartsRounds, OneNodeIsTheIdentity) {
  Config config = config_of(kAutoLr, 4, 4);
  config.tiers[1].size = 1;
  const F theta = train(config).back();
  F expected(theta.size(), 1.0f);
  for (int64_t step = 1; step <= kSteps; ++step)
    for (size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.5f * gradient(0, step) * shape(i);
  EXPECT_LT(distance(theta, expected), 1e-5);
}

}  // namespace
}  // namespace hybridsync
