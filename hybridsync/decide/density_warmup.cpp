#include "hybridsync/decide/density_warmup.h"

#include <cassert>
#include <cstddef>

namespace hybridsync {

std::vector<double> warmup_densities(const CodecOptions& options) {
  std::vector<double> stages;
  if (options.density_warmup == 0) return stages;
  for (double density = 0.25; density > options.density; density /= 4) stages.push_back(density);
  return stages;
}

double density_after(const CodecOptions& options, int64_t coded_rounds) {
  assert(coded_rounds >= 0);
  if (coded_rounds >= options.density_warmup) return options.density;
  const std::vector<double> stages = warmup_densities(options);
  if (stages.empty()) return options.density;
  const auto count = static_cast<int64_t>(stages.size());
  return stages[static_cast<size_t>(coded_rounds * count / options.density_warmup)];
}

}  // namespace hybridsync
