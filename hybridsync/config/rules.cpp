#include "hybridsync/config/rules.h"

#include <algorithm>

#include "hybridsync/config/units.h"

namespace hybridsync {
namespace {

using Found = std::optional<Mistake>;

Found mistake(const std::string& name, size_t tier, const Complaint& complaint) {
  return Mistake{{name, tier}, complaint};
}

// A key on the wrong tier shows by its value: it would be ignored there.
bool left_alone(const Key& key, Config& config, size_t tier) {
  static Config standard = [] {
    Config config;
    config.tiers.resize(1);
    return config;
  }();
  return key.print(config, tier) == key.print(standard, 0);
}

Found check_key(const Key& key, Config& config, size_t tier) {
  if (key.scope != Scope::run && !applies(key.scope, tier)) {
    if (left_alone(key, config, tier)) return std::nullopt;
    return mistake(key.name, tier, misplaced(key));
  }
  const Complaint complaint = key.check(config, tier);
  if (complaint.empty()) return std::nullopt;
  return mistake(key.name, tier, complaint);
}

Found check_keys(Config& config) {
  for (const auto& section : sections()) {
    const size_t times = section.scope == Scope::run ? 1 : config.tiers.size();
    for (size_t tier = 0; tier < times; ++tier) {
      for (const auto& key : section.keys) {
        if (auto found = check_key(key, config, tier)) return found;
      }
    }
  }
  return std::nullopt;
}

Found check_learning_rate(Config& config) {
  const auto& rate = config.learning_rate;
  if (rate.warmup > config.train.steps) {
    return mistake("learning_rate.warmup", 0,
                   "is more than the " + std::to_string(config.train.steps) +
                       " steps of the run (train.steps)");
  }
  if (rate.schedule == LrSchedule::step && rate.decay_every == 0) {
    return mistake("learning_rate.schedule", 0,
                   "needs learning_rate.decay_every, the steps between decays");
  }
  return std::nullopt;
}

// Keys of `delayed` that would be ignored.
Found check_undelayed(const TierConfig& tier, size_t i) {
  constexpr const char* kComplaint =
      "only strategy = \"delayed\" goes on without all nodes; set that, or leave this key out";
  const TierConfig standard;
  if (tier.staleness != standard.staleness) return mistake("tier.staleness", i, kComplaint);
  if (tier.deadline != standard.deadline) return mistake("tier.deadline", i, kComplaint);
  if (tier.quorum != standard.quorum) return mistake("tier.quorum", i, kComplaint);
  if (tier.late != standard.late) return mistake("tier.late", i, kComplaint);
  return std::nullopt;
}

Found check_delay(const TierConfig& tier, size_t i) {
  if (tier.strategy != Strategy::delayed) return check_undelayed(tier, i);
  if (tier.deadline > 0 && tier.staleness == 0) {
    return mistake(
        "tier.deadline", i,
        "needs tier.staleness of at least 1, the rounds that a skipped node may lag; set "
        "that, or deadline = \"none\"");
  }
  return std::nullopt;
}

// Keys of other codecs, which would be ignored.
Found check_uncoded(const CodecOptions& codec, size_t i) {
  const CodecOptions standard;
  const auto only = [&](const char* key, const std::string& codecs) {
    return mistake(key, i, "is for codec = " + codecs + " only; set that, or leave this key out");
  };
  if (codec.kind != CodecKind::levels && codec.levels != standard.levels)
    return only("tier.levels", "\"levels\"");
  if (codec.kind != CodecKind::top_k) {
    if (codec.density != standard.density) return only("tier.density", "\"top_k\"");
    if (codec.value_bits != standard.value_bits) return only("tier.value_bits", "\"top_k\"");
    if (codec.selection != standard.selection) return only("tier.selection", "\"top_k\"");
    if (codec.momentum_correction) return only("tier.momentum_correction", "\"top_k\"");
    if (codec.density_warmup != 0) return only("tier.density_warmup", "\"top_k\"");
  }
  if (codec.kind <= CodecKind::fp16 && codec.small_tensors != standard.small_tensors)
    return only("tier.small_tensors", "\"int8\" and shorter ones");
  const std::string lossy = "\"bf16\" and shorter ones";
  if (codec.kind != CodecKind::fp32) return std::nullopt;
  if (codec.error_feedback != standard.error_feedback) return only("tier.error_feedback", lossy);
  if (codec.residual != standard.residual) return only("tier.residual", lossy);
  if (codec.gamma != standard.gamma) return only("tier.gamma", lossy);
  return std::nullopt;
}

// A gradient is no part of the parameters yet, and what of it waits is not either.
Found check_gradients(const CodecOptions& codec, size_t i) {
  if (codec.residual == Residual::local) {
    return mistake("tier.residual", i,
                   "keeps what codes leave out in the parameters, where gradients are not yet; "
                   "with strategy = \"every_step\" set \"buffer\", or leave this key out");
  }
  if (codec.gamma != CodecOptions{}.gamma) {
    return mistake("tier.gamma", i,
                   "is what a residual in the parameters keeps, and that of gradients is beside "
                   "them; with strategy = \"every_step\" leave this key out");
  }
  if (codec.momentum_correction && codec.error_feedback == 0) {
    return mistake("tier.momentum_correction", i,
                   "sums up what was not sent yet, which error_feedback = 0 drops; leave one of "
                   "them out");
  }
  return std::nullopt;
}

Found check_codec(const TierConfig& tier, size_t i) {
  const CodecOptions& codec = tier.codec;
  if (tier.strategy == Strategy::every_step) {
    if (codec.kind != CodecKind::fp32)
      if (auto found = check_gradients(codec, i)) return found;
  } else if (codec.momentum_correction) {
    return mistake("tier.momentum_correction", i,
                   "is for gradients, of strategy = \"every_step\" or \"top_k\"; set one of them, "
                   "or leave this key out");
  }
  if (codec.levels % 2 == 0) return mistake("tier.levels", i, "must be 3, 5 or 7");
  const int bits = codec.value_bits;
  if ((bits & (bits - 1)) != 0) return mistake("tier.value_bits", i, "must be 16, 8, 4, 2 or 1");
  if (codec.error_feedback == 0 && codec.residual == Residual::local) {
    return mistake("tier.error_feedback", i,
                   "drops what a code leaves out, which residual = \"local\" keeps; leave one of "
                   "them out");
  }
  return check_uncoded(codec, i);
}

// What rounds of deltas do beyond averaging them.
Found check_parts(const TierConfig& tier, size_t i) {
  constexpr const char* kDeltas =
      "is for strategies that exchange deltas, such as \"periodic\"; set one, or leave this key "
      "out";
  const bool deltas = tier.strategy != Strategy::every_step;
  if (!deltas && tier.parts != 1) return mistake("tier.parts", i, kDeltas);
  if (!deltas && tier.momentum_pull > 0) return mistake("tier.momentum_pull", i, kDeltas);
  if (tier.parts > tier.every)
    return mistake("tier.parts", i,
                   "is more than the " + std::to_string(tier.every) +
                       " steps between two rounds of a part (tier.every)");
  if (tier.outer.lr == kAutoLr && tier.codec.kind == CodecKind::fp32)
    return mistake("tier.outer.lr", i,
                   "makes up for what a codec leaves out, and there is none; set tier.codec, or a "
                   "number");
  if (tier.momentum_pull > 0 && tier.staleness > 0)
    return mistake("tier.momentum_pull", i,
                   "needs rounds that wait for everybody; set staleness = 0, or leave it out");
  return std::nullopt;
}

// Keys of an interval that adapts, where it does not.
Found check_fixed(const TierConfig& tier, size_t i) {
  constexpr const char* kComplaint =
      "bounds an interval that adapts; set tier.adapt, or leave this key out";
  const TierConfig standard;
  if (tier.every_min != standard.every_min) return mistake("tier.every_min", i, kComplaint);
  if (tier.every_max != standard.every_max) return mistake("tier.every_max", i, kComplaint);
  return std::nullopt;
}

Found check_adapt(const TierConfig& tier, size_t i) {
  if (tier.adapt == Adapt::off) return check_fixed(tier, i);
  const std::string start = " steps with which the interval begins (tier.every)";
  if (tier.strategy == Strategy::every_step)
    return mistake("tier.adapt", i,
                   "is for strategies that exchange deltas every few steps, such as \"periodic\"; "
                   "set one, or leave this key out");
  if (tier.parts != 1)
    return mistake(
        "tier.adapt", i,
        "needs tier.parts = 1 in this version: parts have their rounds at steps of their "
        "own, spread over an interval that stays; set that, or adapt = \"off\"");
  if (tier.every_min > tier.every)
    return mistake("tier.every_min", i, "is more than the " + std::to_string(tier.every) + start);
  if (tier.every_max < tier.every)
    return mistake("tier.every_max", i, "is less than the " + std::to_string(tier.every) + start);
  return std::nullopt;
}

Found check_tier(const TierConfig& tier, size_t i) {
  if (i == 0 && tier.strategy != Strategy::every_step) {
    return mistake(
        "tier.strategy", i,
        "the innermost tier joins the ranks of a node in every step; set \"every_step\", or put "
        "a [[tier]] of size 1 before this one");
  }
  if (tier.outer.nesterov && tier.outer.momentum == 0) {
    return mistake("tier.outer.nesterov", i, "needs tier.outer.momentum of more than 0");
  }
  if (auto found = check_codec(tier, i)) return found;
  if (auto found = check_parts(tier, i)) return found;
  if (auto found = check_adapt(tier, i)) return found;
  return check_delay(tier, i);
}

Found check_tiers(Config& config) {
  for (size_t i = 0; i < config.tiers.size(); ++i) {
    if (auto found = check_tier(config.tiers[i], i)) return found;
    for (size_t j = 0; j < i; ++j) {
      if (config.tiers[i].name != config.tiers[j].name) continue;
      return mistake("tier.name", i,
                     "tier[" + std::to_string(j) + "] has this name; names are unique");
    }
  }
  return std::nullopt;
}

std::string product_text(const Config& config, size_t count) {
  std::string text;
  int64_t product = 1;
  for (size_t i = 0; i < count; ++i) {
    text += (i ? " x " : "") + std::to_string(config.tiers[i].size);
    product *= config.tiers[i].size;
  }
  return count > 1 ? text + " = " + std::to_string(product) : text;
}

// Sizes that are given must divide the ranks that are given.
Found check_division(const Config& config) {
  int64_t product = 1;
  for (size_t i = 0; i < config.tiers.size(); ++i) {
    if (config.tiers[i].size == 0) continue;
    product *= config.tiers[i].size;
    if (config.train.ranks % product == 0) continue;
    const bool alone = product == config.tiers[i].size;
    return mistake("tier.size", i,
                   std::to_string(config.train.ranks) +
                       " ranks (train.ranks) cannot be divided by " +
                       (alone ? "it" : product_text(config, i + 1)) + "; change one of them");
  }
  return std::nullopt;
}

// "auto" becomes what it stands for.
void fill_parts(Config& config) {
  for (TierConfig& tier : config.tiers)
    if (tier.parts == 0) tier.parts = static_cast<int>(std::min<int64_t>(tier.every, kMostParts));
}

Found fill_sizes(Config& config) {
  TierConfig* open = nullptr;
  int64_t product = 1;
  for (size_t i = 0; i < config.tiers.size(); ++i) {
    TierConfig& tier = config.tiers[i];
    if (tier.size > 0) {
      product *= tier.size;
      continue;
    }
    if (open) return mistake("tier.size", i, "only one tier's size can be \"auto\"");
    if (config.train.ranks == 0) {
      return mistake("tier.size", i, "needs train.ranks, the ranks in all; or give the size");
    }
    open = &tier;
  }
  if (open) open->size = static_cast<int>(config.train.ranks / product);
  return std::nullopt;
}

Found check_ranks(Config& config) {
  const int ranks = config.train.ranks;
  if (config.tiers.empty()) {
    if (ranks <= 1) return std::nullopt;
    return mistake(
        "train.ranks", 0,
        "there is no tier that joins them; add [[tier]] with size = " + std::to_string(ranks));
  }
  if (ranks > 0) {
    if (auto found = check_division(config)) return found;
  }
  if (auto found = fill_sizes(config)) return found;
  if (ranks == 0 || config.ranks() == ranks) return std::nullopt;
  return mistake("train.ranks", 0,
                 "the tiers join " + product_text(config, config.tiers.size()) +
                     " ranks; change a tier's size, or leave train.ranks out");
}

// Before anything multiplies them as int.
Found check_product(const Config& config) {
  constexpr int64_t kMostRanks = 1 << 20;
  int64_t product = 1;
  for (size_t i = 0; i < config.tiers.size(); ++i) {
    product *= std::max(1, config.tiers[i].size);
    if (product <= kMostRanks) continue;
    return mistake("tier.size", i,
                   "the tiers join more than " + std::to_string(kMostRanks) + " ranks");
  }
  return std::nullopt;
}

Found check_quorum(const TierConfig& tier, size_t i) {
  if (tier.quorum == kQuorumAll || tier.quorum <= tier.size) return std::nullopt;
  return mistake("tier.quorum", i,
                 "is more than the " + std::to_string(tier.size) +
                     " nodes of the tier (tier.size); \"all\" is every one of them");
}

Found check_speeds(const TierConfig& tier, size_t i) {
  constexpr double kLongestStep = 3600;  // seconds
  const EmulateConfig& emulate = tier.emulate;
  if (emulate.speeds.empty()) return std::nullopt;
  if (emulate.step == 0) {
    return mistake("tier.emulate.speeds", i, "needs tier.emulate.step, the time of a step");
  }
  const auto count = static_cast<int>(parse_numbers(emulate.speeds)->size());
  if (count != tier.size) {
    return mistake("tier.emulate.speeds", i,
                   "has " + std::to_string(count) + " numbers for " + std::to_string(tier.size) +
                       " nodes (tier.size); give one per node");
  }
  for (int node = 0; node < count; ++node) {
    if (emulate.step_seconds(node) <= kLongestStep) continue;
    return mistake("tier.emulate.speeds", i,
                   "makes a step of node " + std::to_string(node) + " longer than an hour");
  }
  return std::nullopt;
}

// Keys that count nodes, once the sizes are known.
Found check_nodes(Config& config) {
  for (size_t i = 0; i < config.tiers.size(); ++i) {
    if (auto found = check_quorum(config.tiers[i], i)) return found;
    if (auto found = check_speeds(config.tiers[i], i)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Mistake> complete(Config& config) {
  if (config.tiers.size() > kMostTiers) return mistake("tier", kMostTiers, too_many_tiers());
  fill_parts(config);
  if (auto found = check_keys(config)) return found;
  if (auto found = check_learning_rate(config)) return found;
  if (auto found = check_tiers(config)) return found;
  if (auto found = check_product(config)) return found;
  if (auto found = check_ranks(config)) return found;
  return check_nodes(config);
}

Complaint misplaced(const Key& key) {
  return key.scope == Scope::innermost_tier
             ? "applies inside a node only; move it to tier[0], the innermost tier"
             : "applies between nodes only; move it to tier[1], the outer tier";
}

Complaint too_many_tiers() {
  return "a third tier is not available in this version; one tier of ranks and one of nodes are";
}

}  // namespace hybridsync
