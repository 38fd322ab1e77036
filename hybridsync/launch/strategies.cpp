#include "hybridsync/launch/strategies.h"

#include "hybridsync/config/keys.h"
#include "hybridsync/config/presets.h"
#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/observe/units.h"

namespace hybridsync {
namespace {

constexpr const char* kWords =
    "N parameters, M nodes with weights w_i (samples); anchor a: what all nodes agree on; d_i = "
    "a - theta_i: what node i learned since; g_i: its gradient; C: the code, e: what it left out "
    "before";

// What a configuration calls the value that the tier has.
std::string word(const char* key, const TierConfig& tier) {
  Config config;
  config.tiers = {tier, tier};
  const std::string quoted = find_key(key)->print(config, 1);
  return quoted.substr(1, quoted.size() - 2);
}

std::string number(double value) {
  std::string text = fixed(value, 4);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

bool gradients(const TierConfig& t) { return t.strategy == Strategy::every_step; }
bool coded(const TierConfig& t) { return t.codec.kind != CodecKind::fp32; }
bool local(const TierConfig& t) { return coded(t) && t.codec.residual == Residual::local; }

std::string when(const TierConfig& t) {
  if (gradients(t)) return "every step";
  const std::string every = "every " + std::to_string(t.every) + " steps";
  return t.parts == 1 ? every : every + ", a part at each step";
}

std::string code(const TierConfig& t) {
  if (t.codec.kind != CodecKind::top_k) return word("tier.codec", t);
  return "the largest " + number(100 * t.codec.density) + " %, " +
         (t.codec.value_bits == 1 ? "signs" : std::to_string(t.codec.value_bits) + " bits");
}

std::string waits(const TierConfig& t) {
  if (t.strategy != Strategy::delayed) return "all, for all";
  return "who lags by more than `staleness` rounds is waited for, until `deadline`";
}

std::string applied(const TierConfig& t) {
  if (gradients(t)) return "by the optimizer";
  const OuterConfig& o = t.outer;
  if (o == OuterConfig{}) return "average";
  return (o.nesterov ? "Nesterov" : "SGD") + std::string(", lr ") +
         (o.lr == kAutoLr ? "auto" : number(o.lr)) + ", momentum " + number(o.momentum);
}

// What C is applied to on its way to the owner, and what becomes of the mean.
std::string formula(const TierConfig& t) {
  const std::string beta =
      t.codec.error_feedback == 1 ? "e" : number(t.codec.error_feedback) + " e";
  if (gradients(t) && !coded(t)) return "g = sum w_i g_i / sum w_i";
  if (gradients(t))
    return std::string(t.codec.momentum_correction ? "u_i = m u_i + g_i, " : "") + "v_i = v_i + " +
           (t.codec.momentum_correction ? "u_i" : "g_i") +
           ", y_i = C(v_i), v_i -= y_i; g = C(mean y_i + " + beta + ")";
  const std::string up = !coded(t)  ? "D = sum w_i d_i / sum w_i"
                         : local(t) ? "y_i = C(d_i), D = C(mean y_i + " + beta + ")"
                                    : "y_i = C(d_i + " + beta + "), D = C(mean y_i + " + beta + ")";
  const OuterConfig& o = t.outer;
  const std::string lr = o.lr == kAutoLr ? "gain" : number(o.lr);
  const std::string move = o == OuterConfig{} ? "a -= D"
                           : o.momentum == 0
                               ? "a -= " + lr + " D"
                               : "b = " + number(o.momentum) + " b + D, a -= " + lr + " (" +
                                     (o.nesterov ? "D + " + number(o.momentum) + " b" : "b") + ")";
  const std::string after =
      local(t) ? "; theta_i = a - " + number(t.codec.gamma) + " (d_i - y_i)" : "; theta_i = a";
  const std::string pull = t.momentum_pull == 0
                               ? ""
                               : "; optimizer's m = " + number(1 - t.momentum_pull) + " m + " +
                                     number(t.momentum_pull) + " D den / sum lr";
  return up + "; " + move + after + pull;
}

std::string state(const TierConfig& t) {
  std::string text = gradients(t) ? "" : "anchor";
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (t.outer.momentum != 0) add("outer momentum");
  if (coded(t) && !local(t)) add("residual");
  if (gradients(t) && t.codec.momentum_correction) add("momentum instead of the optimizer's");
  if (coded(t)) add("residual of the means that it owns");
  if (t.strategy == Strategy::delayed) add("open contributions, newest results");
  return text.empty() ? "nothing" : text;
}

StrategyEntry entry_of(const std::string& name, const std::string& source, const TierConfig& tier) {
  const CodecCost cost = codec_cost(tier.codec);
  return {.name = name,
          .source = source,
          .when = when(tier),
          .what = gradients(tier) ? "gradient" : "delta",
          .code = code(tier),
          .waits = waits(tier),
          .applied = applied(tier),
          .formula = formula(tier),
          .bits = cost.bits,
          .exact = cost.exact,
          .every = gradients(tier) ? 1 : tier.every,
          .state = state(tier)};
}

std::string bits(const StrategyEntry& e) {
  return (e.exact ? "" : "about ") + fixed(e.bits, e.bits < 10 ? 2 : 0);
}
std::string less(const StrategyEntry& e) {
  const double times = times_less(e);
  return fixed(times, times < 10 ? 1 : 0);
}

}  // namespace

std::vector<StrategyEntry> strategies() {
  std::vector<StrategyEntry> all;
  for (const Strategy plain : {Strategy::every_step, Strategy::periodic, Strategy::delayed}) {
    TierConfig tier = default_tier(1);
    tier.strategy = plain;
    all.push_back(entry_of(word("tier.strategy", tier), "", tier));
  }
  for (const Preset& preset : presets()) {
    TierConfig tier = default_tier(1);
    preset.apply(tier);
    all.push_back(entry_of(preset.name, preset.source, tier));
  }
  return all;
}

double bytes_per_round(const StrategyEntry& e, double parameters, int nodes) {
  return 2 * e.bits * parameters * (nodes - 1) / nodes / 8;
}

double times_less(const StrategyEntry& e) { return 32 * static_cast<double>(e.every) / e.bits; }

std::string strategies_text(double parameters, int nodes) {
  std::string text = std::string("For ") + human_count(parameters) + " parameters and " +
                     std::to_string(nodes) + " nodes; every key can be set beside a name.\n" +
                     kWords + ".\n";
  for (const StrategyEntry& e : strategies()) {
    text += "\n" + e.name + (e.source.empty() ? "" : "  (" + e.source + ")") + "\n";
    const auto line = [&](const char* name, const std::string& value) {
      text +=
          "  " + std::string(name) + std::string(10 - std::string(name).size(), ' ') + value + "\n";
    };
    line("exchanges", e.what + ", " + e.when + ", as " + e.code);
    line("waits", e.waits);
    line("formula", e.formula);
    line("sends", human_bytes(bytes_per_round(e, parameters, nodes)) +
                      " per node and round of all parameters, and receives as much: " + bits(e) +
                      " bits per number, " + less(e) + " times less than fp32 on every step");
    line("keeps", e.state);
  }
  return text;
}

Json strategies_json(double parameters, int nodes) {
  Json all = Json::array();
  for (const StrategyEntry& e : strategies())
    all.push_back({{"name", e.name},
                   {"source", e.source},
                   {"when", e.when},
                   {"what", e.what},
                   {"code", e.code},
                   {"waits", e.waits},
                   {"applied", e.applied},
                   {"formula", e.formula},
                   {"state", e.state},
                   {"bits_per_number", e.bits},
                   {"bytes_per_round", bytes_per_round(e, parameters, nodes)},
                   {"times_less", times_less(e)}});
  return all;
}

std::string strategies_markdown() {
  std::string text =
      "# Strategies\n\nThis document is what `hybridsync strategies` knows (`hybridsync/launch/"
      "strategies.cpp`); a test compares the two. A name sets the\nkeys of the tier between nodes "
      "that are not set beside it, so every choice can be another one.\n\n| strategy | when | what "
      "| as | who waits | applied |\n|---|---|---|---|---|---|\n";
  for (const StrategyEntry& e : strategies())
    text += "| `" + e.name + "`" + (e.source.empty() ? "" : " (" + e.source + ")") + " | " +
            e.when + " | " + e.what + " | " + e.code + " | " + e.waits + " | " + e.applied + " |\n";
  text +=
      std::string("\n") + kWords +
      ". A node sends 2 b N (M - 1) / M bits in a round of b bits\nper number, and receives as "
      "many; a ring all-reduce of fp32 on every step is what it is compared with.\n\n| strategy "
      "| formula | b | times less | a node keeps |\n|---|---|---:|---:|---|\n";
  for (const StrategyEntry& e : strategies())
    text += "| `" + e.name + "` | " + e.formula + " | " + bits(e) + " | " + less(e) + " | " +
            e.state + " |\n";
  return text;
}

}  // namespace hybridsync
