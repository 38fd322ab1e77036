#include "hybridsync/simulate/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hybridsync {
namespace {

class Quadratic : public Problem {
 public:
  Quadratic(int nodes, int64_t parameters, Random random) : parameters_(parameters) {
    for (int64_t i = 0; i < nodes * parameters; ++i) {
      minima_.push_back(static_cast<float>(random.normal()));
      curvatures_.push_back(static_cast<float>(random.uniform(0.2, 1.0)));
    }
  }
  int64_t parameters() const override { return parameters_; }
  double learning_rate() const override { return 0.1; }
  void start(std::span<float> parameters) const override {
    std::fill(parameters.begin(), parameters.end(), 3.0f);
  }
  double gradient(int node, std::span<const float> at, Random& random,
                  std::span<float> out) const override {
    const auto first = static_cast<size_t>(node) * at.size();
    double loss = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const float away = at[i] - minima_[first + i];
      out[i] = curvatures_[first + i] * away + 0.1f * static_cast<float>(random.normal());
      loss += 0.5 * curvatures_[first + i] * away * away;
    }
    return loss;
  }

 private:
  int64_t parameters_;
  std::vector<float> minima_, curvatures_;  // by node, then parameter
};

class Perceptron : public Problem {
 public:
  Perceptron(int nodes, Random random) {
    for (float& w : start_) w = 0.4f * static_cast<float>(random.normal());
    for (int n = 0; n < nodes; ++n) shares_.push_back(random.uniform(0.1, 0.9));
  }
  int64_t parameters() const override { return kWeights; }
  double learning_rate() const override { return 0.05; }
  void start(std::span<float> parameters) const override {
    std::copy(start_.begin(), start_.end(), parameters.begin());
  }
  double gradient(int node, std::span<const float> at, Random& random,
                  std::span<float> out) const override {
    std::fill(out.begin(), out.end(), 0.0f);
    double loss = 0;
    for (int i = 0; i < kBatch; ++i) {
      const int label = random.chance(shares_[static_cast<size_t>(node)]) ? 1 : 0;
      std::array<float, kIn> x;
      for (float& v : x) v = static_cast<float>(random.normal()) + (label ? 0.7f : -0.7f);
      loss += add_point(x, label, at, out);
    }
    return loss / kBatch;
  }

 private:
  static constexpr int kIn = 7, kHidden = 10, kOut = 2, kBatch = 2;
  static constexpr int kFirst = kIn * kHidden, kSecond = kFirst + kHidden,
                       kThird = kSecond + kHidden * kOut, kWeights = kThird + kOut;
  using Point = std::array<float, kIn>;
  using Hidden = std::array<float, kHidden>;

  static Hidden hidden(const Point& x, std::span<const float> w) {
    Hidden h;
    for (int j = 0; j < kHidden; ++j) {
      h[j] = w[kFirst + j];
      for (int i = 0; i < kIn; ++i) h[j] += w[j * kIn + i] * x[i];
      h[j] = std::max(0.0f, h[j]);
    }
    return h;
  }

  // Squared error: no exponentials, whose last bits differ between machines.
  static double add_point(const Point& x, int label, std::span<const float> w, std::span<float> g) {
    const Hidden h = hidden(x, w);
    Hidden back{};
    double loss = 0;
    for (int k = 0; k < kOut; ++k) {
      float y = w[kThird + k];
      for (int j = 0; j < kHidden; ++j) y += w[kSecond + k * kHidden + j] * h[j];
      const float error = y - (k == label ? 1.0f : 0.0f);
      loss += 0.5 * error * error;
      g[kThird + k] += error / kBatch;
      for (int j = 0; j < kHidden; ++j) {
        g[kSecond + k * kHidden + j] += error * h[j] / kBatch;
        back[j] += error * w[kSecond + k * kHidden + j];
      }
    }
    for (int j = 0; j < kHidden; ++j) {
      if (h[j] == 0) continue;
      g[kFirst + j] += back[j] / kBatch;
      for (int i = 0; i < kIn; ++i) g[j * kIn + i] += back[j] * x[i] / kBatch;
    }
    return loss;
  }

  std::array<float, kWeights> start_;
  std::vector<double> shares_;  // by node: of points with label 1
};

}  // namespace

std::unique_ptr<Problem> make_quadratic(int nodes, int64_t parameters, Random random) {
  return std::make_unique<Quadratic>(nodes, parameters, random);
}

std::unique_ptr<Problem> make_perceptron(int nodes, Random random) {
  return std::make_unique<Perceptron>(nodes, random);
}

}  // namespace hybridsync
