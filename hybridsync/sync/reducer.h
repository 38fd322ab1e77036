// Reduces a window's gradient buckets inside the node, each as soon as it and all earlier ones are
// full, on a thread of its own while backward goes on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "hybridsync/decide/buckets.h"
#include "hybridsync/sync/gradients.h"
#include "hybridsync/wire/group.h"

namespace hybridsync {

class Reducer {
 public:
  // With `overlap` false everything is reduced in join(), on the caller's thread; the bits are the
  // same.
  Reducer(Group& group, const Layout& layout, bool overlap);
  ~Reducer();

  // A new window into this set. No window may be open.
  void begin(Gradients gradients);
  // One parameter of the bucket will not change any more in this window. Any thread, one at a time.
  void ready(int bucket);
  // Lets everything leave, also buckets whose parameters this rank did not use.
  void launch() { release(layout_.buckets.size()); }
  // Sends off what has not left yet as launch() does, waits for all and closes the window.
  // Afterwards the set holds the sums over the node's ranks, equal bits on all.
  Outcome join();

  struct Times {
    double reduce_seconds = 0;  // spent in the reductions of the last window
    double wait_seconds = 0;    // of these, those that join() waited for
  };
  Times times() const { return times_; }
  int64_t windows() const { return windows_; }  // reduced so far: exactly one reduction each

 private:
  void run();
  void release(size_t end);
  Outcome reduce(size_t bucket);
  Outcome finish_inline();

  Group& group_;
  const Layout& layout_;
  const bool overlap_;
  Gradients gradients_;
  std::vector<int> waiting_for_;  // by bucket: parameters not ready yet
  size_t released_ = 0;           // buckets that may leave
  int64_t windows_ = 0;
  Times times_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  size_t allowed_ = 0;
  size_t reduced_ = 0;
  double seconds_ = 0;
  Outcome outcome_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hybridsync
