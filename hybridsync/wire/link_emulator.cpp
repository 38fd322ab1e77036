// A slow link between nodes, without one.
#include "hybridsync/wire/link_emulator.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <utility>

namespace hybridsync {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr size_t kUplink = 0;
constexpr size_t kDownlink = 64;  // a cache line of its own

// Appends `duration` to what is reserved already, not before `from`; returns where it starts.
int64_t append(int64_t& free_ns, int64_t from_ns, int64_t duration_ns) {
  std::atomic_ref<int64_t> shared(free_ns);
  int64_t seen = shared.load();
  int64_t start = std::max(seen, from_ns);
  while (!shared.compare_exchange_weak(seen, start + duration_ns)) start = std::max(seen, from_ns);
  return start;
}

}  // namespace

LinkClock::LinkClock(const EmulateConfig& config, std::span<std::byte> state)
    : ns_per_byte_(config.rate > 0 ? 8 * kNsPerSecond / config.rate : 0),
      half_rtt_ns_(std::llround(config.rtt / 2 * kNsPerSecond)),
      own_(state.empty() ? std::make_unique<std::byte[]>(kStateBytes) : nullptr),
      state_(state.empty() ? own_.get() : state.data()) {
  assert(state.empty() || state.size() >= kStateBytes);
}

int64_t LinkClock::duration_ns(size_t bytes) const {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * ns_per_byte_));
}

LinkClock::Lane& LinkClock::lane(size_t offset) const {
  return *reinterpret_cast<Lane*>(state_ + offset);
}

int64_t LinkClock::reserve(Lane& lane, Channel channel, int64_t from_ns, int64_t duration_ns) {
  const int64_t bulk_start = append(lane.bulk_free_ns, from_ns, duration_ns);
  if (channel == Channel::bulk) return bulk_start;
  return append(lane.control_free_ns, from_ns, duration_ns);
}

int64_t LinkClock::depart(Channel channel, size_t bytes, int64_t now_ns) {
  return reserve(lane(kUplink), channel, now_ns, duration_ns(bytes));
}

int64_t LinkClock::arrive(Channel channel, size_t bytes, int64_t reached_ns) {
  const int64_t duration = duration_ns(bytes);
  return reserve(lane(kDownlink), channel, reached_ns, duration) + duration;
}

bool InTransit::later(const Held& a, const Held& b) {
  return std::pair(a.at_ns, a.order) > std::pair(b.at_ns, b.order);
}

void InTransit::push(std::vector<Held>& heap, Held held) {
  heap.push_back(std::move(held));
  std::push_heap(heap.begin(), heap.end(), later);
}

InTransit::Held InTransit::pop(std::vector<Held>& heap) {
  std::pop_heap(heap.begin(), heap.end(), later);
  Held held = std::move(heap.back());
  heap.pop_back();
  return held;
}

void InTransit::add(Received message, Channel channel, int64_t departed_ns) {
  push(travelling_, {clock_.reach(departed_ns), order_++, channel, std::move(message)});
}

// What has reached the downlink by now queues there, first come, first served.
void InTransit::schedule(int64_t now_ns) {
  while (!travelling_.empty() && travelling_.front().at_ns <= now_ns) {
    Held held = pop(travelling_);
    const size_t bytes = held.message.header.size() + held.message.body.size();
    held.at_ns = clock_.arrive(held.channel, bytes, held.at_ns);
    held.order = order_++;
    push(arriving_, std::move(held));
  }
}

std::optional<Received> InTransit::take(int64_t now_ns) {
  schedule(now_ns);
  if (arriving_.empty() || arriving_.front().at_ns > now_ns) return std::nullopt;
  return pop(arriving_).message;
}

std::optional<int64_t> InTransit::next_ns() const {
  std::optional<int64_t> next;
  if (!travelling_.empty()) next = travelling_.front().at_ns;
  if (!arriving_.empty()) {
    next = next ? std::min(*next, arriving_.front().at_ns) : arriving_.front().at_ns;
  }
  return next;
}

void InTransit::drop(int from) {
  for (std::vector<Held>* heap : {&travelling_, &arriving_}) {
    std::erase_if(*heap, [from](const Held& held) { return held.message.from == from; });
    std::make_heap(heap->begin(), heap->end(), later);
  }
}

}  // namespace hybridsync
