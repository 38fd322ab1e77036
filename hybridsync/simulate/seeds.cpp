#include "hybridsync/simulate/seeds.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "hybridsync/decide/digest.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {
namespace {

// What the threads share. Sums do not depend on the order in which runs end.
struct Common {
  std::atomic<int64_t> next{0};
  std::mutex mutex;  // guards what follows
  SeedsResult result;
  std::vector<uint64_t> failed;
  int64_t done = 0;
  int64_t threw_at = 0;  // where there is one:
  std::exception_ptr thrown;
};

void take(const SimulatedRun& run, Common& common) {
  common.result.tally += run.tally;
  common.result.course += Digest().add(run.seed, run.course).value();
  if (run.breach) common.failed.push_back(run.seed);
  ++common.done;
}

// Whoever has a smaller index has it already: the exception that stays is always the same.
void give_up(int64_t index, int64_t count, Common& common) {
  const std::lock_guard lock(common.mutex);
  if (!common.thrown || index < common.threw_at) {
    common.thrown = std::current_exception();
    common.threw_at = index;
  }
  common.next = count;
}

}  // namespace

SeedsResult run_seeds(const Seeds& seeds, const std::function<Scenario(uint64_t)>& scenario_of,
                      const std::function<void(int64_t)>& progress) {
  const auto start = Clock::now();
  Common common;
  const auto one = [&](int64_t index) {
    SimulatedRun run = simulate(scenario_of(seeds.first + static_cast<uint64_t>(index)), false);
    const std::lock_guard lock(common.mutex);
    take(run, common);
    if (seeds.count == 1) common.result.only = std::move(run);
    if (progress) progress(common.done);
  };
  const auto work = [&] {
    while (true) {
      const int64_t index = common.next++;
      if (index >= seeds.count) return;
      try {
        one(index);
      } catch (...) {
        give_up(index, seeds.count, common);
      }
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t wanted = seeds.threads > 0 ? seeds.threads : static_cast<int64_t>(cores);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < std::min(wanted, seeds.count); ++i) threads.emplace_back(work);
  }
  if (common.thrown) std::rethrow_exception(common.thrown);
  std::sort(common.failed.begin(), common.failed.end());
  common.result.failures = static_cast<int64_t>(common.failed.size());
  common.failed.resize(std::min(common.failed.size(), seeds.most_failures));
  for (uint64_t seed : common.failed)
    common.result.failed.push_back(simulate(scenario_of(seed), true));
  common.result.seconds = seconds_since(start);
  return std::move(common.result);
}

}  // namespace hybridsync
