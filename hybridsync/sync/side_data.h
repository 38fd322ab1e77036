// What travels beside the numbers, once per window inside a node and with fragment 0 between nodes:
// which parameters were used, and batch-norm statistics. Uncompressed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/math/batch_stats.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

struct SideData {
  std::vector<uint8_t> used;             // by parameter, 0 or 1; merged by "or"
  std::vector<Moments> batch_norm;       // by layer; merged exactly, weighted by count
  std::vector<int64_t> batches_tracked;  // by layer; merged by maximum
  std::vector<double> rates = {};  // by parameter group, the base learning rate, NaN from who had
                                   // no micro-step; merged by the first number

  bool operator==(const SideData&) const = default;
};

// The same number of bytes for every SideData of one model, so that an all_gather can carry it.
void write(const SideData& side, Writer& writer);
std::optional<SideData> read_side_data(Reader& reader);

// The parts in member order as one. `first`: batch-norm statistics are those of the first part.
// Nothing when the parts are of different models.
std::optional<SideData> merge(std::span<const SideData> parts, StatsAtSync statistics);

}  // namespace hybridsync
