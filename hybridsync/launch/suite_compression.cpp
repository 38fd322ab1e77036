#include "hybridsync/launch/suite_compression.h"

namespace hybridsync {
namespace {

// Four nodes of one rank. A round's bits per node do not depend on how many ranks a node has.
constexpr const char* kNodes = R"(
[[tier]]
name = "node"
size = 1

[[tier]]
name = "site"
size = 4
strategy = "every_step"
)";

constexpr const char* kCharGpt =
    R"(# A transformer of four layers that learns to write, one character at a time.
[train]
model = "char-gpt"
data = "bible"
optimizer = "adamw"
weight_decay = 0.01
micro_batch = 8
steps = 320
evaluate_samples = 1536
clip = 1.0

[learning_rate]
schedule = "cosine"
)";

constexpr const char* kCnn =
    R"(# A small network with batch norm that learns to name pieces of clothing.
[train]
model = "cnn"
data = "fashion-mnist"
optimizer = "sgd"
momentum = 0.9
micro_batch = 16
steps = 320
evaluate_samples = 4000

[learning_rate]
schedule = "cosine"
)";

// Rates of the parts in which a row is run.
struct Rates {
  std::vector<double> char_gpt_steep = {}, char_gpt_flat = {}, cnn_steep = {}, cnn_flat = {};
};

struct Line {
  std::string name;
  std::vector<std::string> sets;
  Rates rates;  // a part without rates does not have the row
  Role role = Role::measured;
  bool full = false;
};

std::vector<std::string> every(int k, std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), {"tier.1.strategy=periodic", "tier.1.every=" + std::to_string(k)});
  return sets;
}

std::vector<std::string> preset(const std::string& name, int k) {
  return {"tier.1.strategy=" + name, "tier.1.every=" + std::to_string(k)};
}

std::string code(const std::string& name) { return "tier.1.codec=" + name; }

// Found at seed 1 before any measuring, with a few runs each of synchronous, alone, fp32 K = 8 and
// K = 32, sign K = 8 and sparse_sign K = 4 and 15, on grids of a factor of 1.5 to 2, some of them
// from starts of other lengths. Codes have the rate of their K.
const Rates kSynchronous = {{2e-3, 4e-3}, {1e-3, 2e-3}, {0.05, 0.1}, {0.02, 0.05}};
const Rates kAlone = {{1e-3, 2e-3}, {5e-4, 1e-3}, {0.01, 0.02}, {0.01, 0.02}};
const Rates kRare = {{3e-3}, {1.5e-3}, {0.1}, {0.02}};  // K up to 16
const Rates kRarer = {{2e-3}, {1e-3}, {0.05}, {0.02}};  // K = 32

const std::string kLocal = "tier.1.residual=local";
const std::string kDrop = "tier.1.error_feedback=0";

// One of 64 numbers in rounds every 8 steps.
std::vector<std::string> top_k(int bits, std::vector<std::string> sets) {
  sets.insert(sets.begin(), {code("top_k"), "tier.1.density=0.015625",
                             "tier.1.value_bits=" + std::to_string(bits)});
  return every(8, sets);
}

// A row of char-gpt only.
Rates text(Rates rates) {
  rates.cnn_steep = rates.cnn_flat = {};
  return rates;
}
Rates char_gpt(double steep) { return {{steep}, {steep / 2}, {}, {}}; }
const Rates kGradients = {{}, {}, {0.1}, {0.02}};  // a rate as that of synchronous training

std::vector<std::string> gradients(const char* density, std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), {"tier.1.strategy=top_k", std::string("tier.1.density=") + density});
  return sets;
}
std::vector<std::string> gain(int k, const char* lr) {
  std::vector<std::string> sets = preset("sparse_sign", k);
  sets.push_back(std::string("tier.1.outer.lr=") + lr);
  return sets;
}
const std::string kNoCorrection = "tier.1.momentum_correction=false";

// clang-format off
const std::vector<Line> kLines = {
    {"synchronous", {}, kSynchronous, Role::synchronous},
    // One node with the samples that one of the four has: a quarter, in as many steps.
    {"no exchange", {"tier.1.size=1"}, kAlone, Role::alone},
    {"fp32 K=4", every(4), text(kRare)},
    {"fp32 K=8", every(8), kRare},
    {"fp32 K=16", every(16), text(kRare)},
    {"fp32 K=32", every(32), kRarer},
    {"bf16 K=8", every(8, {code("bf16")}), kRare, Role::measured, true},
    {"int8 K=8", every(8, {code("int8")}), kRare, Role::measured, true},
    {"int4 K=8", every(8, {code("int4")}), kRare},
    {"int2 K=8", every(8, {code("int2")}), text(kRare)},
    {"int2 K=32", every(32, {code("int2")}), kRarer, Role::measured, true},
    {"levels 5 K=8", every(8, {code("levels"), "tier.1.levels=5"}), kRare, Role::measured, true},
    {"levels 3 K=8", every(8, {code("levels"), "tier.1.levels=3"}), text(kRare)},
    {"sign K=8", every(8, {code("sign")}), kRare},
    {"sign K=32", every(32, {code("sign")}), text(kRarer)},
    {"top_k 1/64 8 bits K=8", top_k(8, {kLocal}), kRare},
    {"top_k 1/64 1 bit K=8", top_k(1, {kLocal}), kRare, Role::measured, true},
    {"sparse_loco K=8", preset("sparse_loco", 8), text(kRare)},
    {"sign dropping K=8", every(8, {code("sign"), kDrop}), kRare},
    {"top_k 1/64 8 bits dropping K=8", top_k(8, {kDrop}), kRare},
    {"sparse_sign K=4", preset("sparse_sign", 4), {{2e-3}, {1e-3}, {0.05}, {0.01}}},
    {"sparse_sign K=8", preset("sparse_sign", 8), char_gpt(1.6e-3)},
    {"sparse_sign K=15", preset("sparse_sign", 15), {{1.3e-3}, {6.5e-4}, {0.05}, {0.01}}},
    {"sparse_sign K=33", preset("sparse_sign", 33), char_gpt(1e-3)},
    {"sparse_sign K=110", preset("sparse_sign", 110), char_gpt(1e-3)},
    {"sparse_sign K=4 gain 3", gain(4, "3"), {{2e-3}, {}, {}, {}}},
    {"sparse_sign K=15 gain 3", gain(15, "3"), {{1.3e-3}, {}, {}, {}}},
    {"sparse_sign K=4 gain 1.5", gain(4, "1.5"), {{}, {1e-3}, {}, {}}},
    {"sparse_sign K=15 gain 1.5", gain(15, "1.5"), {{}, {6.5e-4}, {}, {}}},
    {"top_k 0.01", gradients("0.01"), kGradients},
    {"top_k 0.001", gradients("0.001"), kGradients},
    {"top_k 0.01 uncorrected", gradients("0.01", {kNoCorrection}), kGradients},
    {"top_k 0.001 uncorrected", gradients("0.001", {kNoCorrection}), kGradients},
    {"top_k 0.01 dropping", gradients("0.01", {kNoCorrection, kDrop}), kGradients},
    {"top_k 0.001 dropping", gradients("0.001", {kNoCorrection, kDrop}), kGradients},
};
// clang-format on

void add_rows(SuitePart& part, const std::vector<Line>& lines, std::vector<double> Rates::*rates) {
  for (const Line& line : lines) {
    if ((line.rates.*rates).empty()) continue;
    part.rows.push_back({line.name, line.sets, line.rates.*rates, line.role, line.full});
  }
}

SuitePart part(const std::string& task, const std::string& name, const char* toml,
               int64_t start_steps, const char* start_rate, int64_t warmup,
               std::vector<double> Rates::*rates) {
  SuitePart part{.task = task, .name = name, .toml = std::string(toml) + kNodes};
  part.start_sets = {"train.steps=" + std::to_string(start_steps),
                     std::string("train.lr=") + start_rate, "learning_rate.schedule=constant",
                     "learning_rate.warmup=" + std::to_string(warmup)};
  add_rows(part, kLines, rates);
  return part;
}

}  // namespace

Suite compression_suite() {
  return {"compression",
          {part("char-gpt", "steep", kCharGpt, 700, "0.002", 20, &Rates::char_gpt_steep),
           part("char-gpt", "flat", kCharGpt, 1400, "0.002", 20, &Rates::char_gpt_flat),
           part("cnn", "steep", kCnn, 50, "0.05", 0, &Rates::cnn_steep),
           part("cnn", "flat", kCnn, 1500, "0.05", 0, &Rates::cnn_flat)}};
}

}  // namespace hybridsync
