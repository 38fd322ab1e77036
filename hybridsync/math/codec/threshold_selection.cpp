#include "hybridsync/math/codec/threshold_selection.h"

#include <algorithm>

#include "hybridsync/math/codec/threshold.h"

namespace hybridsync {
namespace {

// Leaves the largest ones; those at lower positions among equals. The threshold that they reach.
uint32_t shrink(PickList& list, size_t wanted, uint32_t low) {
  const uint32_t threshold = threshold_of(list.values(), {wanted, wanted}, low, kNotFinite);
  list.resize(keep_reached(list.begin(), list.size(), threshold, 0, list.begin()));
  if (list.size() > wanted) list.drop_ties(0, wanted, threshold);
  return threshold;
}

}  // namespace

size_t ThresholdSelection::room(size_t count) const {
  return 2 * wanted_of(density_, count) + kScanPart;
}

bool ThresholdSelection::pick(const ErrorFed& u, PickList& list) {
  const size_t wanted = wanted_of(density_, u.size());
  const uint32_t threshold = sampled_threshold(u, density_, sample_);
  const Outcome outcome = pick_reached(u, threshold, 2 * wanted, list);
  if (outcome == Outcome::not_finite) return false;
  const bool too_many = outcome == Outcome::too_many;
  if (too_many || (2 * list.size() < wanted && threshold > 1)) {
    list.take_back();
    pick_largest(u.scanned(), wanted, too_many ? threshold : 1, list);
  }
  list.pack_rest();
  return true;
}

// After too many, u is still made and looked through for what is not finite.
ThresholdSelection::Outcome ThresholdSelection::pick_reached(const ErrorFed& u, uint32_t threshold,
                                                             size_t most, PickList& list) {
  Outcome outcome = Outcome::picked;
  for (size_t first = 0; first < u.size(); first += kScanPart) {
    const size_t count = std::min(kScanPart, u.size() - first);
    const Scan seen = u.scan_part(first, count, threshold, hits_.data());
    if (seen.largest >= kNotFinite) return Outcome::not_finite;
    if (list.size() + seen.hits > most) {
      outcome = Outcome::too_many;
      threshold = kUnreached;
      continue;
    }
    add(u.scanned(), first, seen.hits, list);
    list.pack_groups();
  }
  return outcome;
}

// Exactly the largest, with a list that shrinks to those wanted whenever it is full, which raises
// the threshold.
void ThresholdSelection::pick_largest(std::span<const float> u, size_t wanted, uint32_t threshold,
                                      PickList& list) {
  list.resize(0);
  for (size_t first = 0; first < u.size(); first += kScanPart) {
    const auto part = u.subspan(first, std::min(kScanPart, u.size() - first));
    add(u, first, scan(part, threshold, hits_.data()).hits, list);
    if (list.size() > 2 * wanted) threshold = shrink(list, wanted, threshold) + 1;
  }
  if (list.size() > wanted) shrink(list, wanted, 1);
}

void ThresholdSelection::add(std::span<const float> u, size_t first, size_t hits, PickList& list) {
  const Picks end = list.end();
  for (size_t i = 0; i < hits; ++i) {
    const size_t at = first + hits_[i];
    end.positions[i] = static_cast<uint32_t>(at);
    end.values[i] = u[at];
  }
  list.resize(list.size() + hits);
}

}  // namespace hybridsync
