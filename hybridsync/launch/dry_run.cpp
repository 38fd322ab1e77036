#include "hybridsync/launch/dry_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/decide/density_warmup.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/policy.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/observe/units.h"

namespace hybridsync {
namespace {

class Outlook {
 public:
  Outlook(const Config& config, const ModelNeeds& needs)
      : config_(config),
        needs_(needs),
        tier_(config.outer_tier()),
        policy_(make_policy(config, std::llround(1e6 * tier_.emulate.rtt))),
        cost_(codec_cost(tier_.codec, needs.layout)),
        vector_bytes_(4 * needs.layout.count_f32 + 8 * needs.layout.count_f64),
        table_(plan_parts(needs.layout.count_f32, needs.layout.count_f64, config.nodes(),
                          config.ranks_per_node(), tier_.fragment_bytes, tier_.parts,
                          config.train.seed)) {}

  std::vector<Figure> figures() {
    ranks();
    memory();
    if (config_.nodes() > 1) between_nodes();
    if (config_.nodes() > 1 && delayed()) rounds();
    limits();
    return std::move(figures_);
  }

 private:
  void count(const char* name, int64_t value, std::string why = "") {
    figures_.push_back(
        {group_, name, static_cast<double>(value), std::to_string(value), std::move(why)});
  }
  void bytes(const char* name, double value, std::string why = "") {
    figures_.push_back({group_, name, value, human_bytes(value), std::move(why)});
  }
  void seconds(const char* name, double value, std::string why = "") {
    figures_.push_back({group_, name, value, human_seconds(value), std::move(why)});
  }
  void micros(const char* name, Micros value, std::string why = "") {
    seconds(name, static_cast<double>(value) / 1e6, std::move(why));
  }
  void none(const char* name, std::string why) {
    figures_.push_back({group_, name, -1, "none", std::move(why)});
  }
  void word(const char* name, std::string text, std::string why) {
    constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
    figures_.push_back({group_, name, kNoNumber, std::move(text), std::move(why)});
  }

  bool delayed() const { return tier_.strategy == Strategy::delayed; }

  void ranks() {
    group_ = "ranks";
    count("ranks", config_.ranks());
    count("nodes", config_.nodes());
    count("ranks per node", config_.ranks_per_node());
    const int64_t window = config_.train.micro_batch * config_.accumulate.steps * config_.ranks();
    count("samples per step", window);
    count("samples in all", window * config_.train.steps);
  }

  void memory() {
    group_ = "memory per rank";
    const double vector = static_cast<double>(vector_bytes_);
    const size_t from = figures_.size();
    bytes("parameters", vector + static_cast<double>(needs_.buffer_bytes), "with buffers");
    const bool two_sets = config_.node_tier().overlap == Overlap::next_window;
    bytes("gradients", two_sets ? 2 * vector : vector,
          two_sets ? "two sets of buckets in shared memory: overlap = \"next_window\""
                   : "they are the buckets in shared memory");
    bytes("optimizer state", vector * optimizer_copies(), config_.train.optimizer);
    if (config_.nodes() > 1) memory_of_rounds(vector / config_.ranks_per_node());
    bytes("data", static_cast<double>(needs_.data_bytes));
    double sum = 0;
    for (size_t i = from; i < figures_.size(); ++i) sum += figures_[i].value;
    bytes("sum", sum, "without activations and torch itself");
  }

  // `share`: of the vector, what this rank's lane holds.
  void memory_of_rounds(double share) {
    if (tier_.strategy == Strategy::every_step) {
      bytes("anchor", share, "one in the node's shared memory, this rank's share");
    } else {
      bytes("anchor", 3 * share,
            "this rank's share of three: of the rounds, of training, and what ranks copy from");
    }
    bytes("outer state", tier_.outer.momentum != 0 ? share : 0,
          "momentum of this rank's fragments");
    const std::string contributions =
        unresolved() == 1 ? "a contribution" : std::to_string(unresolved()) + " contributions";
    bytes("rounds in flight", share * (unresolved() + 1),
          contributions + " and a result per fragment");
    if (coded())
      bytes("residuals", share * (kept_by_sender() + 2.0 / config_.nodes()),
            "at most: what codes leave out, here and of the means that it owns");
    if (!delayed()) return;
    bytes("result log", share / config_.nodes() * policy_.log_results(),
          std::to_string(policy_.log_results()) + " per fragment that it owns");
    bytes("contributions to restore", share * policy_.restore_results(),
          "at most: own ones in the newest " + std::to_string(policy_.restore_results()) +
              " results, should a view change drop those");
  }

  bool gradients() const { return tier_.strategy == Strategy::every_step; }
  bool momentum_at_sender() const {
    return coded() && tier_.codec.momentum_correction && config_.nodes() > 1;
  }
  // Vectors: of deltas the residual and what the parameters hold of it, of gradients the residual,
  // the momentum, and what a code becomes.
  double kept_by_sender() const { return !gradients() ? 2 : momentum_at_sender() ? 3 : 1; }

  int unresolved() const { return policy_.staleness + 1; }

  double optimizer_copies() const {
    if (config_.train.optimizer != "sgd") return 2;
    if (momentum_at_sender() && config_.train.weight_decay == 0) return 0;
    return config_.train.momentum != 0 ? 1 : 0;
  }

  void between_nodes() {
    group_ = "between nodes";
    count("fragments", static_cast<int64_t>(table_.fragments.size()));
    bytes("largest fragment", static_cast<double>(table_.largest_bytes()));
    const int64_t every = make_schedule(config_).every;
    count("steps between rounds", every, adapts());
    if (coded()) bits_per_number();
    const double sent = most_sent();
    bytes("sent by a node per round", sent, "contributions, and results of fragments it owns");
    bytes("sent by a node per step", sent / static_cast<double>(every));
    if (!tier_.emulate.on()) return;
    const double on_wire = tier_.emulate.rate > 0 ? sent * 8 / tier_.emulate.rate : 0;
    seconds("a round on the emulated link", on_wire + tier_.emulate.rtt,
            "bytes / rate + one round trip");
  }

  std::string adapts() const {
    if (tier_.adapt == Adapt::off) return "";
    return "at first; then between " + std::to_string(tier_.every_min) + " and " +
           std::to_string(tier_.every_max);
  }

  bool coded() const { return tier_.codec.kind != CodecKind::fp32; }
  double coded_bytes(const Fragment& f) const {
    return static_cast<double>(f.count) * (f.type == Real::f32 ? cost_.bits / 8 : 8);
  }
  void bits_per_number() {
    const std::string text = short_text(cost_.bits);
    const std::string about = cost_.exact ? "" : ", about: it depends on them";
    const std::string last = gradients() ? "" : "; the last round is plain";
    figures_.push_back(
        {group_, "bits per number", cost_.bits, text, "instead of 32" + about + last});
    if (!warmup().empty()) density_stages();
  }
  std::vector<double> warmup() const { return warmup_densities(tier_.codec); }
  void density_stages() {
    std::string text, bits;
    for (const double density : warmup()) {
      CodecOptions stage = tier_.codec;
      stage.density = density;
      text += (text.empty() ? "" : ", ") + short_text(density);
      bits += (bits.empty() ? "" : ", ") + short_text(codec_cost(stage, needs_.layout).bits);
    }
    word("density at first", text,
         "about " + bits + " bits, equally long in the first " +
             std::to_string(tier_.codec.density_warmup) + " coded rounds; then " +
             short_text(tier_.codec.density));
  }
  static std::string short_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }

  void rounds() {
    group_ = "rounds";
    count("staleness", policy_.staleness, "rounds that a node may lag");
    deadline();
    count("quorum", policy_.quorum_of(config_.nodes()),
          "nodes of " + std::to_string(config_.nodes()) + ", for a round without the others");
    late();
    seconds("round trip", tier_.emulate.rtt,
            std::string(tier_.emulate.rtt > 0 ? "emulated" : "not known yet") +
                "; the measured one replaces it at start, also in what follows");
    micros("grace", policy_.grace, "between a round's call and its end");
    micros("remind_after", policy_.remind_after,
           "then a contribution without an answer is asked about");
    micros("heartbeat", policy_.heartbeat, "between two of a node");
    micros("suspect_after", policy_.suspect_after, "without a heartbeat");
    count("results kept", policy_.log_results(), "per fragment, by its owner, for nodes that lag");
    count("unresolved contributions", unresolved(), "per fragment and node, at most");
  }

  void late() {
    constexpr const char* kNames[] = {"fold", "return", "drop"};
    constexpr const char* kWhy[] = {"a later round applies it", "it goes back to its node",
                                    "it is thrown away and counted"};
    const auto i = static_cast<size_t>(policy_.late);
    word("late", kNames[i], kWhy[i]);
  }

  void deadline() {
    if (policy_.deadline == 0) return none("deadline", "nodes further behind are waited for");
    const std::string wrong = unsuitable(config_, policy_);
    micros("deadline", policy_.deadline,
           wrong.empty() ? "then nodes further behind are skipped" : "the run would end: " + wrong);
  }

  // By the node that sends most: b N (M-1)/M each way when owners share the work evenly.
  double most_sent() const {
    std::vector<double> sent(config_.nodes());
    for (const Fragment& f : table_.fragments) {
      for (int node = 0; node < config_.nodes(); ++node)
        sent[node] += coded_bytes(f) * (node == table_.owner(f.id) ? config_.nodes() - 1 : 1);
    }
    return *std::max_element(sent.begin(), sent.end());
  }

  void limits() {
    group_ = "limits of waits";
    const double timeout = config_.node_tier().timeout;
    seconds("ranks find each other", timeout, "tier[0].timeout");
    seconds("a silent rank of the node", timeout, "tier[0].timeout");
    if (config_.nodes() > 1) limits_of_nodes();
  }

  void limits_of_nodes() {
    if (policy_.deadline > 0) {
      micros("a node behind", policy_.deadline,
             "tier[1].deadline, from a round's first contribution; the round skips it");
      micros("a silent node", policy_.deadline,
             "the same; it stays a member, and a broken connection ends the run");
    } else if (delayed()) {
      none("a silent node", lag_text() + ", then waited for; shown while it lasts, interruptible");
    } else {
      none("a silent node",
           "shown while it lasts, interruptible; a broken connection ends the run");
    }
  }

  std::string lag_text() const {
    return "may lag " + std::to_string(policy_.staleness) + " round" +
           (policy_.staleness == 1 ? "" : "s");
  }

  const Config& config_;
  const ModelNeeds& needs_;
  const TierConfig tier_;
  const Policy policy_;
  const CodecCost cost_;
  const int64_t vector_bytes_;
  const FragmentTable table_;
  std::string group_;
  std::vector<Figure> figures_;
};

}  // namespace

std::vector<Figure> outlook(const Config& config, const ModelNeeds& needs) {
  return Outlook(config, needs).figures();
}

std::string to_text(const std::vector<Figure>& figures) {
  size_t name_width = 0, text_width = 0;
  for (const Figure& f : figures) {
    name_width = std::max(name_width, f.name.size());
    text_width = std::max(text_width, f.text.size());
  }
  std::string text, group;
  for (const Figure& f : figures) {
    if (f.group != group) text += (text.empty() ? "" : "\n") + f.group + "\n";
    group = f.group;
    text += "  " + f.name + std::string(name_width - f.name.size() + 2, ' ') +
            std::string(text_width - f.text.size(), ' ') + f.text +
            (f.why.empty() ? "" : "  (" + f.why + ")") + "\n";
  }
  return text;
}

Json to_json(const std::vector<Figure>& figures) {
  Json json = Json::object();
  for (const Figure& f : figures) {
    Json& entry = json[f.group][f.name];
    if (std::isnan(f.value))
      entry = f.text;
    else if (f.value >= 0)
      entry = f.value;
  }
  return json;
}

}  // namespace hybridsync
