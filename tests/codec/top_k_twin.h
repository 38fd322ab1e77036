// The selection by chunks once more, slowly: sorted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hybridsync {

inline std::vector<uint32_t> top_k_twin(const std::vector<float>& u, double density,
                                        size_t chunk = 4096) {
  std::vector<uint32_t> picked;
  for (size_t first = 0; first < u.size(); first += chunk) {
    std::vector<uint32_t> order;
    for (size_t i = first; i < std::min(first + chunk, u.size()); ++i)
      order.push_back(static_cast<uint32_t>(i));
    const double wanted = std::max(1.0, std::round(density * double(order.size())));
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return std::fabs(u[a]) > std::fabs(u[b]); });
    order.resize(std::min(order.size(), size_t(wanted)));
    std::erase_if(order, [&](uint32_t i) { return u[i] == 0; });
    std::sort(order.begin(), order.end());
    picked.insert(picked.end(), order.begin(), order.end());
  }
  return picked;
}

}  // namespace hybridsync
