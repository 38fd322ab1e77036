// The core without torch: one round between two nodes on plain vectors of floats, in one process.
#include <iostream>
#include <vector>

#include "hybridsync/hybridsync.h"

int main() {
  using namespace hybridsync;
  const Config config = parse(R"(
    [[tier]]
    size = 1
    [[tier]]
    size = 2
    strategy = "periodic"
    outer = { lr = 1.0 }
  )",
                              "example");

  std::vector<float> anchor{1, 1, 1, 1};       // what both nodes started from
  const std::vector<float> a{0.5, 1, 1, 0};    // the parameters of node 0, after 300 samples
  const std::vector<float> b{0.5, 0.6, 1, 2};  // of node 1, after 100
  std::vector<float> delta_a(4), delta_b(4), mean(4);
  subtract(std::span<const float>(anchor), std::span<const float>(a), std::span<float>(delta_a));
  subtract(std::span<const float>(anchor), std::span<const float>(b), std::span<float>(delta_b));

  const std::vector<ConstValues> deltas{std::span<const float>(delta_a),
                                        std::span<const float>(delta_b)};
  const std::vector<double> samples{300, 100};
  weighted_mean(deltas, samples, std::span<float>(mean));
  outer_step(config.outer_tier().outer, std::span<const float>(mean), std::span<float>(anchor),
             std::span<float>());
  for (const float value : anchor) std::cout << value << " ";
  std::cout << "\n";

  const FragmentTable table =
      plan_fragments(1000, 0, config.nodes(), config.ranks_per_node(), 2048);
  for (const Fragment& f : table.fragments)
    std::cout << "fragment " << f.id << ": " << f.count << " numbers, owner node "
              << table.owner(f.id) << "\n";
}
