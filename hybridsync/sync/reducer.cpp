#include "hybridsync/sync/reducer.h"

#include <cassert>

namespace hybridsync {
Reducer::Reducer(Group& group, const Layout& layout, bool overlap)
    : group_(group), layout_(layout), overlap_(overlap && group.size() > 1) {
  if (overlap_) thread_ = std::thread([this] { run(); });
}

Reducer::~Reducer() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reducer::begin(Gradients gradients) {
  gradients_ = gradients;
  waiting_for_.clear();
  for (const Bucket& b : layout_.buckets) waiting_for_.push_back(b.parameters);
  released_ = 0;
  std::lock_guard lock(mutex_);
  allowed_ = reduced_ = 0;
  seconds_ = 0;
}

void Reducer::ready(int bucket) {
  assert(waiting_for_[static_cast<size_t>(bucket)] > 0);
  --waiting_for_[static_cast<size_t>(bucket)];
  size_t end = released_;
  while (end < waiting_for_.size() && waiting_for_[end] == 0) ++end;
  if (end > released_) release(end);
}

void Reducer::release(size_t end) {
  released_ = end;
  if (!overlap_) return;
  {
    std::lock_guard lock(mutex_);
    allowed_ = end;
  }
  changed_.notify_all();
}

Outcome Reducer::join() {
  const auto start = Clock::now();
  launch();
  Outcome outcome = finish_inline();
  if (overlap_) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reduced_ == layout_.buckets.size() || !outcome_.ok(); });
    outcome = outcome_;
  }
  times_ = {seconds_, seconds_since(start)};
  ++windows_;
  return outcome;
}

Outcome Reducer::finish_inline() {
  if (overlap_) return {};
  for (size_t b = 0; b < layout_.buckets.size(); ++b)
    if (Outcome o = reduce(b); !o.ok()) return o;
  return {};
}

Outcome Reducer::reduce(size_t bucket) {
  const auto start = Clock::now();
  Outcome outcome = group_.all_reduce(gradients_.of(layout_.buckets[bucket]));
  seconds_ += seconds_since(start);
  return outcome;
}

void Reducer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (reduced_ < allowed_ && outcome_.ok()); });
    if (stop_) return;
    const size_t next = reduced_;
    lock.unlock();
    Outcome outcome = reduce(next);
    lock.lock();
    outcome_ = outcome;
    ++reduced_;
    changed_.notify_all();
  }
}

}  // namespace hybridsync
