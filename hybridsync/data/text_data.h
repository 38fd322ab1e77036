// A text as a row of characters (bytes) numbered by a vocabulary, with a training and a held-out
// part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hybridsync {

struct TextData {
  std::string vocabulary;         // the bytes that occur, in ascending order; a token is an index
  std::vector<uint8_t> train;     // tokens: the first nine tenths of the text
  std::vector<uint8_t> held_out;  // the rest
};

// Windows of `context` tokens that have a successor each: window w starts at token w * context, and
// its targets are the same window one token later. No two windows overlap.
int64_t window_count(const std::vector<uint8_t>& tokens, int64_t context);

TextData to_text_data(std::string_view text);

// Throws ConfigError that names the file and what is wrong with it.
TextData read_text(const std::string& path);

// The King James Bible, printed by the program of Debian's package bible-kjv. Throws ConfigError
// that names the package when it is missing.
TextData read_bible();

}  // namespace hybridsync
