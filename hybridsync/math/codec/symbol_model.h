// How often each symbol is expected, and a short description of that: per symbol a weight with at
// most four significant bits, of which the difference from a prediction is written, and after a
// weight of 0 how many more follow (adaptive Rice codes). Writer and reader derive the same
// frequencies from the weights, in integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hybridsync {

inline constexpr int kFrequencyBits = 14;

// How weights are described.
struct ModelForm {
  int fraction = 3;      // bits behind the leading one, 0 to 3: fewer make a shorter description
  bool product = false;  // symbols are numbers of independent digits, and predicted like that
};

struct SymbolModel {
  ModelForm form;
  int first = 0, last = 0;                // outside these no symbol occurs
  std::array<uint8_t, 256> rank{};        // of the weight among all that can be written; 0: none
  std::array<uint16_t, 256> frequency{};  // 0 where the rank is, else 1 or more; sum 2^14
};

// The model that makes description and symbols shortest. At least two counts are not 0, and none
// beyond the alphabet.
SymbolModel fit_model(std::span<const uint64_t, 256> counts, int alphabet);

// What symbols take by their frequencies, in bits, rounded up.
uint64_t coded_bits(const SymbolModel& model, std::span<const uint64_t, 256> counts);

// The description without its form: its length, and itself.
size_t description_bytes(const SymbolModel& model, int alphabet);
size_t write_model(const SymbolModel& model, int alphabet, std::span<std::byte> out);

// Fills a model whose form is set, and gives the length of its description. nullopt: it is damaged.
[[nodiscard]] std::optional<size_t> read_model(std::span<const std::byte> code, int alphabet,
                                               SymbolModel& model);

}  // namespace hybridsync
