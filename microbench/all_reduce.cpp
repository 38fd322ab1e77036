// Shared-memory all-reduce in place, against the bandwidth of this machine's memory.
//
//   all_reduce [--ranks 2,4] [--bytes 4096,65536,...] [--repeats 5]    prints a table
//   all_reduce --ranks 2 --serve     answers each line "BYTES" on stdin with "SECONDS
//   LIMIT_SECONDS"
//
// Both are the mean over one batch. The limit: an all-reduce in place of N bytes has to read and to
// write each of the W ranks' N bytes once, in equal shares: N read and N written per rank. So it
// cannot be faster than all W ranks at once, each adding a constant to N bytes of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "hybridsync/wire/group.h"
#include "hybridsync/wire/node_memory.h"

namespace {

using namespace hybridsync;
using Seconds = std::chrono::duration<double>;

constexpr size_t kMostBytes = 64 << 20;
const Patience kPatience{.limit = std::chrono::hours(1)};

struct Batch {
  double seconds = 0;
  double limit_seconds = 0;
};

void must(const Outcome& outcome) {
  if (outcome.ok()) return;
  std::fprintf(stderr, "%s\n", outcome.why.c_str());
  std::exit(1);
}

size_t iterations_for(size_t bytes) {
  return std::clamp<size_t>((256u << 20) / std::max<size_t>(bytes, 1), 4, 2000);
}

[[gnu::noinline, gnu::optimize("O3")]] void add_constant(std::span<float> values) {
  for (float& value : values) value += 1e-6f;
}

class Rank {
 public:
  Rank(const std::string& run_id, int rank, int size)
      : memory_(make_node_memory(run_id, 0, rank, size, kPatience)),
        group_(make_shm_group(*memory_, kPatience)),
        slots_(memory_->allocate_slots(kMostBytes)) {
    auto own = floats(kMostBytes);
    std::fill(own.begin(), own.end(), 1.f);
  }

  // Collective; bytes as rank 0 says, 0 ends.
  size_t agree(size_t bytes) {
    must(group_->broadcast(std::as_writable_bytes(std::span(&bytes, 1)), 0));
    return bytes;
  }

  Batch run(size_t bytes) {
    const auto values = floats(bytes);
    return {mean(bytes, [&] { must(group_->all_reduce(values)); }),
            mean(bytes, [&] { add_constant(values); })};
  }

 private:
  std::span<float> floats(size_t bytes) const {
    return {reinterpret_cast<float*>(slots_.slot(memory_->rank()).data()), bytes / sizeof(float)};
  }

  // Until the slowest rank is done.
  template <typename Work>
  double mean(size_t bytes, const Work& work) {
    work();
    must(group_->barrier());
    const auto start = Clock::now();
    const size_t iterations = iterations_for(bytes);
    for (size_t i = 0; i < iterations; ++i) work();
    must(group_->barrier());
    return Seconds(Clock::now() - start).count() / static_cast<double>(iterations);
  }

  std::unique_ptr<NodeMemory> memory_;
  std::unique_ptr<Group> group_;
  NodeMemory::Slots slots_;
};

// All ranks of one size: rank 0 in this process, the others forked.
class Ranks {
 public:
  explicit Ranks(int size) : run_id_("all-reduce-bench-" + std::to_string(::getpid())) {
    for (int r = 1; r < size; ++r) {
      children_.push_back(::fork());
      if (children_.back() == 0) follow(r, size);
    }
    first_ = std::make_unique<Rank>(run_id_, 0, size);
  }
  ~Ranks() {
    first_->agree(0);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  Batch run(size_t bytes) { return first_->run(first_->agree(bytes)); }

 private:
  [[noreturn]] void follow(int rank, int size) {
    Rank self(run_id_, rank, size);
    while (const size_t bytes = self.agree(0)) self.run(bytes);
    ::_exit(0);
  }

  std::string run_id_;
  std::vector<pid_t> children_;
  std::unique_ptr<Rank> first_;
};

std::vector<size_t> numbers(const std::string& text) {
  std::vector<size_t> list;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) list.push_back(std::stoull(item));
  return list;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void serve(int size) {
  Ranks ranks(size);
  for (size_t bytes; std::cin >> bytes;) {
    const Batch batch = ranks.run(std::min(bytes, kMostBytes));
    std::printf("%.9g %.9g\n", batch.seconds, batch.limit_seconds);
    std::fflush(stdout);
  }
}

void print_table(int size, const std::vector<size_t>& lengths, size_t repeats) {
  Ranks ranks(size);
  for (const size_t bytes : lengths) {
    std::vector<double> rates, fractions, micros;
    for (size_t i = 0; i < repeats; ++i) {
      const Batch batch = ranks.run(std::min(bytes, kMostBytes));
      micros.push_back(batch.seconds * 1e6);
      rates.push_back(static_cast<double>(bytes) / batch.seconds / 1e9);
      fractions.push_back(batch.limit_seconds / batch.seconds);
    }
    std::printf("%5d %10zu %10.1f %10.2f %12.0f %%\n", size, bytes, median(micros), median(rates),
                100 * median(fractions));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<size_t> sizes{2, 4};
  std::vector<size_t> lengths{4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  size_t repeats = 5;
  bool serving = false;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    const bool has_value = i + 1 < argc;
    if (key == "--serve") {
      serving = true;
    } else if (key == "--ranks" && has_value) {
      sizes = numbers(argv[++i]);
    } else if (key == "--bytes" && has_value) {
      lengths = numbers(argv[++i]);
    } else if (key == "--repeats" && has_value) {
      repeats = std::max<size_t>(1, std::stoull(argv[++i]));
    } else {
      std::fprintf(stderr,
                   "usage: all_reduce [--ranks 2,4] [--bytes N,N] [--repeats N] [--serve]\n");
      return 2;
    }
  }
  if (serving) return serve(static_cast<int>(sizes.front())), 0;
  std::printf("ranks      bytes         us       GB/s  of the limit\n");
  for (const size_t size : sizes) print_table(static_cast<int>(size), lengths, repeats);
}
