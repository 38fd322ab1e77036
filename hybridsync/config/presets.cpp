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

// Every number as measured for 300 to 1,000 times fewer bytes (docs/results-compression.md).
void sparse_sign(TierConfig& tier) {
  tier.strategy = Strategy::periodic;
  tier.every = 15;
  tier.parts = 0;
  tier.codec.kind = CodecKind::top_k;
  tier.codec.selection = Selection::chunks;
  tier.codec.density = 0.07;
  tier.codec.value_bits = 1;
  tier.codec.error_feedback = 0.9;
  tier.codec.residual = Residual::local;
  tier.codec.gamma = 0.8;
  tier.codec.small_tensors = SmallTensorCode::coded;
  tier.outer = {kAutoLr, 0.3, true};
  tier.momentum_pull = 0.6;
  tier.second_moment_floor = 0.03;
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
      {"sparse_sign", "hybridsync", sparse_sign},
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
