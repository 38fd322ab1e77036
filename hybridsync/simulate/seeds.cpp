#include "hybridsync/simulate/seeds.h"

#include <algorithm>
#include <atomic>
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
};

void take(const SimulatedRun& run, Common& common) {
  common.result.tally += run.tally;
  common.result.course += Digest().add(run.seed, run.course).value();
  if (run.breach) common.failed.push_back(run.seed);
  ++common.done;
}

}  // namespace

SeedsResult run_seeds(const Seeds& seeds, const std::function<Scenario(uint64_t)>& scenario_of,
                      const std::function<void(int64_t)>& progress) {
  const auto start = Clock::now();
  Common common;
  const auto work = [&] {
    while (true) {
      const int64_t index = common.next++;
      if (index >= seeds.count) return;
      const SimulatedRun run =
          simulate(scenario_of(seeds.first + static_cast<uint64_t>(index)), false);
      const std::lock_guard lock(common.mutex);
      take(run, common);
      if (progress) progress(common.done);
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t wanted = seeds.threads > 0 ? seeds.threads : static_cast<int64_t>(cores);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < std::min(wanted, seeds.count); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  std::sort(common.failed.begin(), common.failed.end());
  common.result.failures = static_cast<int64_t>(common.failed.size());
  common.failed.resize(std::min(common.failed.size(), seeds.most_failures));
  for (uint64_t seed : common.failed)
    common.result.failed.push_back(simulate(scenario_of(seed), true));
  common.result.seconds = seconds_since(start);
  return std::move(common.result);
}

}  // namespace hybridsync
