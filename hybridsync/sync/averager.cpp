#include "hybridsync/sync/averager.h"

#include <algorithm>
#include <utility>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {
namespace {

double sum_of_norms(std::span<const Averager::Term> terms) {
  double sum = 0;
  for (const Averager::Term& term : terms) sum += term.squared_norm;
  return sum;
}

}  // namespace

Averager::Averager(const FragmentTable& table, const Schedule& schedule, const CodecOptions& codec,
                   const SmallTensors& small, Gains gains)
    : table_(table), schedule_(schedule), coders_(codec, small), gains_(std::move(gains)) {}

bool Averager::fits(int fragment, Version version, size_t bytes) const {
  const Fragment& f = table_.fragments[fragment];
  const auto whole = static_cast<size_t>(f.bytes());
  const bool coded = schedule_.coded(version) && coders_.codes(f.type);
  return bytes == whole || (coded && 0 < bytes && bytes < whole);
}

std::optional<Bytes> Averager::mean(int fragment, Version version, uint64_t chain,
                                    std::span<const Term> terms, bool last, size_t& bad) {
  const Fragment& f = table_.fragments[fragment];
  std::vector<std::vector<std::byte>> decoded(terms.size());
  std::vector<ConstValues> values;
  std::vector<double> weights;
  for (bad = 0; bad < terms.size(); ++bad) {
    values.push_back(numbers(f, terms[bad].bytes, decoded[bad]));
    weights.push_back(terms[bad].weight);
    if (bytes_of(values.back()).empty()) return std::nullopt;
  }
  Residuals& r = residuals_[fragment];
  const auto before = left_out(fragment, chain);
  r.coming.assign(before.begin(), before.end());
  r.onto = chain;
  const bool flushes = last && schedule_.mode(version) == Mode::delta;
  const bool forgets = last && !flushes;
  const bool rest =
      flushes && std::any_of(r.coming.begin(), r.coming.end(), [](float x) { return x != 0; });
  if (terms.empty() && !rest) {
    if (forgets) forget_coming(r);
    return Bytes{};
  }
  Bytes result(static_cast<size_t>(f.bytes()));
  const Values out = values_at(result.data(), f.type, static_cast<size_t>(f.count));
  if (!terms.empty()) weighted_mean(values, weights, out);
  if (!schedule_.coded(version) || !coders_.codes(f.type)) return result;
  coders_.of(fragment)->set_round(schedule_.coded_rounds(version));
  const auto mean = std::get<std::span<float>>(out);
  const bool tunes = gains_.bytes() > 0 && !terms.empty() && !last;
  if (tunes) gains_.contributed(values, mean, sum_of_norms(terms));
  Bytes coded = code(f, mean, flushes);
  if (forgets) forget_coming(r);
  if (!tunes || is_plain(fragment, coded)) return coded;
  return with_gain(f, mean, std::move(coded), terms.size());
}

Bytes Averager::with_gain(const Fragment& f, std::span<const float> mean, Bytes code,
                          size_t members) {
  std::vector<float>& left_out = residuals_[f.id].coming;
  std::vector<float> sent(mean.size());
  (void)coders_.of(f.id)->decode(code, std::span<float>(sent));
  std::vector<float> whole = sent;  // with what the code leaves out: what it is the code of
  for (size_t i = 0; i < left_out.size(); ++i) whole[i] += left_out[i];
  if (left_out.empty()) whole.assign(mean.begin(), mean.end());
  gains_.encoded(squared_norm(std::span<const float>(whole)),
                 squared_norm(std::span<const float>(sent)));
  if (code.size() + gains_.bytes() >= static_cast<size_t>(f.bytes())) {
    std::fill(left_out.begin(), left_out.end(), 0.0f);
    return Coder::plain(whole, 0, {});
  }
  code.push_back(gains_.find(members));
  return code;
}

bool Averager::is_plain(int fragment, ByteSpan result) const {
  return result.size() == static_cast<size_t>(table_.fragments[fragment].bytes());
}

ByteSpan Averager::code_in(int fragment, ByteSpan result) const {
  const size_t gain = is_plain(fragment, result) ? 0 : gains_.bytes();
  return result.first(result.size() - std::min(gain, result.size()));
}

double Averager::gain_in(int fragment, ByteSpan result) const {
  const ByteSpan gain = result.subspan(code_in(fragment, result).size());
  return gain.empty() ? 1 : gain_of(std::to_integer<uint8_t>(gain.front()));
}

void Averager::forget_coming(Residuals& r) {
  forgotten_.add(r.coming);
  r.coming.clear();
}

Bytes Averager::code(const Fragment& f, std::span<const float> mean, bool last) {
  const auto beta = static_cast<float>(coders_.options().error_feedback);
  Residuals& r = residuals_[f.id];
  if (beta > 0) r.coming.resize(mean.size());
  // Of what was left out before only beta is brought in.
  forgotten_.add(r.coming, 1 - beta);
  if (last) return Coder::plain(mean, beta, r.coming);
  if (auto coded = coders_.of(f.id)->encode(mean, beta, r.coming)) return *coded;
  // Where the sum would not be finite the residual is void.
  r.lost += squared_norm(left_out(f.id, r.onto));
  std::fill(r.coming.begin(), r.coming.end(), 0.0f);
  return Coder::plain(mean, 0, r.coming);
}

void Averager::publish(int fragment, Version version, uint64_t chain) {
  Residuals& r = residuals_[fragment];
  for (Kept& k : r.kept) k.spent = k.spent || k.chain == r.onto;
  // Others as new as this one are of a tail that is gone.
  std::erase_if(r.kept, [&](const Kept& k) { return k.version >= version; });
  if (!r.coming.empty()) r.kept.push_back({version, chain, std::move(r.coming)});
  r.coming.clear();
}

double Averager::forget(int fragment, Version oldest) {
  const auto found = residuals_.find(fragment);
  if (found == residuals_.end()) return 0;
  Residuals& r = found->second;
  for (const Kept& k : r.kept)
    if (k.version < oldest && !k.spent) r.lost += squared_norm(std::span<const float>(k.residual));
  std::erase_if(r.kept, [&](const Kept& k) { return k.version < oldest; });
  return std::exchange(r.lost, 0);
}

std::span<const float> Averager::left_out(int fragment, uint64_t chain) const {
  const auto found = residuals_.find(fragment);
  if (found == residuals_.end()) return {};
  for (const Kept& k : found->second.kept)
    if (k.chain == chain) return k.residual;
  return {};
}

ConstValues Averager::numbers(int fragment, ByteSpan result) {
  return numbers(table_.fragments[fragment], code_in(fragment, result), scratch_);
}

ConstValues Averager::numbers(const Fragment& f, ByteSpan bytes, std::vector<std::byte>& memory) {
  return coders_.of(f.id)->numbers(bytes, f.type, static_cast<size_t>(f.count), memory);
}

}  // namespace hybridsync
