// Plain arithmetic on spans. Every result has the same bits on every machine: sums run in a fixed
// order, and nothing is fused (-ffp-contract=off).
#pragma once

#include <span>
#include <vector>

#include "hybridsync/math/values.h"

namespace hybridsync {

// values *= factor.
void scale(Values values, double factor);

// The sum of squares in double, over eight interleaved partial sums. Not finite if any value is
// not.
double squared_norm(ConstValues values);

// out = a - b. Same type and length; out may be either of them.
void subtract(ConstValues a, ConstValues b, Values out);

// out += x. Same type and length.
void add(ConstValues x, Values out);

void copy(ConstValues from, Values to);

// out = sum_i (w_i / W) x_i with W = sum w_i > 0, in the order given and in the values' own type;
// terms of weight zero are not read (0 * NaN is NaN). One term of any weight gives exactly that
// term.
void weighted_mean(std::span<const ConstValues> x, std::span<const double> weights, Values out);

}  // namespace hybridsync
