#include "hybridsync/config/presets.h"

namespace hybridsync {
namespace {

void diloco(TierConfig& tier) {
  tier.strategy = Strategy::periodic;
  tier.every = 500;
  tier.outer = {0.7, 0.9, true};
}

void sparse_loco(TierConfig& tier) {
  tier.strategy = Strategy::periodic;
  tier.every = 15;
  tier.codec.kind = CodecKind::top_k;
  tier.codec.selection = Selection::chunks;
  tier.codec.density = 1.0 / 64;
  tier.codec.value_bits = 2;
  tier.codec.error_feedback = 0.95;
  tier.codec.residual = Residual::buffer;
}

void top_k(TierConfig& tier) {
  tier.strategy = Strategy::every_step;
  tier.codec.kind = CodecKind::top_k;
  tier.codec.selection = Selection::chunks;
  tier.codec.density = 0.01;
  tier.codec.value_bits = 16;
  tier.codec.error_feedback = 1;
  tier.codec.momentum_correction = true;
  tier.codec.density_warmup = 0;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"diloco", "Douillard et al. 2023", diloco},
      {"sparse_loco", "SparseLoCo, 2025", sparse_loco},
      {"top_k", "Deep Gradient Compression, Lin et al. 2018", top_k},
  };
  return all;
}

const Preset* find_preset(const std::string& name) {
  for (const Preset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace hybridsync
