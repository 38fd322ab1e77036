#include "hybridsync/config/keys.h"

#include <algorithm>
#include <cctype>

#include "hybridsync/config/presets.h"
#include "hybridsync/config/units.h"

namespace hybridsync {
namespace {

constexpr int kMostUnits = 1 << 20;
constexpr int64_t kMostWarmup = int64_t{1} << 40;

// Builds the keys of one struct inside Config.
template <class Owner>
class In {
 public:
  using Access = std::function<Owner&(Config&, size_t)>;

  In(std::string prefix, Scope scope, Access owner)
      : prefix_(std::move(prefix)), scope_(scope), owner_(std::move(owner)) {}

  template <class T>
  Key operator()(const std::string& name, T Owner::*member, Kind<T> kind,
                 std::string documentation) const {
    auto at = [owner = owner_, member](Config& config, size_t tier) -> T& {
      return owner(config, tier).*member;
    };
    return {prefix_ + "." + name,
            scope_,
            kind.description,
            std::move(documentation),
            [=](Config& c, size_t i, const Value& value) {
              Complaint complaint = kind.convert(value, at(c, i));
              return complaint.empty() ? kind.check(at(c, i)) : complaint;
            },
            [=](Config& c, size_t i) { return kind.check(at(c, i)); },
            [=](Config& c, size_t i) { return kind.print(at(c, i)); }};
  }

 private:
  std::string prefix_;
  Scope scope_;
  Access owner_;
};

template <class Owner>
In<Owner> in(const std::string& table, Owner Config::*owner) {
  return {table, Scope::run, [owner](Config& config, size_t) -> Owner& { return config.*owner; }};
}

In<TierConfig> in_tier(Scope scope) {
  return {"tier", scope, [](Config& c, size_t i) -> TierConfig& { return c.tiers.at(i); }};
}

template <class Owner>
In<Owner> in_outer_tier(const std::string& table, Owner TierConfig::*owner) {
  return {"tier." + table, Scope::outer_tier,
          [owner](Config& c, size_t i) -> Owner& { return c.tiers.at(i).*owner; }};
}

constexpr double kLargest = Range{}.high;
constexpr double kHour = 3600, kYear = 365 * 24 * kHour;  // seconds
constexpr Range kFraction = {0, 1, false, false};
constexpr Range kBelowOne = {0, 1, false, true};

Complaint not_empty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

Complaint check_folder_name(const std::string& name) {
  if (name == "." || name == ".." || name.find('/') != std::string::npos) {
    return "must be one folder's name; the folder above it is record.folder";
  }
  return "";
}

Complaint check_tier_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  const bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(), plain);
  return good ? "" : "must be of letters, digits, _ and -, and not begin with a digit";
}

Complaint check_speeds(const std::string& speeds) {
  if (speeds.empty() || parse_numbers(speeds)) return "";
  return "must be numbers of more than 0 with blanks between them, such as \"1 1 0.25\"";
}

Complaint check_device(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda") return "";
  const std::string number = name.starts_with("cuda:") ? name.substr(5) : "";
  const auto digit = [](unsigned char c) { return std::isdigit(c); };
  if (!number.empty() && std::all_of(number.begin(), number.end(), digit)) return "";
  return "must be auto, cpu, cuda or cuda:N";
}

Section train() {
  const auto key = in("train", &Config::train);
  using T = TrainConfig;
  return {
      "train",
      Scope::run,
      "The program's own trainer. A training loop of your own reads only `ranks`, `clip`, and "
      "`steps` as the length of schedules.",
      {
          key("model", &T::model, word({{"cnn", "char-gpt"}, {"mlp", "resnet"}}),
              "the network: images with batch norm, or characters of a text"),
          key("data", &T::data, text("string", not_empty),
              "`fashion-mnist`, `bible`, a folder of IDX files, or a text file"),
          key("optimizer", &T::optimizer, word({{"sgd", "adam", "adamw"}}),
              "the optimizer of each rank; its state never leaves the rank"),
          key("lr", &T::lr, number({}), "learning rate, the base that [learning_rate] scales"),
          key("momentum", &T::momentum, number(kBelowOne), "of sgd; the others ignore it"),
          key("weight_decay", &T::weight_decay, number({}), "of the optimizer"),
          key("micro_batch", &T::micro_batch, integer<int64_t>(1),
              "samples per rank and micro-step"),
          key("steps", &T::steps, integer<int64_t>(1), "optimizer steps"),
          key("evaluate_every", &T::evaluate_every, integer<int64_t>(0),
              "steps between evaluations; 0: only at the end"),
          key("evaluate_samples", &T::evaluate_samples, integer<int64_t>(0),
              "samples of the held-out part that an evaluation takes, evenly spread; 0: all"),
          key("seed", &T::seed, seed(),
              "of weights and data order; the same seed gives the same bits"),
          key("clip", &T::clip, number({}), "largest norm of the whole gradient; 0: no clipping"),
          key("ranks", &T::ranks, integer<int>(0, kMostUnits),
              "ranks in all; 0: the product of the tiers' sizes"),
          key("threads", &T::threads, integer<int>(1),
              "torch threads per rank; ranks share the cores"),
          key("device", &T::device, text("auto, cpu, cuda or cuda:N", check_device),
              "where each rank computes; `auto` takes a GPU when there is one"),
          key("start_from", &T::start_from, text("a folder", [](const std::string&) { return ""; }),
              "folder of a finished run of the same model: weights, buffers and the optimizer's "
              "state are taken from there; steps and schedule begin at 0; \"\": new weights"),
      }};
}

Section accumulate() {
  const auto key = in("accumulate", &Config::accumulate);
  using T = AccumulateConfig;
  return {"accumulate",
          Scope::run,
          "The window of micro-steps between two optimizer steps.",
          {
              key("steps", &T::steps, integer<int64_t>(1), "micro-steps per optimizer step"),
              key("weighting", &T::weighting, choice<Weighting>({{"samples", "mean_of_means"}}),
                  "`samples`: the gradient of one large batch, whatever the micro-batches' sizes; "
                  "`mean_of_means`: every micro-batch counts alike"),
          }};
}

Section batch_norm() {
  const auto key = in("batch_norm", &Config::batch_norm);
  using T = BatchNormConfig;
  return {"batch_norm",
          Scope::run,
          "Running statistics of batch-norm layers.",
          {
              key("running_stats", &T::running_stats,
                  choice<RunningStats>({{"per_window", "per_micro_batch"}}),
                  "when they advance: once per window from its merged statistics, or with every "
                  "micro-batch"),
              key("at_sync", &T::at_sync, choice<StatsAtSync>({{"merge", "first", "none"}}),
                  "what a round between nodes does with them: merge all, take those of the first "
                  "node, or leave them"),
          }};
}

Section learning_rate() {
  const auto key = in("learning_rate", &Config::learning_rate);
  using T = LearningRateConfig;
  return {"learning_rate",
          Scope::run,
          "How the learning rate follows the batch size and the steps.",
          {
              key("scaling", &T::scaling, choice<LrScaling>({{"sqrt", "linear", "none"}}),
                  "the base times the square root of batch / reference_batch, times that quotient, "
                  "or unscaled"),
              key("reference_batch", &T::reference_batch, number({}),
                  "the batch that train.lr was tuned for; 0: this run's own, so nothing is scaled"),
              key("schedule", &T::schedule, choice<LrSchedule>({{"constant", "cosine", "step"}}),
                  "advances once per optimizer step"),
              key("warmup", &T::warmup, integer<int64_t>(0),
                  "first steps, over which the rate rises linearly to its full value"),
              key("decay_every", &T::decay_every, integer<int64_t>(0),
                  "schedule `step`: steps between decays"),
              key("decay_factor", &T::decay_factor, number({0, kLargest, true, false}),
                  "schedule `step`: factor at each decay"),
              key("final_factor", &T::final_factor, number(kFraction),
                  "schedule `cosine`: the rate at the last step, as a fraction of the full one"),
          }};
}

Section start() {
  return {
      "start",
      Scope::run,
      "How a run begins.",
      {in("start", &Config::start)(
          "every_step", &StartConfig::every_step, integer<int64_t>(0),
          "first steps that are purely synchronous, before the tiers' own strategies take over")}};
}

// A preset's name stands for what it made of the tier before its keys were read.
Kind<Strategy> strategy() {
  Choices names{{"every_step", "periodic", "delayed"}, {"streaming", "async_local", "replay"}};
  Kind<Strategy> kind = choice<Strategy>(names);
  for (const Preset& preset : presets()) names.names.push_back(preset.name);
  kind.description = joined(names.names);
  kind.convert = [names](const Value& value, Strategy& out) {
    size_t index = 0;
    const Complaint complaint = choose(value, names, index);
    if (complaint.empty() && index <= static_cast<size_t>(Strategy::delayed))
      out = static_cast<Strategy>(index);
    return complaint;
  };
  return kind;
}

Section every_tier() {
  const auto key = in_tier(Scope::every_tier);
  using T = TierConfig;
  return {
      "tier",
      Scope::every_tier,
      "One layer of the topology, innermost first: the first `[[tier]]` joins ranks to a node, the "
      "second joins nodes. Without any, the run is one process.",
      {
          key("name", &T::name, text("letters, digits, _ and -", check_tier_name),
              "for messages, records and `--set tier.NAME.KEY=VALUE`; the second tier's default is "
              "`site`"),
          key("size", &T::size, size_or_auto(kMostUnits),
              "units that it joins: ranks, or nodes; `auto`: what train.ranks leaves"),
          key("strategy", &T::strategy, strategy(),
              "`every_step` averages gradients in each step; `periodic` averages parameters every "
              "`every` steps; `delayed` does the same without waiting for nodes that lag; the "
              "innermost tier is always `every_step`. Presets are these with other defaults: "
              "`diloco` (Douillard et al. 2023: periodic, every = 500, outer lr 0.7, Nesterov "
              "momentum 0.9), `sparse_loco` (2025: periodic, every = 15, top_k of 1/64 with 2 "
              "bits, error_feedback 0.95 beside the parameters), `top_k` (Deep Gradient "
              "Compression, Lin et al. 2018: every_step, top_k of 0.01 with 16 bits, "
              "momentum_correction) and `sparse_sign` (periodic, the signs of the largest 7 %, a "
              "part of the parameters at every step, outer lr `auto`: far fewer bytes in both "
              "directions)"),
      }};
}

Section innermost_tier() {
  const auto key = in_tier(Scope::innermost_tier);
  using T = TierConfig;
  return {"tier",
          Scope::innermost_tier,
          "Only on the innermost tier, whose ranks share memory.",
          {
              key("group", &T::group, word({{"auto", "shm"}, {"mpi", "nccl"}}),
                  "what reduces gradients: shared memory"),
              key("overlap", &T::overlap, choice<Overlap>({{"off", "backward", "next_window"}}),
                  "where the reduction runs: after the last backward pass, during it (the same "
                  "bits), or "
                  "beside the next window's first micro-step (numbers differ by design)"),
              key("bucket_bytes", &T::bucket_bytes, integer<int64_t>(8),
                  "gradients that travel together, in bytes"),
              key("timeout", &T::timeout, duration({0, kYear, true, false}),
                  "how long a rank waits for a silent one of its node"),
          }};
}

Section outer_tier() {
  const auto key = in_tier(Scope::outer_tier);
  using T = TierConfig;
  return {
      "tier",
      Scope::outer_tier,
      "Only on the outer tier, which joins nodes. `overlap = 0` is accepted there and is what "
      "happens: a round is applied in the step that begins it.",
      {
          key("every", &T::every, integer<int64_t>(1),
              "optimizer steps between rounds (K) of `periodic` and `delayed`"),
          key("adapt", &T::adapt,
              choice<Adapt>({{"off", "divergence", "loss", "grow", "qsr", "adacomm"}}),
              "`periodic`, `delayed`: how K changes from `every` on: with how far nodes drift "
              "apart, "
              "with the loss's fall, by doublings spread over training, as the inverse square of "
              "the learning rate (Gu et al. 2024), or as the root of the loss (Wang and Joshi "
              "2019)"),
          key("every_min", &T::every_min, integer<int64_t>(1), "`adapt`: the least K"),
          key("every_max", &T::every_max, integer<int64_t>(1), "`adapt`: the largest K"),
          key("fragment_bytes", &T::fragment_bytes, integer<int64_t>(8),
              "parameters that travel together, at most, in bytes"),
          key("parts", &T::parts, size_or_auto(kMostParts),
              "`periodic`, `delayed`: parameters are dealt into so many parts, and each has its "
              "rounds at steps of its own, spread evenly over `every`: the same bytes, more "
              "messages; `auto`: as many as `every`"),
          key("momentum_pull", &T::momentum_pull, number(kFraction),
              "`periodic`: after a round, how far each optimizer's momentum moves towards the "
              "one that would have made the step of all nodes"),
          key("second_moment_floor", &T::second_moment_floor, number(kBelowOne),
              "what Adam's second moments are at least, as a part of the mean of their tensor; "
              "of no effect on other optimizers"),
          key("staleness", &T::staleness, integer<int>(0, 64),
              "`delayed`: rounds that a node may lag without being waited for, at most 64; 0 "
              "waits for everybody"),
          key("deadline", &T::deadline, duration_or_none({0, kYear, true, false}),
              "`delayed`: how long after its first contribution a round skips nodes that are "
              "further behind; needs `staleness` of at least 1"),
          key("quorum", &T::quorum, quorum(kMostUnits),
              "`delayed`: nodes that must be in before a round closes without the others; "
              "`majority` is more than half, or one of two"),
          key("late", &T::late, choice<Late>({{"fold", "return", "drop"}}),
              "`delayed`: what becomes of a contribution that comes after its round: `fold` it "
              "into a later one, `return` it to its node, whose next contribution holds it, or "
              "`drop` it"),
      }};
}

Section codec() {
  const In<CodecOptions> key{"tier", Scope::outer_tier, [](Config& c, size_t i) -> CodecOptions& {
                               return c.tiers.at(i).codec;
                             }};
  using T = CodecOptions;
  return {
      "tier",
      Scope::outer_tier,
      "How the deltas of `periodic` and `delayed` and the gradients of `every_step` travel, in "
      "both directions.",
      {
          key("codec", &T::kind,
              choice<CodecKind>(
                  {{"fp32", "bf16", "fp16", "int8", "int4", "int2", "sign", "levels", "top_k"}}),
              "what a number becomes: itself, 16, 8, 4, 2 or 1 bits, one of a few `levels`, or "
              "only the largest are sent (`top_k`)"),
          key("levels", &T::levels, integer<int>(3, 7), "`levels`: 3, 5 or 7"),
          key("density", &T::density, number({0, 1, true, false}),
              "`top_k`: the part of the numbers that is sent"),
          key("value_bits", &T::value_bits, integer<int>(1, 16),
              "`top_k`: bits per number that is sent: 16, 8, 4, 2 or 1"),
          key("selection", &T::selection, choice<Selection>({{"chunks", "threshold"}}),
              "`top_k`: the largest of each 4,096 numbers, or about as many above one "
              "threshold"),
          key("error_feedback", &T::error_feedback, number(kFraction),
              "of what a code left out, how much is encoded again in the next round; 0 drops "
              "it"),
          key("residual", &T::residual, choice<Residual>({{"auto", "local", "buffer"}}),
              "where a node keeps what was left out: in its parameters (`local`) or beside them "
              "(`buffer`); `auto`: local for `top_k` and `sign`. Of gradients always beside them"),
          key("gamma", &T::gamma, number({0, 1, true, false}),
              "what a residual in the parameters keeps per round"),
          key("small_tensors", &T::small_tensors,
              choice<SmallTensorCode>({{"auto", "bf16", "int8", "coded"}}),
              "how tensors of fewer than 4,096 numbers travel with `int8` and shorter codecs: as "
              "16 "
              "or 8 bits, or `coded` like the others; `auto`: bf16, or int8 where that would be "
              "more "
              "than a tenth of the bytes"),
          key("momentum_correction", &T::momentum_correction, truth(),
              "`top_k` of gradients: each node sums up the momentum of SGD before it picks what it "
              "sends, and the optimizer applies none; for optimizers other than SGD set false"),
          key("density_warmup", &T::density_warmup, integer<int64_t>(0, kMostWarmup),
              "`top_k`: first coded rounds, over which the density falls from 0.25 in stages of a "
              "factor of 4; 0: off"),
      }};
}

Section outer_optimizer() {
  const auto key = in_outer_tier("outer", &TierConfig::outer);
  using T = OuterConfig;
  return {"tier.outer",
          Scope::outer_tier,
          "The outer optimizer of `periodic` and `delayed`, applied to the averaged deltas: "
          "`outer = { lr = 0.7, momentum = 0.9, nesterov = true }`. As it stands by default it is "
          "plain averaging.",
          {
              key("lr", &T::lr, number_or_auto({}, kAutoLr),
                  "outer learning rate; `auto`: the owner of a round finds it, from "
                  "how far the nodes agree and how much the codec leaves out"),
              key("momentum", &T::momentum, number(kBelowOne), "outer momentum"),
              key("nesterov", &T::nesterov, truth(), "Nesterov's form; needs momentum"),
          }};
}

Section emulate() {
  const auto key = in_outer_tier("emulate", &TierConfig::emulate);
  using T = EmulateConfig;
  return {"tier.emulate",
          Scope::outer_tier,
          "A link slower than the one there is, to try it without having it: "
          "`emulate = { rate = \"100 Mbit/s\", rtt = \"50 ms\" }`, and nodes of different speeds: "
          "`emulate = { step = \"50 ms\", speeds = \"1 1 0.25\" }`. Nothing is changed outside the "
          "run.",
          {
              key("rate", &T::rate, rate(),
                  "what a node can send, and as much that it can receive; 0: as fast as it goes"),
              key("rtt", &T::rtt, duration({0, kHour}), "what a round trip takes longer"),
              key("step", &T::step, duration({0, kHour}),
                  "what an optimizer step takes at least, by sleeping; 0: off"),
              key("speeds", &T::speeds, text("numbers of more than 0, one per node", check_speeds),
                  "relative speeds of the nodes in order: the steps of a node of speed 0.25 take 4 "
                  "times `step`; empty: all 1"),
          }};
}

Section record() {
  const auto key = in("record", &Config::record);
  using T = RecordConfig;
  return {
      "record",
      Scope::run,
      "Where a run's records go.",
      {
          key("folder", &T::folder, text("string", not_empty), "folder of all runs"),
          key("name", &T::name, text("string", check_folder_name),
              "the run's folder inside; empty: made from the configuration's name and the time"),
      }};
}

const std::vector<std::string>& names_for_later() {
  static const std::vector<std::string> names = {"record.tensorboard", "record.timeline",
                                                 "record.prometheus",  "coordinator",
                                                 "security",           "checkpoint"};
  return names;
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      train(),          accumulate(), batch_norm(), learning_rate(),   start(),   every_tier(),
      innermost_tier(), outer_tier(), codec(),      outer_optimizer(), emulate(), record()};
  return all;
}

const Key* find_key(const std::string& name) {
  for (const auto& section : sections()) {
    for (const auto& key : section.keys) {
      if (key.name == name) return &key;
    }
  }
  return nullptr;
}

std::vector<std::string> known_tables() {
  std::vector<std::string> tables;
  for (const auto& section : sections()) {
    if (tables.empty() || tables.back() != section.table) tables.push_back(section.table);
  }
  return tables;
}

bool is_for_later(const std::string& name) {
  const auto& names = names_for_later();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool applies(Scope scope, size_t tier) {
  if (scope == Scope::innermost_tier) return tier == 0;
  return scope != Scope::outer_tier || tier > 0;
}

TierConfig default_tier(size_t tier) {
  TierConfig result;
  if (tier > 0) result.name = "site";
  return result;
}

std::string label(const std::string& name, size_t tier) {
  if (name != "tier" && !name.starts_with("tier.")) return name;
  return "tier[" + std::to_string(tier) + "]" + name.substr(4);
}

}  // namespace hybridsync
