#include "hybridsync/launch/suite_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hybridsync/observe/units.h"

namespace hybridsync {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Pair {
  const PlannedRun* run;
  const Measured* measured;
};
using Pairs = std::vector<Pair>;
using BySeed = std::map<uint64_t, double>;  // losses

// One row at one rate.
struct Trial {
  double rate = 0;
  Pairs pairs;

  int count(RunState state) const {
    return static_cast<int>(std::count_if(
        pairs.begin(), pairs.end(), [&](const Pair& p) { return p.measured->state == state; }));
  }
  std::vector<double> values(double (*value)(const Measured&)) const {
    std::vector<double> all;
    for (const Pair& p : pairs)
      if (p.measured->state == RunState::done) all.push_back(value(*p.measured));
    return all;
  }
  Spread loss() const {
    return spread_of(values([](const Measured& m) { return m.loss; }));
  }
  BySeed losses() const {
    BySeed all;
    for (const Pair& p : pairs)
      if (p.measured->state == RunState::done) all[p.run->seed] = p.measured->loss;
    return all;
  }
  double mean(double (*value)(const Measured&)) const { return spread_of(values(value)).mean; }
};

std::vector<Trial> trials_of(const Pairs& row) {
  std::vector<Trial> trials;
  for (const Pair& pair : row) {
    const auto same = [&](const Trial& t) { return t.rate == pair.run->rate; };
    auto found = std::find_if(trials.begin(), trials.end(), same);
    if (found == trials.end()) found = trials.insert(trials.end(), Trial{pair.run->rate, {}});
    found->pairs.push_back(pair);
  }
  return trials;
}

// More seeds done first, so that a rate that diverges now and then is never the best.
const Trial& best_of(const std::vector<Trial>& trials) {
  return *std::min_element(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
    const int done_a = a.count(RunState::done), done_b = b.count(RunState::done);
    return done_a != done_b ? done_a > done_b : a.loss().mean < b.loss().mean;
  });
}

struct References {
  BySeed synchronous, alone;
};

void compare_with(const References& references, const BySeed& losses, RowResult& row) {
  std::vector<double> gaps, shares;
  for (const auto& [seed, loss] : losses) {
    const auto synchronous = references.synchronous.find(seed);
    if (synchronous == references.synchronous.end()) continue;
    gaps.push_back(loss_gap(loss, synchronous->second));
    const auto alone = references.alone.find(seed);
    if (alone == references.alone.end()) continue;
    shares.push_back(share_of_benefit(loss, alone->second, synchronous->second));
  }
  row.gap = spread_of(gaps);
  row.share = spread_of(shares);
}

RowResult row_result(const SuiteRow& row, const std::vector<Trial>& trials,
                     const References& references) {
  const Trial& best = best_of(trials);
  RowResult result{.name = row.name, .role = row.role, .rate = best.rate};
  result.planned = static_cast<int>(best.pairs.size());
  result.runs = best.count(RunState::done);
  result.diverged = best.count(RunState::diverged);
  result.failed = best.count(RunState::failed);
  result.loss = best.loss();
  result.accuracy = spread_of(best.values([](const Measured& m) { return m.accuracy; }));
  result.steady = {best.mean([](const Measured& m) { return m.steady.sent; }),
                   best.mean([](const Measured& m) { return m.steady.received; })};
  result.whole = {best.mean([](const Measured& m) { return m.whole.sent; }),
                  best.mean([](const Measured& m) { return m.whole.received; })};
  for (const Trial& trial : trials) result.rates.emplace_back(trial.rate, trial.loss());
  compare_with(references, best.losses(), result);
  return result;
}

bool tried(const Pairs& row) {
  return std::any_of(row.begin(), row.end(),
                     [](const Pair& p) { return p.measured->state != RunState::missing; });
}

PartResult part_result(const SuitePart& part, const std::map<int, Pairs>& rows) {
  PartResult result{.task = part.task, .part = part.name};
  std::map<int, std::vector<Trial>> trials;
  References references;
  for (const auto& [r, pairs] : rows) {
    if (!tried(pairs)) continue;
    trials[r] = trials_of(pairs);
    const Role role = part.rows[static_cast<size_t>(r)].role;
    if (role == Role::synchronous) references.synchronous = best_of(trials[r]).losses();
    if (role == Role::alone) references.alone = best_of(trials[r]).losses();
    for (const Pair& p : pairs) result.nodes = std::max(result.nodes, p.run->config.nodes());
  }
  result.cost_of_none = {kNone, kNone, kNone};
  for (const auto& [r, row_trials] : trials) {
    const SuiteRow& row = part.rows[static_cast<size_t>(r)];
    result.rows.push_back(row_result(row, row_trials, references));
    result.seeds = std::max(result.seeds, result.rows.back().planned);
    if (row.role == Role::alone) result.cost_of_none = result.rows.back().gap;
  }
  return result;
}

std::string range(const Spread& spread, std::string (*text)(double)) {
  return std::isnan(spread.mean) ? "-" : text(spread.low) + ".." + text(spread.high);
}

std::string four(double value) { return fixed(value, 4); }
std::string hundredths(double value) { return percent(value, 2); }
std::string tenths(double value) { return percent(value, 1); }

// About three digits, whatever the size.
std::string bits_text(double bits) {
  if (std::isnan(bits)) return "-";
  return fixed(bits, bits >= 10 ? 1 : bits >= 1 ? 2 : 3);
}

std::string times_less(int nodes, double bits) {
  return bits > 0 ? fixed(all_reduce_bits(nodes) / bits, all_reduce_bits(nodes) / bits < 10 ? 1 : 0)
                  : "-";
}

std::string state_text(const RowResult& row) {
  std::string text;
  const auto add = [&](int count, const char* word) {
    if (count == 0) return;
    text += (text.empty() ? " (" : ", ") + std::to_string(count) + " " + word;
  };
  add(row.diverged, "diverged");
  add(row.failed, "failed");
  add(row.planned - row.runs - row.diverged - row.failed, "to come");
  return text.empty() ? "" : text + ")";
}

Json spread_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"min", spread.low}, {"max", spread.high}};
}

Json bits_json(const Bits& bits) { return {{"sent", bits.sent}, {"received", bits.received}}; }

Json row_json(const RowResult& row, const PartResult& part) {
  Json object{{"row", row.name},
              {"lr", row.rate},
              {"runs", row.runs},
              {"planned", row.planned},
              {"diverged", row.diverged},
              {"failed", row.failed},
              {"loss", spread_json(row.loss)},
              {"gap", spread_json(row.gap)},
              {"share", part.counts() ? spread_json(row.share) : Json(nullptr)},
              {"accuracy", spread_json(row.accuracy)},
              {"bits", bits_json(row.steady)},
              {"bits_of_whole_run", bits_json(row.whole)},
              {"losses_by_lr", Json::array()}};
  for (const auto& [rate, loss] : row.rates)
    object["losses_by_lr"].push_back({{"lr", rate}, {"loss", spread_json(loss)}});
  return object;
}

constexpr const char* kExplanation =
    "Losses are on the held-out part: mean over the seeds, and min..max. *Gap*: above the loss of "
    "synchronous training. *Share*: of the benefit of exchange, (loss without any exchange - loss) "
    "/ (loss without any exchange - loss of synchronous), by seed. *Sent* and *received*: bits per "
    "parameter and step of a node, the mean over the nodes; without the last round, which is plain "
    "by design, and by the steps that the other rounds cover. *Whole run*: with it, over all "
    "steps; "
    "sent. *Times less*: than a ring all-reduce of fp32 on every step, which sends and receives "
    "64 (M - 1) / M bits.\n";

}  // namespace

std::vector<PartResult> part_results(const Suite& suite, const std::vector<PlannedRun>& runs,
                                     const std::vector<Measured>& measured) {
  std::vector<std::map<int, Pairs>> rows(suite.parts.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].row >= 0) rows[runs[i].part][runs[i].row].push_back({&runs[i], &measured[i]});
  }
  std::vector<PartResult> results;
  for (size_t p = 0; p < suite.parts.size(); ++p) {
    PartResult result = part_result(suite.parts[p], rows[p]);
    if (!result.rows.empty()) results.push_back(std::move(result));
  }
  return results;
}

Table part_table(const PartResult& part) {
  Table table;
  table.header = {"row",      "lr",       "loss", "min..max", "gap",       "share",
                  "min..max", "accuracy", "sent", "received", "whole run", "times less sent",
                  "received"};
  for (const RowResult& row : part.rows) {
    const Spread share = part.counts() ? row.share : Spread{kNone, kNone, kNone};
    table.rows.push_back(
        {{row.name + state_text(row), rate_text(row.rate), four(row.loss.mean),
          range(row.loss, four), hundredths(row.gap.mean), tenths(share.mean), range(share, tenths),
          hundredths(row.accuracy.mean), bits_text(row.steady.sent), bits_text(row.steady.received),
          bits_text(row.whole.sent), times_less(part.nodes, row.steady.sent),
          times_less(part.nodes, row.steady.received)},
         false});
  }
  return table;
}

std::string part_notes(const PartResult& part) {
  std::string text;
  if (std::isnan(part.cost_of_none.mean)) {
    text = "Without both references there are no shares.\n";
  } else {
    text = "Never exchanging costs " + hundredths(part.cost_of_none.mean) + " of the loss (" +
           range(part.cost_of_none, hundredths) + ")";
    text += part.counts() ? ".\n"
                          : ": less than " + percent(kWorthComparing, 0) +
                                ", so shares would be noise and are left out.\n";
  }
  for (const RowResult& row : part.rows) {
    if (row.rates.size() < 2) continue;
    text += "Rates tried for " + row.name + ", with their losses:";
    const char* before = " ";
    for (const auto& [rate, loss] : row.rates) {
      text.append(before).append(rate_text(rate)).append(": ").append(four(loss.mean));
      before = ", ";
    }
    text += ".\n";
  }
  return text;
}

std::string results_markdown(const Suite& suite, const Origin& origin,
                             const std::vector<PartResult>& parts) {
  std::string text = "# Suite " + suite.name + "\n\n";
  text += "Command: `" + origin.command + "`, " + origin.date;
  if (!origin.commit.empty()) text += ", commit " + origin.commit;
  if (!origin.torch.empty()) text += ", torch " + origin.torch;
  text += ".\n\n" + std::string(kExplanation);
  for (const PartResult& part : parts) {
    text += "\n## " + part.task + ", " + part.part + "\n\n" + to_markdown(part_table(part)) + "\n" +
            part_notes(part);
  }
  return text;
}

Json results_json(const Suite& suite, const Origin& origin, const std::vector<PartResult>& parts) {
  Json all{{"suite", suite.name},     {"command", origin.command}, {"date", origin.date},
           {"commit", origin.commit}, {"torch", origin.torch},     {"parts", Json::array()}};
  for (const PartResult& part : parts) {
    Json rows = Json::array();
    for (const RowResult& row : part.rows) rows.push_back(row_json(row, part));
    all["parts"].push_back({{"task", part.task},
                            {"part", part.part},
                            {"seeds", part.seeds},
                            {"nodes", part.nodes},
                            {"bits_of_all_reduce", all_reduce_bits(part.nodes)},
                            {"cost_of_no_exchange", spread_json(part.cost_of_none)},
                            {"shares_count", part.counts()},
                            {"rows", std::move(rows)}});
  }
  return all;
}

}  // namespace hybridsync
