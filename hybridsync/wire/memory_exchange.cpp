// The Exchange inside one process.
#include "hybridsync/wire/memory_exchange.h"

#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "hybridsync/wire/traffic.h"

namespace hybridsync {

struct MemoryHub::State {
  explicit State(int nodes) : ends(static_cast<size_t>(nodes)) {}

  struct End {
    std::condition_variable changed;
    std::deque<ExchangeEvent> events;
    bool joined = false;
    bool gone = false;  // left or lost
    bool woken = false;
  };
  End& end(int node) { return ends.at(static_cast<size_t>(node)); }

  std::mutex mutex;
  std::vector<End> ends;
};

class MemoryExchange final : public Exchange {
 public:
  MemoryExchange(std::shared_ptr<MemoryHub::State> state, int node)
      : state_(std::move(state)), node_(node) {}

  ~MemoryExchange() override {
    const std::lock_guard lock(state_->mutex);
    state_->end(node_).gone = true;
  }

  int node() const override { return node_; }
  int nodes() const override { return static_cast<int>(state_->ends.size()); }

  void send(int to, Channel, Bytes header, SharedBytes body) override {
    assert(to != node_ && to >= 0 && to < nodes());
    traffic_.sent(header.size(), body);
    Received message{node_, std::move(header), body ? *body : Bytes{}};
    const std::lock_guard lock(state_->mutex);
    MemoryHub::State::End& peer = state_->end(to);
    if (peer.gone || state_->end(node_).gone) return;
    peer.events.emplace_back(std::move(message));
    peer.changed.notify_one();
  }

  std::optional<ExchangeEvent> poll(Clock::time_point until) override {
    std::unique_lock lock(state_->mutex);
    MemoryHub::State::End& mine = state_->end(node_);
    mine.changed.wait_until(lock, until, [&] { return mine.woken || !mine.events.empty(); });
    if (mine.events.empty()) {
      mine.woken = false;
      return std::nullopt;
    }
    ExchangeEvent event = std::move(mine.events.front());
    mine.events.pop_front();
    if (const auto* message = std::get_if<Received>(&event)) traffic_.received(*message);
    return event;
  }

  void wake() override {
    const std::lock_guard lock(state_->mutex);
    state_->end(node_).woken = true;
    state_->end(node_).changed.notify_one();
  }

  Counters counters() const override { return traffic_.counters(); }

 private:
  const std::shared_ptr<MemoryHub::State> state_;
  const int node_;
  Traffic traffic_;
};

MemoryHub::MemoryHub(int nodes) : state_(std::make_shared<State>(nodes)) {}
MemoryHub::~MemoryHub() = default;

std::unique_ptr<Exchange> MemoryHub::join(int node) {
  const std::lock_guard lock(state_->mutex);
  assert(!state_->end(node).joined);
  state_->end(node).joined = true;
  return std::make_unique<MemoryExchange>(state_, node);
}

void MemoryHub::lose(int node, const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->end(node).gone, true)) return;
  for (size_t other = 0; other < state_->ends.size(); ++other) {
    State::End& end = state_->ends[other];
    if (static_cast<int>(other) == node || end.gone) continue;
    end.events.emplace_back(PeerLost{node, why});
    end.changed.notify_one();
  }
}

}  // namespace hybridsync
