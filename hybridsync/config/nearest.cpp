#include "hybridsync/config/nearest.h"

#include <algorithm>
#include <limits>

namespace hybridsync {
namespace {

struct Parts {
  std::string_view first, last;
};

Parts parts_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// A distance in the first parts counts less than any in the last.
size_t score(size_t distance, std::string_view first, std::string_view other) {
  return 2 * distance + (first == other ? 0 : 1);
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const Parts wanted = parts_of(word);
  std::string best;
  size_t best_score = std::numeric_limits<size_t>::max();
  for (const auto& candidate : candidates) {
    const Parts parts = parts_of(candidate);
    const size_t distance = edit_distance(wanted.last, parts.last);
    const size_t near = std::max<size_t>(1, std::min(wanted.last.size(), parts.last.size()) / 3);
    const size_t now = score(distance, wanted.first, parts.first);
    if (distance > near || now >= best_score) continue;
    best = candidate;
    best_score = now;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

}  // namespace hybridsync
