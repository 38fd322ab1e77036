#include "hybridsync/observe/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "hybridsync/observe/units.h"

namespace hybridsync {

namespace {

using Runs = std::vector<const RunSummary*>;

// A value of each run, or a ratio of the row to the first.
struct Column {
  std::string title;
  std::function<double(const RunSummary&)> value;
  std::string (*text)(double);
  double Comparison::*ratio = nullptr;
};

double seconds_of(const RunSummary& s) { return s.seconds; }
double slow_bytes_of(const RunSummary& s) { return static_cast<double>(s.bytes_sent_slow); }
std::string whole(double value) { return fixed(value, 0); }
std::string two(double value) { return fixed(value, 2); }
std::string four(double value) { return fixed(value, 4); }
std::string accuracy(double value) { return percent(value, 2); }
std::string share(double value) { return percent(value, 1); }
std::string up_to_tenths(double value) { return fixed(value, value == std::floor(value) ? 0 : 1); }

double mean_age(const RunSummary& s) {
  double sum = 0, count = 0;
  for (size_t age = 0; age < s.ages.size(); ++age) {
    count += static_cast<double>(s.ages[age]);
    sum += static_cast<double>(age) * static_cast<double>(s.ages[age]);
  }
  return count > 0 ? sum / count : 0;
}

double oldest(const RunSummary& s) { return std::max(0.0, static_cast<double>(s.ages.size()) - 1); }

std::vector<Column> columns(bool ratios, bool lags) {
  std::vector<Column> all{
      {"samples", [](const RunSummary& s) { return double(s.samples); }, whole},
      {"loss", [](const RunSummary& s) { return s.final_loss; }, four},
      {"accuracy", [](const RunSummary& s) { return s.final_accuracy; }, accuracy},
      {"time", seconds_of, human_seconds},
      {"speed-up", {}, ratio, &Comparison::speed_up},
      {"slow link", slow_bytes_of, human_bytes},
      {"traffic", {}, ratio, &Comparison::traffic},
      {"in nodes", [](const RunSummary& s) { return double(s.bytes_sent_fast); }, human_bytes},
      {"utilisation", [](const RunSummary& s) { return s.utilisation; }, share},
      {"K", [](const RunSummary& s) { return double(s.k_final); }, up_to_tenths},
      {"rounds", [](const RunSummary& s) { return double(s.rounds); }, up_to_tenths},
  };
  if (!ratios) std::erase_if(all, [](const Column& c) { return c.ratio != nullptr; });
  if (!lags) return all;
  all.push_back({"age", mean_age, two});
  all.push_back({"oldest", oldest, up_to_tenths});
  all.push_back(
      {"lost", [](const RunSummary& s) { return double(s.dropped + s.lost); }, up_to_tenths});
  return all;
}

double mean(const Runs& runs, const std::function<double(const RunSummary&)>& value) {
  double sum = 0;
  for (const RunSummary* run : runs) sum += value(*run);
  return sum / static_cast<double>(runs.size());
}

std::vector<Runs> by_name(const std::vector<RunSummary>& summaries) {
  std::vector<Runs> groups;
  for (const RunSummary& s : summaries) {
    const auto same = [&](const Runs& g) { return g[0]->name == s.name; };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({&s});
    } else {
      found->push_back(&s);
    }
  }
  return groups;
}

double per_sample(const Runs& runs, double (*value)(const RunSummary&)) {
  const double samples = mean(runs, [](const RunSummary& s) { return double(s.samples); });
  return samples > 0 ? mean(runs, value) / samples : std::numeric_limits<double>::quiet_NaN();
}

Table::Row mean_row(const Runs& runs, const Comparison& ratios,
                    const std::vector<Column>& columns) {
  const std::string seeds = runs.size() > 1 ? " (" + std::to_string(runs.size()) + " seeds)" : "";
  Table::Row row{{runs[0]->name + seeds}, false};
  for (const Column& c : columns) {
    row.cells.push_back(c.text(c.ratio ? ratios.*c.ratio : mean(runs, c.value)));
  }
  return row;
}

std::string spread(const Runs& runs, const Column& column) {
  if (column.ratio) return "";
  double low = column.value(*runs[0]), high = low;
  for (const RunSummary* run : runs) {
    low = std::fmin(low, column.value(*run));
    high = std::fmax(high, column.value(*run));
  }
  return low < high ? column.text(low) + ".." + column.text(high) : "";
}

Table::Row spread_row(const Runs& runs, const std::vector<Column>& columns) {
  Table::Row row{{"min..max"}, true};
  for (const Column& c : columns) row.cells.push_back(spread(runs, c));
  return row;
}

// Columns that a terminal shows: continuation bytes of UTF-8 take none.
size_t width_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - width_of(cells[i]), ' ');
    text += (i > 0 ? "  " : "") + (i > 0 ? pad + cells[i] : cells[i] + pad);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

}  // namespace

Json to_json(const RunSummary& s) {
  return {{"name", s.name},
          {"seed", s.seed},
          {"steps", s.steps},
          {"samples", s.samples},
          {"final_loss", s.final_loss},
          {"final_accuracy", s.final_accuracy},
          {"seconds", s.seconds},
          {"bytes_sent_slow", s.bytes_sent_slow},
          {"bytes_sent_fast", s.bytes_sent_fast},
          {"utilisation", s.utilisation},
          {"k_final", s.k_final},
          {"rounds", s.rounds},
          {"contributed", s.contributed},
          {"applied", s.applied},
          {"returned", s.returned},
          {"dropped", s.dropped},
          {"lost", s.lost},
          {"skipped", s.skipped},
          {"mismatches", s.mismatches},
          {"ages", s.ages},
          {"folder", s.folder}};
}

RunSummary summary_from_json(const Json& object) {
  RunSummary s;
  object.at("name").get_to(s.name);
  object.at("seed").get_to(s.seed);
  object.at("steps").get_to(s.steps);
  object.at("samples").get_to(s.samples);
  s.final_loss = number_at(object, "final_loss");
  s.final_accuracy = number_at(object, "final_accuracy");
  s.seconds = number_at(object, "seconds");
  object.at("bytes_sent_slow").get_to(s.bytes_sent_slow);
  object.at("bytes_sent_fast").get_to(s.bytes_sent_fast);
  s.utilisation = number_at(object, "utilisation");
  object.at("k_final").get_to(s.k_final);
  object.at("rounds").get_to(s.rounds);
  s.contributed = object.value("contributed", int64_t{0});
  s.applied = object.value("applied", int64_t{0});
  s.returned = object.value("returned", int64_t{0});
  s.dropped = object.value("dropped", int64_t{0});
  s.lost = object.value("lost", int64_t{0});
  s.skipped = object.value("skipped", int64_t{0});
  s.mismatches = object.value("mismatches", int64_t{0});
  s.ages = object.value("ages", std::vector<int64_t>{});
  s.folder = object.value("folder", "");
  return s;
}

std::vector<Comparison> compare(const std::vector<RunSummary>& summaries) {
  std::vector<Comparison> comparisons;
  const std::vector<Runs> groups = by_name(summaries);
  for (const Runs& runs : groups) {
    const Runs& first = groups[0];
    const auto accuracy = [](const RunSummary& s) { return s.final_accuracy; };
    const auto samples = [](const RunSummary& s) { return double(s.samples); };
    comparisons.push_back({runs[0]->name,
                           per_sample(first, seconds_of) / per_sample(runs, seconds_of),
                           per_sample(runs, slow_bytes_of) / per_sample(first, slow_bytes_of),
                           mean(runs, accuracy), mean(runs, accuracy) - mean(first, accuracy),
                           mean(runs, [](const RunSummary& s) { return s.utilisation; }),
                           std::abs(mean(runs, samples) / mean(first, samples) - 1) <= 0.01});
  }
  return comparisons;
}

Table summary_table(const std::vector<RunSummary>& summaries) {
  const std::vector<Runs> groups = by_name(summaries);
  const std::vector<Comparison> ratios = compare(summaries);
  const bool lags = std::any_of(summaries.begin(), summaries.end(),
                                [](const RunSummary& s) { return s.lagged(); });
  const std::vector<Column> all = columns(groups.size() > 1, lags);
  Table table;
  table.header = {"run"};
  for (const Column& c : all) table.header.push_back(c.title);
  for (size_t i = 0; i < groups.size(); ++i) {
    table.rows.push_back(mean_row(groups[i], ratios[i], all));
    if (groups[i].size() > 1) table.rows.push_back(spread_row(groups[i], all));
  }
  return table;
}

std::string to_text(const Table& table) {
  std::vector<size_t> widths;
  for (const std::string& cell : table.header) widths.push_back(width_of(cell));
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row.cells[i]));
    }
  }
  std::string text = line(table.header, widths);
  for (const Table::Row& row : table.rows) text += line(row.cells, widths);
  return text;
}

std::string to_markdown(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  };
  std::string text = line(table.header) + "|---|";
  for (size_t i = 1; i < table.header.size(); ++i) text += "---:|";
  text += "\n";
  for (const Table::Row& row : table.rows) text += line(row.cells);
  return text;
}

}  // namespace hybridsync
