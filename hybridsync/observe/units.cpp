#include "hybridsync/observe/units.h"

#include <cmath>
#include <cstdio>

namespace hybridsync {

namespace {

// Three significant digits for 1 <= value < 1000.
std::string three_digits(double value) {
  return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

struct Scaled {
  double value;
  int prefix;  // powers of 1000
};

Scaled scale(double value, int largest) {
  int prefix = 0;
  for (; std::abs(value) >= 999.5 && prefix < largest; ++prefix) value /= 1000;
  return {value, prefix};
}

std::string two_parts(int64_t whole, const char* big, int64_t rest, const char* small) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld %s %02lld %s", static_cast<long long>(whole), big,
                static_cast<long long>(rest), small);
  return text;
}

}  // namespace

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string human_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "-";
  static constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB", " PB"};
  const Scaled s = scale(bytes, 5);
  return (s.prefix == 0 ? fixed(s.value, 0) : three_digits(s.value)) + kUnits[s.prefix];
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  if (seconds < 0.001) return fixed(seconds * 1e6, 0) + " us";
  if (seconds < 0.01) return fixed(seconds * 1e3, 2) + " ms";
  if (seconds < 0.9995) return fixed(seconds * 1e3, seconds < 0.1 ? 1 : 0) + " ms";
  if (seconds < 59.95) return fixed(seconds, seconds < 9.995 ? 2 : 1) + " s";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return two_parts(whole / 60, "min", whole % 60, "s");
  const int64_t minutes = std::llround(seconds / 60);
  return two_parts(minutes / 60, "h", minutes % 60, "min");
}

std::string human_count(double count) {
  if (!std::isfinite(count)) return "-";
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  const Scaled s = scale(count, 4);
  return (s.prefix == 0 ? fixed(s.value, 0) : three_digits(s.value)) + kUnits[s.prefix];
}

std::string percent(double fraction, int digits) {
  return std::isfinite(fraction) ? fixed(fraction * 100, digits) + " %" : "-";
}

std::string ratio(double value) {
  if (!std::isfinite(value)) return "-";
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 || value == 0 ? 2 : 3;
  return fixed(value, digits) + "x";
}

}  // namespace hybridsync
