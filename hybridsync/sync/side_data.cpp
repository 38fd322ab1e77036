#include "hybridsync/sync/side_data.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {
namespace {

bool same_model(const SideData& a, const SideData& b) {
  const auto channels = [](const Moments& m, const Moments& n) {
    return m.mean.size() == n.mean.size() && m.var.size() == n.var.size();
  };
  return a.used.size() == b.used.size() && a.batches_tracked.size() == b.batches_tracked.size() &&
         std::equal(a.batch_norm.begin(), a.batch_norm.end(), b.batch_norm.begin(),
                    b.batch_norm.end(), channels);
}

void merge_into(SideData& into, const SideData& part, bool statistics) {
  for (size_t i = 0; i < into.used.size(); ++i) into.used[i] |= part.used[i];
  for (size_t i = 0; i < into.batches_tracked.size(); ++i)
    into.batches_tracked[i] = std::max(into.batches_tracked[i], part.batches_tracked[i]);
  for (size_t i = 0; i < into.rates.size() && i < part.rates.size(); ++i)
    if (std::isnan(into.rates[i])) into.rates[i] = part.rates[i];
  if (!statistics) return;
  for (size_t i = 0; i < into.batch_norm.size(); ++i) merge(into.batch_norm[i], part.batch_norm[i]);
}

}  // namespace

void write(const SideData& side, Writer& writer) {
  writer.list(side.used)
      .list(side.batches_tracked)
      .list(side.rates)
      .u32(static_cast<uint32_t>(side.batch_norm.size()));
  for (const Moments& m : side.batch_norm) writer.f64(m.count).list(m.mean).list(m.var);
}

std::optional<SideData> read_side_data(Reader& reader) {
  SideData side;
  side.used = reader.list<uint8_t>();
  side.batches_tracked = reader.list<int64_t>();
  side.rates = reader.list<double>();
  const uint32_t layers = reader.u32();
  for (uint32_t i = 0; i < layers && reader.ok(); ++i) {
    Moments m;
    m.count = reader.f64();
    m.mean = reader.list<double>();
    m.var = reader.list<double>();
    side.batch_norm.push_back(std::move(m));
  }
  if (!reader.ok()) return std::nullopt;
  return side;
}

std::optional<SideData> merge(std::span<const SideData> parts, StatsAtSync statistics) {
  if (parts.empty()) return SideData{};
  SideData merged = parts.front();
  for (const SideData& part : parts.subspan(1)) {
    if (!same_model(merged, part)) return std::nullopt;
    merge_into(merged, part, statistics == StatsAtSync::merge);
  }
  return merged;
}

}  // namespace hybridsync
