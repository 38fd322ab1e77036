// What coding costs, against the plainest pass over the same memory, in turns within one run.
//
//   codecs [--only NAME] [--millions N] [--turns 9]
//
// Without --millions: 1 M numbers, which fit the cache, then 16 M and 256 M. Each with one thread
// and with two, each of which has its own half and its own codec. Columns in microbench/README.md.
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/math/codec/codec.h"

namespace {

using namespace hybridsync;

constexpr size_t kMillion = 1'000'000;

struct Contestant {
  std::string name;
  std::function<std::unique_ptr<Codec>()> make;
};

Contestant codec(std::string name, CodecOptions options) {
  return {std::move(name), [options] { return make_codec(options); }};
}

Contestant plain(std::string name, CodecKind kind, int levels = 5) {
  CodecOptions options;
  options.kind = kind;
  options.levels = levels;
  return codec(std::move(name), options);
}

Contestant top_k(std::string name, Selection selection, double density, int value_bits) {
  CodecOptions options;
  options.kind = CodecKind::top_k;
  options.selection = selection;
  options.density = density;
  options.value_bits = value_bits;
  return codec(std::move(name), options);
}

std::vector<Contestant> contestants() {
  return {plain("fp32", CodecKind::fp32),
          plain("bf16", CodecKind::bf16),
          plain("fp16", CodecKind::fp16),
          plain("int8", CodecKind::int8),
          plain("int4", CodecKind::int4),
          plain("int2", CodecKind::int2),
          plain("sign", CodecKind::sign),
          plain("levels7", CodecKind::levels, 7),
          plain("levels5", CodecKind::levels, 5),
          plain("levels3", CodecKind::levels, 3),
          top_k("top_k 2 %", Selection::chunks, 0.02, 8),
          top_k("top_k 1 %", Selection::chunks, 0.01, 8),
          top_k("threshold 2 %", Selection::threshold, 0.02, 8),
          top_k("threshold 1 %", Selection::threshold, 0.01, 8),
          top_k("sign of 1 %", Selection::chunks, 0.01, 1)};
}

// `count` of them, which start at a line of the cache, as tensors do.
template <class T>
class Aligned {
 public:
  explicit Aligned(size_t count)
      : memory_(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64))),
        span_(memory_.get(), count) {
    std::memset(span_.data(), 0, span_.size_bytes());
  }
  std::span<T> span() const { return span_; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> memory_;
  std::span<T> span_;
};

// What one thread works on: all of it touched before anything is timed.
struct Half {
  Aligned<float> values_memory, residual_memory, decoded_memory;
  Aligned<std::byte> code_memory;
  std::span<float> values, residual, decoded;
  std::span<std::byte> code;
  size_t code_bytes = 0;

  explicit Half(size_t count)
      : values_memory(count),
        residual_memory(count),
        decoded_memory(count),
        code_memory(6 * count + 4096),
        values(values_memory.span()),
        residual(residual_memory.span()),
        decoded(decoded_memory.span()),
        code(code_memory.span()) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal(0, 1e-3F);
    std::vector<float> pool(std::min<size_t>(count, 1'000'003));
    for (float& x : pool) x = normal(rng);
    for (size_t i = 0; i < count; ++i) values[i] = pool[i % pool.size()];
  }
};

// The bounds: the fewest bytes that must move, with nothing to compute. They are plain loops, kept
// apart so that they are not merged or left out.
[[gnu::noinline]] void add_pass(Half& h) {
  const float* v = h.values.data();
  float* e = h.residual.data();
  const size_t n = h.values.size();
  for (size_t i = 0; i < n; ++i) e[i] = v[i] - e[i];
}

[[gnu::noinline]] void fill_pass(Half& h) { std::fill(h.decoded.begin(), h.decoded.end(), 1.5F); }

void encode_pass(Codec& codec, Half& h) {
  const auto length = codec.encode(h.values, 1, h.residual, h.code);
  if (!length) std::fprintf(stderr, "not finite\n"), std::exit(1);
  h.code_bytes = *length;
}

void decode_pass(Codec& codec, Half& h) {
  if (!codec.decode(h.code.first(h.code_bytes), h.decoded))
    std::fprintf(stderr, "not decoded\n"), std::exit(1);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// CPU seconds that the slowest thread takes for a pass while all are at it, over as many passes as
// make up 16 M numbers. Other programs on the same cores do not count.
double seconds(std::vector<Half>& halves, const std::function<void(size_t, Half&)>& pass) {
  const size_t count = halves.size() * halves[0].values.size();
  const size_t passes = std::max<size_t>(1, 16 * kMillion / count);
  std::barrier start(static_cast<std::ptrdiff_t>(halves.size()));
  std::vector<double> took(halves.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < halves.size(); ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      const double begun = cpu_seconds();
      for (size_t i = 0; i < passes; ++i) pass(t, halves[t]);
      took[t] = (cpu_seconds() - begun) / static_cast<double>(passes);
    });
  for (auto& thread : threads) thread.join();
  return *std::max_element(took.begin(), took.end());
}

// Seconds of each turn, and those of the bound just before.
struct Times {
  std::vector<double> codec, bound;
};

struct Row {
  Times encode, decode;
  double bits = 0;
};

void turn(const Contestant& one, std::vector<Half>& halves, Row& row) {
  std::vector<std::unique_ptr<Codec>> codecs;
  for (Half& h : halves) {
    codecs.push_back(one.make());
    std::fill(h.residual.begin(), h.residual.end(), 0.0F);
  }
  row.encode.bound.push_back(seconds(halves, [](size_t, Half& h) { add_pass(h); }));
  row.encode.codec.push_back(
      seconds(halves, [&](size_t t, Half& h) { encode_pass(*codecs[t], h); }));
  row.decode.bound.push_back(seconds(halves, [](size_t, Half& h) { fill_pass(h); }));
  row.decode.codec.push_back(
      seconds(halves, [&](size_t t, Half& h) { decode_pass(*codecs[t], h); }));
  row.bits = 8.0 * static_cast<double>(halves[0].code_bytes) /
             static_cast<double>(halves[0].values.size());
}

double at(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all[static_cast<size_t>(part * static_cast<double>(all.size() - 1) + 0.5)];
}

void print(const Times& times, double gigabytes) {
  std::vector<double> of_bound;
  for (size_t i = 0; i < times.codec.size(); ++i)
    of_bound.push_back(100 * times.bound[i] / times.codec[i]);
  std::printf("  %7.2f %6.0f%% %4.0f..%3.0f%% %6.0f%%", gigabytes / at(times.codec, 0.5),
              at(of_bound, 0.5), at(of_bound, 0.25), at(of_bound, 0.75),
              100 * at(times.bound, 0) / at(times.codec, 0));
}

void measure(const std::vector<Contestant>& all, size_t count, size_t threads, int turns) {
  std::vector<Half> halves;
  for (size_t t = 0; t < threads; ++t) halves.emplace_back(count / threads);
  std::map<std::string, Row> rows;
  for (int i = 0; i < turns; ++i)
    for (const Contestant& one : all) turn(one, halves, rows[one.name]);
  const double gigabytes = 4e-9 * static_cast<double>(count);
  Times add, fill;
  for (const Contestant& one : all) {
    const Row& row = rows[one.name];
    std::printf("%-14s %7.3f", one.name.c_str(), row.bits);
    print(row.encode, gigabytes), print(row.decode, gigabytes);
    std::printf("\n");
    for (double s : row.encode.bound) add.bound.push_back(s), add.codec.push_back(s);
    for (double s : row.decode.bound) fill.bound.push_back(s), fill.codec.push_back(s);
  }
  std::printf("%-22s  %7.2f %30.2f\n", "bound", gigabytes / at(add.codec, 0.5),
              gigabytes / at(fill.codec, 0.5));
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> settings{{"--only", ""}, {"--millions", ""}, {"--turns", "9"}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!settings.contains(argv[i])) return std::fprintf(stderr, "unknown: %s\n", argv[i]), 2;
    settings[argv[i]] = argv[i + 1];
  }
  auto all = contestants();
  if (!settings["--only"].empty())
    std::erase_if(all, [&](const Contestant& one) { return one.name != settings["--only"]; });
  if (all.empty()) return std::fprintf(stderr, "no codec has that name\n"), 2;
  std::vector<size_t> millions{1, 16, 256};
  if (!settings["--millions"].empty()) millions = {std::stoul(settings["--millions"])};
  std::printf(
      "GB/s of numbers, 4 bytes each, by CPU time. The bound of encoding is a pass e = v - e, "
      "which\n"
      "reads 8 and writes 4 bytes per number; that of decoding is a fill, which writes 4. `best`:\n"
      "fastest turn of each.\n");
  for (size_t million : millions) {
    for (size_t threads : {1, 2}) {
      std::printf("\n%zu M numbers%s, %zu thread%s\n", million,
                  million == 1 ? ", which fit the cache" : "", threads, threads == 1 ? "" : "s");
      std::printf("%-14s %7s  %7s %7s %10s %7s  %7s %7s %10s %7s\n", "codec", "bits", "encode",
                  "bound", "quartiles", "best", "decode", "bound", "quartiles", "best");
      measure(all, million * kMillion, threads, std::stoi(settings["--turns"]));
    }
  }
}
