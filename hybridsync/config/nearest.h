// The nearest right word to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hybridsync {

// Insertions, deletions, replacements and swaps of neighbours between two words.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate whose last part ("every" of "tier.every") is nearest to the word's; of equals the
// one with the same first parts. Empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean tier.every?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hybridsync
