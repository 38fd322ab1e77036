#include "hybridsync/math/codec/entropy.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "hybridsync/math/codec/bits.h"
#include "hybridsync/math/codec/symbol_model.h"

namespace hybridsync {
namespace {

// The first byte of a code: bits 0 and 1 the kind; with rans also 2 and 3 the logarithm of the
// number of lanes, 4 and 5 the model's fraction bits, 6 whether its digits are a product.
enum class Kind : unsigned { one, raw, rans };

constexpr uint32_t kLow = 1u << 16;  // states are in [2^16, 2^32), words of 16 bits move in and out
constexpr uint32_t kSlots = 1u << kFrequencyBits;

using Counts = std::array<uint64_t, 256>;

Counts count_symbols(std::span<const uint8_t> symbols) {
  std::array<std::array<uint32_t, 256>, 4> part;
  Counts counts{};
  constexpr size_t kPiece = size_t{1} << 30;
  for (size_t begin = 0; begin < symbols.size(); begin += kPiece) {
    const auto piece = symbols.subspan(begin, std::min(kPiece, symbols.size() - begin));
    for (auto& p : part) p.fill(0);
    size_t i = 0;
    for (; i + 4 <= piece.size(); i += 4)
      for (size_t k = 0; k < 4; ++k) ++part[k][piece[i + k]];
    for (; i < piece.size(); ++i) ++part[0][piece[i]];
    for (const auto& p : part)
      for (size_t s = 0; s < counts.size(); ++s) counts[s] += p[s];
  }
  return counts;
}

int raw_bits(int alphabet) { return width_of(static_cast<uint64_t>(alphabet - 1)); }

size_t raw_bytes(size_t count, int alphabet) {
  const size_t bits = static_cast<size_t>(raw_bits(alphabet));
  return 1 + count / 8 * bits + (count % 8 * bits + 7) / 8;
}

size_t encode_raw(std::span<const uint8_t> symbols, int alphabet, std::span<std::byte> out) {
  out[0] = static_cast<std::byte>(Kind::raw);
  BitWriter writer(out.subspan(1));
  for (const uint8_t s : symbols) writer.put(s, raw_bits(alphabet));
  return 1 + writer.finish();
}

std::optional<size_t> decode_raw(std::span<const std::byte> code, int alphabet,
                                 std::span<uint8_t> out) {
  const size_t length = raw_bytes(out.size(), alphabet);
  if (code.size() < length) return std::nullopt;
  BitReader in(code.subspan(1));
  unsigned largest = 0;
  for (uint8_t& s : out) {
    s = static_cast<uint8_t>(in.take(raw_bits(alphabet)));
    largest = std::max<unsigned>(largest, s);
  }
  if (largest >= static_cast<unsigned>(alphabet)) return std::nullopt;
  return length;
}

struct EncoderEntry {
  uint64_t reciprocal;  // 2^46 / frequency, rounded up: exact for all states below the limit
  uint32_t limit;
  uint16_t start, complement;
};

std::array<EncoderEntry, 256> encoder_table(const SymbolModel& model) {
  std::array<EncoderEntry, 256> table{};
  uint32_t start = 0;
  for (size_t s = 0; s < table.size(); ++s) {
    const uint32_t f = model.frequency[s];
    if (f == 0) continue;
    const uint64_t reciprocal = ((uint64_t{1} << (32 + kFrequencyBits)) + f - 1) / f;
    table[s] = {reciprocal, f << (32 - kFrequencyBits), static_cast<uint16_t>(start),
                static_cast<uint16_t>(kSlots - f)};
    start += f;
  }
  return table;
}

// Moves `at` down by a word if it writes one; below `at` there must be room for it in any case.
inline uint32_t push(uint32_t state, const EncoderEntry& e, std::byte*& at) {
  const uint32_t spill = state >= e.limit;
  store_little(at - 2, static_cast<uint16_t>(state));
  at -= 2 * spill;
  state >>= 16 * spill;
  const uint32_t quotient = static_cast<uint32_t>(state * e.reciprocal >> (32 + kFrequencyBits));
  return state + e.start + quotient * e.complement;
}

// From the last symbol to the first, downwards from the end of `room`. Where it begins; nullptr:
// there is not enough room.
template <size_t Lanes>
std::byte* encode_lanes(std::span<const uint8_t> symbols,
                        const std::array<EncoderEntry, 256>& table, std::span<std::byte> room) {
  constexpr size_t kStates = 4 * Lanes, kWords = 2 * Lanes;
  if (room.size() < kStates + kWords) return nullptr;
  std::byte* const low = room.data() + kStates + kWords;
  std::byte* at = room.data() + room.size();
  std::array<uint32_t, Lanes> state;
  state.fill(kLow);
  size_t i = symbols.size();
  for (; i % Lanes != 0; --i) {
    uint32_t& x = state[(i - 1) % Lanes];
    x = push(x, table[symbols[i - 1]], at);
  }
  for (; i > 0; i -= Lanes) {
    if (at < low) return nullptr;
#pragma GCC unroll 8
    for (size_t j = 1; j <= Lanes; ++j)
      state[Lanes - j] = push(state[Lanes - j], table[symbols[i - j]], at);
  }
  if (at < room.data() + kStates) return nullptr;
  at -= kStates;
  for (size_t k = 0; k < Lanes; ++k) store_little(at + 4 * k, state[k]);
  return at;
}

struct DecoderTable {
  struct Range {
    uint16_t start, frequency;
  };
  std::array<uint8_t, kSlots> symbol;
  std::array<Range, 256> range;
};

void fill_table(const SymbolModel& model, DecoderTable& table) {
  uint32_t start = 0;
  for (size_t s = 0; s < table.range.size(); ++s) {
    const uint32_t f = model.frequency[s];
    table.range[s] = {static_cast<uint16_t>(start), static_cast<uint16_t>(f)};
    std::fill_n(table.symbol.begin() + start, f, static_cast<uint8_t>(s));
    start += f;
  }
}

inline uint8_t pop(uint32_t& state, const DecoderTable& table) {
  const uint32_t slot = state % kSlots;
  const uint8_t symbol = table.symbol[slot];
  const auto range = table.range[symbol];
  state = range.frequency * (state >> kFrequencyBits) + slot - range.start;
  return symbol;
}

// How many bytes it read.
template <size_t Lanes>
std::optional<size_t> decode_lanes(std::span<const std::byte> code, const DecoderTable& table,
                                   std::span<uint8_t> out) {
  if (code.size() < 4 * Lanes) return std::nullopt;
  std::array<uint32_t, Lanes> state;
  for (size_t k = 0; k < Lanes; ++k) state[k] = load_little<uint32_t>(&code[4 * k]);
  if (*std::min_element(state.begin(), state.end()) < kLow) return std::nullopt;
  const std::byte* at = code.data() + 4 * Lanes;
  const std::byte* const end = code.data() + code.size();
  size_t i = 0;
  for (; i + Lanes <= out.size() && end - at >= static_cast<ptrdiff_t>(2 * Lanes); i += Lanes) {
#pragma GCC unroll 8
    for (size_t k = 0; k < Lanes; ++k) {
      out[i + k] = pop(state[k], table);
      const uint32_t fill = state[k] < kLow;
      state[k] = state[k] << 16 * fill | (load_little<uint16_t>(at) & (0 - fill));
      at += 2 * fill;
    }
  }
  for (; i < out.size(); ++i) {
    uint32_t& x = state[i % Lanes];
    out[i] = pop(x, table);
    if (x >= kLow) continue;
    if (end - at < 2) return std::nullopt;
    x = x << 16 | load_little<uint16_t>(at);
    at += 2;
  }
  for (const uint32_t x : state)
    if (x != kLow) return std::nullopt;
  return static_cast<size_t>(at - code.data());
}

// More lanes are faster, and cost four bytes each.
int lanes_log(size_t count) { return count < 1024 ? 0 : count < 4096 ? 1 : count < 16384 ? 2 : 3; }

template <class F>
auto with_lanes(int log, const F& f) {
  switch (log) {
    case 0:
      return f.template operator()<1>();
    case 1:
      return f.template operator()<2>();
    case 2:
      return f.template operator()<4>();
    default:
      return f.template operator()<8>();
  }
}

// 0: it would take `most` bytes or more.
size_t encode_rans(std::span<const uint8_t> symbols, const Counts& counts, int alphabet,
                   size_t most, std::span<std::byte> out) {
  const SymbolModel model = fit_model(counts, alphabet);
  const int log = lanes_log(symbols.size());
  const size_t head = 1 + description_bytes(model, alphabet);
  if (head + (size_t{4} << log) + coded_bits(model, counts) / 8 >= most) return 0;
  out[0] = static_cast<std::byte>(static_cast<unsigned>(Kind::rans) | unsigned(log) << 2 |
                                  unsigned(model.form.fraction) << 4 |
                                  unsigned(model.form.product) << 6);
  write_model(model, alphabet, out.subspan(1));
  const auto table = encoder_table(model);
  const auto room = out.subspan(head, most - head);
  const std::byte* const begin =
      with_lanes(log, [&]<size_t Lanes>() { return encode_lanes<Lanes>(symbols, table, room); });
  if (begin == nullptr) return 0;
  const size_t length = static_cast<size_t>(room.data() + room.size() - begin);
  std::memmove(room.data(), begin, length);
  return head + length;
}

std::optional<size_t> decode_rans(std::span<const std::byte> code, int alphabet,
                                  std::span<uint8_t> out) {
  const unsigned tag = static_cast<unsigned>(code[0]);
  SymbolModel model;
  model.form = {.fraction = static_cast<int>(tag >> 4 & 3), .product = (tag >> 6 & 1) != 0};
  const auto description = read_model(code.subspan(1), alphabet, model);
  if (tag >> 7 != 0 || !description) return std::nullopt;
  DecoderTable table;
  fill_table(model, table);
  const auto words = code.subspan(1 + *description);
  const auto length = with_lanes(static_cast<int>(tag >> 2 & 3), [&]<size_t Lanes>() {
    return decode_lanes<Lanes>(words, table, out);
  });
  if (!length) return std::nullopt;
  return 1 + *description + *length;
}

}  // namespace

size_t symbols_bound(size_t count, int alphabet) {
  return count == 0 ? 0 : std::max<size_t>(2, raw_bytes(count, alphabet));
}

size_t encode_symbols(std::span<const uint8_t> symbols, int alphabet, std::span<std::byte> out) {
  assert(2 <= alphabet && alphabet <= 256 && out.size() >= symbols_bound(symbols.size(), alphabet));
  if (symbols.empty()) return 0;
  const Counts counts = count_symbols(symbols);
  assert(std::all_of(counts.begin() + alphabet, counts.end(), [](uint64_t n) { return n == 0; }));
  if (counts[symbols[0]] == symbols.size()) {
    out[0] = static_cast<std::byte>(Kind::one);
    out[1] = static_cast<std::byte>(symbols[0]);
    return 2;
  }
  const size_t most = raw_bytes(symbols.size(), alphabet);
  const size_t length = encode_rans(symbols, counts, alphabet, most, out);
  return length != 0 ? length : encode_raw(symbols, alphabet, out);
}

std::optional<size_t> decode_symbols(std::span<const std::byte> code, int alphabet,
                                     std::span<uint8_t> out) {
  assert(2 <= alphabet && alphabet <= 256);
  if (out.empty()) return 0;
  if (code.size() < 2) return std::nullopt;
  const unsigned tag = static_cast<unsigned>(code[0]);
  if (tag == static_cast<unsigned>(Kind::one)) {
    if (static_cast<int>(code[1]) >= alphabet) return std::nullopt;
    std::fill(out.begin(), out.end(), static_cast<uint8_t>(code[1]));
    return 2;
  }
  if (tag == static_cast<unsigned>(Kind::raw)) return decode_raw(code, alphabet, out);
  if ((tag & 3) == static_cast<unsigned>(Kind::rans)) return decode_rans(code, alphabet, out);
  return std::nullopt;
}

}  // namespace hybridsync
