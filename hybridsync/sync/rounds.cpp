#include "hybridsync/sync/rounds.h"

#include <algorithm>
#include <utility>

namespace hybridsync {
namespace {

constexpr Micros kPollInterval = 200'000;

Coordinator fixed_coordinator(const Lane::Options& options, Micros now) {
  CoordinatorConfig config;
  config.fragments = static_cast<int>(options.table.fragments.size());
  config.removes = false;
  config.self = options.self;
  config.policy = options.policy;
  return Coordinator(config, first_view(options.table), false, now);
}

}  // namespace

Rounds::Rounds(Lane::Options options, std::unique_ptr<Exchange> exchange)
    : fragments_(options.table.of_lane(options.lane)),
      exchange_(std::move(exchange)),
      desk_(options.table, fragments_),
      lane_(options, desk_, [this](int to, Channel channel, Bytes header, SharedBytes body) {
        exchange_->send(to, channel, std::move(header), std::move(body));
      }) {
  if (options.heartbeats && options.self.node == options.coordinator)
    lane_.host(fixed_coordinator(options, now()), [](const View&) {});
  lane_.begin(first_view(options.table), now());
  desk_.on_work([this] { exchange_->wake(); });
  thread_ = std::thread([this] { run(); });
}

Rounds::~Rounds() {
  stop_ = true;
  exchange_->wake();
  thread_.join();
  lane_.leave();
}

Micros Rounds::now() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count();
}

void Rounds::run() {
  while (!stop_) {
    lane_.tick(now());
    Micros until = now() + kPollInterval;
    if (const auto due = lane_.next_due()) until = std::min(until, *due);
    auto wake_at = start_ + std::chrono::microseconds(until);
    // Everything that is there, before the next tick.
    while (auto event = exchange_->poll(wake_at)) {
      lane_.on(std::move(*event), now());
      wake_at = {};
    }
  }
}

}  // namespace hybridsync
