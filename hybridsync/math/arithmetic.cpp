#include "hybridsync/math/arithmetic.h"

#include <array>
#include <cassert>
#include <cstring>
#include <numeric>

namespace hybridsync {
namespace {

template <class T>
double squares(std::span<const T> v) {
  std::array<double, 8> sums{};
  size_t i = 0;
  for (; i + 8 <= v.size(); i += 8)
    for (size_t k = 0; k < 8; ++k) sums[k] += double(v[i + k]) * double(v[i + k]);
  for (; i < v.size(); ++i) sums[i % 8] += double(v[i]) * double(v[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class T>
void add_scaled(std::span<const T> x, T factor, bool first, std::span<T> out) {
  if (first) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = factor * x[i];
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] += factor * x[i];
  }
}

}  // namespace

void scale(Values values, double factor) {
  std::visit(
      [&](auto v) {
        const auto f = static_cast<typename decltype(v)::value_type>(factor);
        for (auto& x : v) x *= f;
      },
      values);
}

double squared_norm(ConstValues values) {
  return std::visit([](auto v) { return squares(v); }, values);
}

void subtract(ConstValues a, ConstValues b, Values out) {
  std::visit(
      [&](auto o) {
        using T = typename decltype(o)::value_type;
        const auto x = std::get<std::span<const T>>(a);
        const auto y = std::get<std::span<const T>>(b);
        assert(x.size() == o.size() && y.size() == o.size());
        for (size_t i = 0; i < o.size(); ++i) o[i] = x[i] - y[i];
      },
      out);
}

void add(ConstValues x, Values out) {
  std::visit(
      [&](auto o) {
        using T = typename decltype(o)::value_type;
        const auto terms = std::get<std::span<const T>>(x);
        assert(terms.size() == o.size());
        for (size_t i = 0; i < o.size(); ++i) o[i] += terms[i];
      },
      out);
}

void copy(ConstValues from, Values to) {
  const auto source = bytes_of(from);
  const auto target = bytes_of(to);
  assert(source.size() == target.size() && from.index() == to.index());
  if (!source.empty()) std::memmove(target.data(), source.data(), source.size());
}

void weighted_mean(std::span<const ConstValues> x, std::span<const double> weights, Values out) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  assert(total > 0);
  std::visit(
      [&](auto o) {
        using T = typename decltype(o)::value_type;
        bool first = true;
        for (size_t i = 0; i < x.size(); ++i) {
          if (weights[i] == 0) continue;
          const auto term = std::get<std::span<const T>>(x[i]);
          assert(term.size() == o.size());
          add_scaled<T>(term, static_cast<T>(weights[i] / total), first, o);
          first = false;
        }
      },
      out);
}

}  // namespace hybridsync
