// Quantities as people read them: "12.3 MB", "2 min 05 s", "87.31 %". Not-a-number becomes "-".
#pragma once

#include <cstdint>
#include <string>

namespace hybridsync {

// printf-style with a fixed number of digits after the point.
std::string fixed(double value, int digits);
// About three significant digits and a decimal prefix: "0 B", "512 B", "1.50 kB", "12.3 MB", "4.00
// GB".
std::string human_bytes(double bytes);
// "850 ms", "12.3 s", "2 min 05 s", "1 h 03 min".
std::string human_seconds(double seconds);
// "950", "12.3k", "4.50M".
std::string human_count(double count);
// A fraction as "87.31 %".
std::string percent(double fraction, int digits);
// A ratio as "2.31x"; small ones keep two significant digits: "0.042x".
std::string ratio(double value);

}  // namespace hybridsync
