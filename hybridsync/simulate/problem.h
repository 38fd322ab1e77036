// What simulated nodes learn: a gradient as plain arithmetic, small enough that thousands of whole
// runs fit into a test.
#pragma once

#include <memory>
#include <span>

#include "hybridsync/simulate/random.h"

namespace hybridsync {

// One problem of all nodes; a value of the scenario, not changed by learning.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual int64_t parameters() const = 0;
  virtual double learning_rate() const = 0;
  // What every node starts from.
  virtual void start(std::span<float> parameters) const = 0;
  // The gradient of this node's loss at `parameters` with the noise of `random`; gives the loss.
  virtual double gradient(int node, std::span<const float> parameters, Random& random,
                          std::span<float> out) const = 0;
};

// Every node has its own minimum and curvature: 1/2 sum_i c_i (x_i - m_i)^2.
std::unique_ptr<Problem> make_quadratic(int nodes, int64_t parameters, Random random);

// A perceptron of two layers with 102 weights that tells two classes of points apart. Nodes see
// different shares of the classes.
std::unique_ptr<Problem> make_perceptron(int nodes, Random random);

}  // namespace hybridsync
