// A node's side of heartbeats.
#include "hybridsync/decide/pulse.h"

#include <algorithm>

namespace hybridsync {

Pulse::Pulse(const Policy& policy, Micros now)
    : heartbeat_(policy.heartbeat), suspect_after_(policy.suspect_after), due_(now) {}

std::optional<uint64_t> Pulse::tick(Micros now) {
  if (now < due_) return std::nullopt;
  due_ = now + heartbeat_;
  std::erase_if(open_, [&](const Sent& sent) { return now - sent.at > suspect_after_; });
  open_.push_back({++counter_, now});
  return counter_;
}

void Pulse::answered(uint64_t counter, Micros now) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Sent& sent) { return sent.counter == counter; });
  if (at == open_.end()) return;
  const Micros sample = now - at->at;
  round_trip_ = measured_ ? (7 * round_trip_ + sample + 4) / 8 : sample;
  measured_ = true;
  answered_at_ = std::max(answered_at_, at->at);
  open_.erase(at);
}

}  // namespace hybridsync
