// Counts what an Exchange sends and receives; one thread writes, any thread reads.
#pragma once

#include <atomic>

#include "hybridsync/wire/exchange.h"

namespace hybridsync {

class Traffic {
 public:
  void sent(size_t header_bytes, const SharedBytes& body) {
    bytes_sent_ += static_cast<int64_t>(header_bytes + (body ? body->size() : 0));
    ++messages_sent_;
  }
  void received(const Received& message) {
    bytes_received_ += static_cast<int64_t>(message.header.size() + message.body.size());
    ++messages_received_;
  }
  void refused() { ++messages_refused_; }

  Exchange::Counters counters() const {
    return {bytes_sent_, bytes_received_, messages_sent_, messages_received_, messages_refused_};
  }

 private:
  std::atomic<int64_t> bytes_sent_ = 0;
  std::atomic<int64_t> bytes_received_ = 0;
  std::atomic<int64_t> messages_sent_ = 0;
  std::atomic<int64_t> messages_received_ = 0;
  std::atomic<int64_t> messages_refused_ = 0;
};

}  // namespace hybridsync
