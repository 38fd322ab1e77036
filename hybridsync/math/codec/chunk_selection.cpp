#include "hybridsync/math/codec/chunk_selection.h"

#include <algorithm>
#include <cmath>

#include "hybridsync/math/codec/threshold.h"

namespace hybridsync {
namespace {

constexpr uint32_t kLeastStep = 1 << 20;  // of a magnitude's bits: 6 to 12 % of it

// Enough beyond those wanted that a chunk of random numbers seldom has too few.
size_t aimed_at(size_t wanted) {
  return wanted + static_cast<size_t>(3 * std::sqrt(static_cast<double>(wanted)));
}

}  // namespace

size_t ChunkSelection::room(size_t count) const {
  const size_t chunks = (count + kChunk - 1) / kChunk;
  return chunks * wanted_of(density_, kChunk) + kChunk;
}

bool ChunkSelection::pick(const ErrorFed& u, PickList& list) {
  for (size_t first = 0; first < u.size(); first += kChunk) {
    if (!pick_chunk(u, first, std::min(kChunk, u.size() - first), list)) return false;
    list.pack_groups();
  }
  list.pack_rest();
  return true;
}

bool ChunkSelection::pick_chunk(const ErrorFed& u, size_t first, size_t count, PickList& list) {
  const size_t wanted = wanted_of(density_, count);
  Scan seen = u.scan_part(first, count, guess_, hits_.data());
  if (seen.largest >= kNotFinite) return false;
  const auto part = u.scanned().subspan(first, count);
  const bool missed = seen.hits < wanted && guess_ > 1;
  for (uint32_t step = kLeastStep; seen.hits < wanted && guess_ > 1; step *= 2) {
    guess_ = guess_ > step ? guess_ - step : 1;
    seen = scan(part, guess_, hits_.data());
  }
  for (size_t i = 0; i < seen.hits; ++i) values_[i] = part[hits_[i]];
  std::fill_n(values_.begin() + static_cast<ptrdiff_t>(seen.hits), kPadding, 0.0f);
  const uint32_t threshold = keep_largest(seen, wanted, first, list);
  const bool far = missed || seen.hits > 2 * aimed_at(wanted);
  if (far) guess_ = threshold;
  aim(far ? wanted : seen.hits, wanted);
  return true;
}

uint32_t ChunkSelection::keep_largest(Scan seen, size_t wanted, size_t first, PickList& list) {
  // With the zeros behind them they are whole vectors, which are counted sooner.
  const size_t padded = (seen.hits + kPadding - 1) / kPadding * kPadding;
  const std::span<const float> candidates(values_.data(), padded);
  const uint32_t threshold =
      seen.hits > wanted ? threshold_of(candidates, {wanted, wanted}, guess_, seen.largest + 1)
                         : guess_;
  const size_t before = list.size();
  const size_t kept = keep_reached({values_.data(), hits_.data()}, seen.hits, threshold,
                                   static_cast<uint32_t>(first), list.end());
  list.resize(before + kept);
  if (kept > wanted) list.drop_ties(before, wanted, threshold);
  return threshold;
}

// A magnitude's bits are nearly its logarithm, so that this is a proportional change of it; the
// factor is mild for the tail of a normal distribution and milder for heavier tails.
void ChunkSelection::aim(size_t hits, size_t wanted) {
  constexpr int64_t kFactor = 1 << 17;
  const int64_t excess = static_cast<int64_t>(hits) - static_cast<int64_t>(aimed_at(wanted));
  const int64_t step = excess * kFactor / static_cast<int64_t>(wanted);
  guess_ = static_cast<uint32_t>(std::clamp<int64_t>(guess_ + step, 1, kNotFinite));
}

}  // namespace hybridsync
