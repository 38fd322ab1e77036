// What a run would need and do, worked out without starting it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/decide/buckets.h"
#include "hybridsync/observe/record_json.h"

namespace hybridsync {

// What only the model and its data can tell.
struct ModelNeeds {
  Layout layout;             // of the trainable parameters
  int64_t buffer_bytes = 0;  // running statistics and the like
  int64_t data_bytes = 0;    // samples that every rank holds
};

// One figure of the outlook. `text` is for people, `value` in bytes, seconds or a plain count.
struct Figure {
  std::string group;  // "memory per rank"
  std::string name;   // "parameters"
  double value = 0;  // negative: there is none; not a number: `text` is a word of the configuration
  std::string text;
  std::string why;  // how it comes about; may be empty
};

// Ranks, memory per rank by part, fragments, bytes and time of a round between nodes, what rounds
// of a delayed tier may do without everybody, and every limit that waits derive from. Pure.
std::vector<Figure> outlook(const Config& config, const ModelNeeds& needs);

// Aligned lines under their groups, and the same as {"group": {"name": value}}, null where there is
// none.
std::string to_text(const std::vector<Figure>& figures);
Json to_json(const std::vector<Figure>& figures);

}  // namespace hybridsync
