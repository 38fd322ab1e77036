// Durations and rates with their units: "50 ms", "100 Mbit/s"; and plain numbers in a row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hybridsync {

struct Unit {
  std::string name;
  // In the base unit; as a fraction, so that "20 us" is the double nearest to 20e-6.
  double times = 1;
  double per = 1;
};

const std::vector<Unit>& duration_units();  // base: seconds
const std::vector<Unit>& rate_units();      // base: bits per second

// "50 ms" in the base unit; nothing when the text is not a number and one of the units.
std::optional<double> parse_quantity(std::string_view text, const std::vector<Unit>& units);

// The quantity as TOML that reads back as the same bits: a quoted text in the largest unit that
// leaves a number of at least 1, or the bare number.
std::string quantity_text(double quantity, const std::vector<Unit>& units);

// "1 1 0.25": finite numbers of more than 0 with blanks between them; nothing for any other text.
std::optional<std::vector<double>> parse_numbers(std::string_view text);

}  // namespace hybridsync
