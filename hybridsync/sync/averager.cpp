#include "hybridsync/sync/averager.h"

#include <algorithm>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {

Averager::Averager(const FragmentTable& table, const CodecOptions& codec)
    : table_(table), coder_(codec) {}

bool Averager::fits(int fragment, Mode mode, size_t bytes) const {
  const Fragment& f = table_.fragments[fragment];
  const auto whole = static_cast<size_t>(f.bytes());
  const bool coded = mode == Mode::delta && coder_.codes(f.type);
  return bytes == whole || (coded && 0 < bytes && bytes < whole);
}

std::optional<Bytes> Averager::mean(int fragment, Mode mode, std::span<const Term> terms, bool last,
                                    size_t& bad) {
  const Fragment& f = table_.fragments[fragment];
  std::vector<std::vector<std::byte>> decoded(terms.size());
  std::vector<ConstValues> values;
  std::vector<double> weights;
  for (bad = 0; bad < terms.size(); ++bad) {
    values.push_back(numbers(f, terms[bad].bytes, decoded[bad]));
    weights.push_back(terms[bad].weight);
    if (bytes_of(values.back()).empty()) return std::nullopt;
  }
  Bytes result(static_cast<size_t>(f.bytes()));
  const Values out = values_at(result.data(), f.type, static_cast<size_t>(f.count));
  weighted_mean(values, weights, out);
  if (mode == Mode::gradient || !coder_.codes(f.type)) return result;
  return code(f, std::get<std::span<float>>(out), last);
}

Bytes Averager::code(const Fragment& f, std::span<const float> mean, bool last) {
  const auto beta = static_cast<float>(coder_.options().error_feedback);
  std::vector<float>& residual = residuals_[f.id];
  if (beta > 0) residual.resize(mean.size());
  if (!last)
    if (auto coded = coder_.encode(mean, beta, residual)) return *coded;
  // Where the sum would not be finite the residual is void.
  if (!last) std::fill(residual.begin(), residual.end(), 0.0f);
  return Coder::plain(mean, residual.empty() ? 0 : beta, residual);
}

ConstValues Averager::numbers(int fragment, ByteSpan bytes) {
  return numbers(table_.fragments[fragment], bytes, scratch_);
}

ConstValues Averager::numbers(const Fragment& f, ByteSpan bytes, std::vector<std::byte>& memory) {
  const auto count = static_cast<size_t>(f.count);
  if (bytes.size() == static_cast<size_t>(f.bytes()))
    return as_const(values_at(const_cast<std::byte*>(bytes.data()), f.type, count));
  memory.resize(static_cast<size_t>(f.bytes()));
  const Values out = values_at(memory.data(), f.type, count);
  if (!coder_.decode(bytes, out)) return as_const(values_at(nullptr, f.type, 0));
  return as_const(out);
}

}  // namespace hybridsync
