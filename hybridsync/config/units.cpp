#include "hybridsync/config/units.h"

#include <charconv>
#include <cmath>

#include "hybridsync/config/value.h"

namespace hybridsync {
namespace {

std::string short_number(double number) {
  std::string text = number_text(number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

const std::vector<Unit>& duration_units() {
  static const std::vector<Unit> units = {
      {"h", 3600}, {"min", 60}, {"s"}, {"ms", 1, 1e3}, {"us", 1, 1e6}};
  return units;
}

const std::vector<Unit>& rate_units() {
  static const std::vector<Unit> units = {
      {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s"}};
  return units;
}

std::optional<double> parse_quantity(std::string_view text, const std::vector<Unit>& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view name = text.substr(end - text.data());
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const auto& unit : units) {
    if (unit.name == name) return number * unit.times / unit.per;
  }
  return std::nullopt;
}

std::string quantity_text(double quantity, const std::vector<Unit>& units) {
  for (const auto& unit : units) {
    const double number = quantity / unit.times * unit.per;
    if (!(number >= 1)) continue;
    const std::string text = short_number(number) + " " + unit.name;
    if (parse_quantity(text, units) == quantity) return quoted(text);
  }
  return number_text(quantity);
}

std::optional<std::vector<double>> parse_numbers(std::string_view text) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const stop = at + text.size();
  const auto skip_blanks = [&] {
    while (at != stop && *at == ' ') ++at;
  };
  for (skip_blanks(); at != stop; skip_blanks()) {
    double number = 0;
    const auto [end, error] = std::from_chars(at, stop, number);
    const bool ends = end == stop || *end == ' ';
    if (error != std::errc() || !ends || !std::isfinite(number) || number <= 0) return std::nullopt;
    numbers.push_back(number);
    at = end;
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

}  // namespace hybridsync
