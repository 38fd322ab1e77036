// All ranks of a small run, as threads of the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/config/environment.h"
#include "hybridsync/wire/rendezvous.h"

namespace hybridsync {

inline Environment environment_of(const Config& config, int rank, const std::string& address,
                                  const std::string& run_id) {
  Environment e;
  e.rank = rank;
  e.world_size = config.ranks();
  e.local_world_size = config.ranks_per_node();
  e.local_rank = rank % e.local_world_size;
  e.node = rank / e.local_world_size;
  e.rendezvous = address;
  e.run_id = run_id;
  return e;
}

// Runs body(environment) for every rank in a thread of its own; gives what each threw, empty for
// none.
inline std::vector<std::string> run_world(const Config& config,
                                          const std::function<void(const Environment&)>& body) {
  static int runs = 0;
  const std::string run_id = "test-" + std::to_string(getpid()) + "-" + std::to_string(++runs);
  RendezvousHost host(config.ranks(), run_id);
  std::vector<std::string> errors(static_cast<size_t>(config.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < config.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(environment_of(config, rank, host.address(), run_id));
      } catch (const std::exception& e) {
        errors[static_cast<size_t>(rank)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return errors;
}

inline void run_all(const Config& config, const std::function<void(const Environment&)>& body) {
  const auto errors = run_world(config, body);
  for (size_t r = 0; r < errors.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
}

}  // namespace hybridsync
