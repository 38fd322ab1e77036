#include "hybridsync/math/codec/symbol_model.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "hybridsync/math/codec/bits.h"

namespace hybridsync {
namespace {

constexpr int kWeightBits = 16;  // counts of more symbols are scaled down to a sum of about 2^16
constexpr int kFraction = 10;    // of logarithms in fixed point
constexpr uint64_t kWhole = uint64_t{1} << kFrequencyBits;
constexpr int kLongestRun = 20;  // of ones in a Rice code; then the number itself
constexpr int kPlainBits = 9;

constexpr uint64_t log2_exact(uint64_t x, int steps) {
  const int whole = width_of(x) - 1;
  uint64_t mantissa = x << (31 - whole), result = static_cast<uint64_t>(whole);
  for (int i = 0; i < steps; ++i) {
    mantissa = mantissa * mantissa >> 31;
    const uint64_t bit = mantissa >> 32;
    mantissa >>= bit;
    result = result << 1 | bit;
  }
  return result;
}

constexpr auto kLogs = [] {
  std::array<uint16_t, 256> logs{};
  for (size_t i = 0; i < logs.size(); ++i)
    logs[i] = static_cast<uint16_t>(log2_exact(256 + i, kFraction) - (uint64_t{8} << kFraction));
  return logs;
}();

// Rounded down, from the nine leading bits; x < 2^16.
uint64_t log2_of(uint64_t x) {
  const int whole = width_of(x) - 1;
  const uint64_t leading = x << (16 - whole) >> 8;
  return (static_cast<uint64_t>(whole) << kFraction) + kLogs[leading - 256];
}

// Weights that can be written, in ascending order: all below 2^(fraction + 1), then 2^fraction in
// each octave.
int rank_of(uint64_t weight, int fraction) {
  const int drop = std::max(0, width_of(weight) - 1 - fraction);
  const uint64_t half = drop > 0 ? uint64_t{1} << (drop - 1) : 0;
  return (drop << fraction) + static_cast<int>((weight + half) >> drop);
}

uint64_t weight_of(int rank, int fraction) {
  const int octave = (rank >> fraction) - 1;
  if (octave <= 0) return static_cast<uint64_t>(rank);
  return static_cast<uint64_t>(rank - (octave << fraction)) << octave;
}

int highest_rank(int fraction) { return rank_of(uint64_t{1} << (kWeightBits + 1), fraction); }

// Adds what is missing, or takes what is too much, by eighths of whatever is largest.
void balance(std::array<uint16_t, 256>& frequency, int64_t missing) {
  while (missing != 0) {
    uint16_t& largest = *std::max_element(frequency.begin(), frequency.end());
    const int64_t most = std::max(1, largest / 8);
    const int64_t step = std::clamp(missing, -most, most);
    largest = static_cast<uint16_t>(largest + step);
    missing -= step;
  }
}

// False: fewer than two symbols occur.
bool set_frequencies(SymbolModel& model) {
  std::array<uint64_t, 256> weights{};
  for (size_t s = 0; s < weights.size(); ++s)
    weights[s] = weight_of(model.rank[s], model.form.fraction);
  const uint64_t total = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  if (total == 0 || std::find(weights.begin(), weights.end(), total) != weights.end()) return false;
  uint64_t sum = 0;
  for (size_t s = 0; s < weights.size(); ++s) {
    const uint64_t share = (weights[s] * kWhole + total / 2) / total;
    model.frequency[s] = static_cast<uint16_t>(weights[s] == 0 ? 0 : std::max<uint64_t>(1, share));
    sum += model.frequency[s];
  }
  balance(model.frequency, static_cast<int64_t>(kWhole) - static_cast<int64_t>(sum));
  return true;
}

// The smallest number of which the alphabet is a power.
int digit_base(int alphabet) {
  for (int base = 2; base * base <= alphabet; ++base) {
    int power = base;
    while (power < alphabet) power *= base;
    if (power == alphabet) return base;
  }
  return alphabet;
}

class Predictor {
 public:
  Predictor(const SymbolModel& model, int alphabet)
      : model_(model), base_(model.form.product ? digit_base(alphabet) : 1) {}

  // Of the rank of a symbol, from those of lower symbols. Digits that are independent: the leading
  // digit multiplies the weight by as much as it does before zeros. Symbols in ascending order.
  int operator()(int symbol) {
    if (symbol == 0) return 0;
    if (base_ == 1) return rank(symbol - 1);
    while (power_ * base_ <= symbol) power_ *= base_;
    const int rest = symbol % power_;
    if (rest == 0) return rank(symbol - power_);
    return std::clamp(rank(rest) + rank(symbol - rest) - rank(0), 0,
                      highest_rank(model_.form.fraction));
  }

 private:
  int rank(int symbol) const { return model_.rank[static_cast<size_t>(symbol)]; }

  const SymbolModel& model_;
  int base_;
  int power_ = 1;
};

// Adaptive Rice codes: the parameter is near the logarithm of the mean of the latest numbers.
class Rice {
 public:
  template <class Out>
  void put(Out& out, unsigned number) {
    const int low = width_of(sum_ / count_), ones = static_cast<int>(number >> low);
    if (ones < kLongestRun) {
      out.put((uint64_t{1} << ones) - 1, ones + 1);
      out.put(number & ((1u << low) - 1), low);
    } else {
      out.put((uint64_t{1} << kLongestRun) - 1, kLongestRun);
      out.put(number, kPlainBits);
    }
    add(number);
  }

  unsigned take(BitReader& in) {
    const int low = width_of(sum_ / count_);
    unsigned ones = 0;
    while (ones < kLongestRun && in.take(1) == 1) ++ones;
    const auto number = static_cast<unsigned>(ones < kLongestRun ? ones << low | in.take(low)
                                                                 : in.take(kPlainBits));
    add(number);
    return number;
  }

 private:
  void add(unsigned number) {
    sum_ += number;
    if (++count_ < 16) return;
    sum_ /= 2;
    count_ /= 2;
  }

  unsigned sum_ = 4, count_ = 1;
};

template <class Out>
void describe(const SymbolModel& model, int alphabet, Out& out) {
  const int bits = width_of(static_cast<uint64_t>(alphabet - 1));
  out.put(static_cast<uint64_t>(model.first), bits);
  out.put(static_cast<uint64_t>(model.last), bits);
  Predictor predict(model, alphabet);
  Rice errors, runs;
  for (int s = model.first; s <= model.last; ++s) {
    const int error = model.rank[static_cast<size_t>(s)] - predict(s);
    errors.put(out, static_cast<unsigned>(error < 0 ? -2 * error - 1 : 2 * error));
    if (model.rank[static_cast<size_t>(s)] != 0) continue;
    const int begin = s;
    while (model.rank[static_cast<size_t>(s) + 1] == 0) ++s;
    runs.put(out, static_cast<unsigned>(s - begin));
  }
}

struct BitCounter {
  uint64_t bits = 0;
  void put(uint64_t, int count) { bits += static_cast<uint64_t>(count); }
};

}  // namespace

SymbolModel fit_model(std::span<const uint64_t, 256> counts, int alphabet) {
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const bool many = total >> kWeightBits != 0;
  SymbolModel best;
  uint64_t least = ~uint64_t{0};
  for (int fraction = many ? 3 : 0; fraction <= 3; ++fraction) {
    SymbolModel model;
    for (size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] == 0) continue;
      const uint64_t share = many ? counts[s] * (uint64_t{1} << kWeightBits) / total : counts[s];
      model.rank[s] = static_cast<uint8_t>(rank_of(std::max<uint64_t>(1, share), fraction));
      if (model.rank[static_cast<size_t>(model.first)] == 0) model.first = static_cast<int>(s);
      model.last = static_cast<int>(s);
    }
    model.form.fraction = fraction;
    [[maybe_unused]] const bool valid = set_frequencies(model);
    assert(valid);
    const uint64_t data = coded_bits(model, counts);
    for (const bool product : {false, true}) {
      model.form.product = product;
      const uint64_t bits = data + 8 * description_bytes(model, alphabet);
      if (bits < least) best = model;
      least = std::min(least, bits);
    }
  }
  return best;
}

uint64_t coded_bits(const SymbolModel& model, std::span<const uint64_t, 256> counts) {
  uint64_t sum = 0;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s] != 0)
      sum += counts[s] * ((uint64_t{kFrequencyBits} << kFraction) - log2_of(model.frequency[s]));
  return (sum >> kFraction) + 1;
}

size_t description_bytes(const SymbolModel& model, int alphabet) {
  BitCounter counter;
  describe(model, alphabet, counter);
  return static_cast<size_t>((counter.bits + 7) / 8);
}

size_t write_model(const SymbolModel& model, int alphabet, std::span<std::byte> out) {
  BitWriter writer(out);
  describe(model, alphabet, writer);
  return writer.finish();
}

std::optional<size_t> read_model(std::span<const std::byte> code, int alphabet,
                                 SymbolModel& model) {
  BitReader in(code);
  const int bits = width_of(static_cast<uint64_t>(alphabet - 1));
  model.first = static_cast<int>(in.take(bits));
  model.last = static_cast<int>(in.take(bits));
  if (model.last <= model.first || model.last >= alphabet) return std::nullopt;
  model.rank.fill(0);
  Predictor predict(model, alphabet);
  Rice errors, runs;
  for (int s = model.first; s <= model.last; ++s) {
    const unsigned number = errors.take(in);
    const int half = static_cast<int>(number / 2);
    const int rank = predict(s) + (number % 2 != 0 ? -half - 1 : half);
    if (rank < 0 || rank > highest_rank(model.form.fraction)) return std::nullopt;
    model.rank[static_cast<size_t>(s)] = static_cast<uint8_t>(rank);
    if (rank == 0) s += static_cast<int>(runs.take(in));
  }
  if (!in.good() || !set_frequencies(model)) return std::nullopt;
  return in.used();
}

}  // namespace hybridsync
