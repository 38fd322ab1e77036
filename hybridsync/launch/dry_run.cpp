#include "hybridsync/launch/dry_run.h"

#include <algorithm>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/observe/units.h"

namespace hybridsync {
namespace {

class Outlook {
 public:
  Outlook(const Config& config, const ModelNeeds& needs)
      : config_(config),
        needs_(needs),
        vector_bytes_(4 * needs.layout.count_f32 + 8 * needs.layout.count_f64),
        table_(plan_fragments(needs.layout.count_f32, needs.layout.count_f64, config.nodes(),
                              config.ranks_per_node(), config.outer_tier().fragment_bytes)) {}

  std::vector<Figure> figures() {
    ranks();
    memory();
    if (config_.nodes() > 1) rounds();
    limits();
    return std::move(figures_);
  }

 private:
  void count(const char* name, int64_t value) {
    figures_.push_back({group_, name, static_cast<double>(value), std::to_string(value), ""});
  }
  void bytes(const char* name, double value, std::string why = "") {
    figures_.push_back({group_, name, value, human_bytes(value), std::move(why)});
  }
  void seconds(const char* name, double value, std::string why = "") {
    figures_.push_back({group_, name, value, human_seconds(value), std::move(why)});
  }

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
    const double lanes = config_.ranks_per_node();
    if (config_.nodes() > 1) {
      bytes("anchor", vector / lanes, "one in the node's shared memory, this rank's share");
      bytes("outer state", config_.outer_tier().outer.momentum != 0 ? vector / lanes : 0,
            "momentum of this rank's fragments");
      bytes("rounds in flight", vector / lanes * 2, "a contribution and a result per fragment");
    }
    bytes("data", static_cast<double>(needs_.data_bytes));
    double sum = 0;
    for (size_t i = from; i < figures_.size(); ++i) sum += figures_[i].value;
    bytes("sum", sum, "without activations and torch itself");
  }

  double optimizer_copies() const {
    if (config_.train.optimizer != "sgd") return 2;
    return config_.train.momentum != 0 ? 1 : 0;
  }

  void rounds() {
    group_ = "between nodes";
    count("fragments", static_cast<int64_t>(table_.fragments.size()));
    bytes("largest fragment", static_cast<double>(table_.largest_bytes()));
    const TierConfig tier = config_.outer_tier();
    const int64_t every = tier.strategy == Strategy::periodic ? tier.every : 1;
    count("steps between rounds", every);
    const double sent = most_sent();
    bytes("sent by a node per round", sent, "contributions, and results of fragments it owns");
    bytes("sent by a node per step", sent / static_cast<double>(every));
    if (!tier.emulate.on()) return;
    const double on_wire = tier.emulate.rate > 0 ? sent * 8 / tier.emulate.rate : 0;
    seconds("a round on the emulated link", on_wire + tier.emulate.rtt,
            "bytes / rate + one round trip");
  }

  // By the node that sends most: b N (M-1)/M each way when owners share the work evenly.
  double most_sent() const {
    std::vector<double> sent(config_.nodes());
    for (const Fragment& f : table_.fragments) {
      for (int node = 0; node < config_.nodes(); ++node)
        sent[node] +=
            static_cast<double>(f.bytes()) * (node == table_.owner(f.id) ? config_.nodes() - 1 : 1);
    }
    return *std::max_element(sent.begin(), sent.end());
  }

  void limits() {
    group_ = "limits of waits";
    const double timeout = config_.node_tier().timeout;
    seconds("ranks find each other", timeout, "tier[0].timeout");
    seconds("a silent rank of the node", timeout, "tier[0].timeout");
    if (config_.nodes() > 1)
      figures_.push_back({group_, "a silent node", -1, "none",
                          "shown while it lasts, interruptible; a broken connection ends the run"});
  }

  const Config& config_;
  const ModelNeeds& needs_;
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
    if (f.value < 0)
      json[f.group][f.name] = nullptr;
    else
      json[f.group][f.name] = f.value;
  }
  return json;
}

}  // namespace hybridsync
