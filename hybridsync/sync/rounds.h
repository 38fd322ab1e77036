// The comm thread of one lane: polls the exchange, drives the Lane, sleeps until either has
// something to do. The training thread talks to it through the desk.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "hybridsync/sync/lane.h"
#include "hybridsync/wire/exchange.h"

namespace hybridsync {

class Rounds {
 public:
  // The members are those that the table names, from start to end.
  Rounds(Lane::Options options, std::unique_ptr<Exchange> exchange);
  ~Rounds();

  Desk& desk() { return desk_; }
  const std::vector<int>& fragments() const { return fragments_; }  // of this lane
  Exchange::Counters counters() const { return exchange_->counters(); }

 private:
  void run();
  Micros now() const;

  const Clock::time_point start_ = Clock::now();
  const std::vector<int> fragments_;
  std::unique_ptr<Exchange> exchange_;
  Desk desk_;
  Lane lane_;  // comm thread only
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hybridsync
