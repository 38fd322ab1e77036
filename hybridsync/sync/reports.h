// What the ranks of a node tell each other at a step boundary, in one small message each: how their
// part of the window went, and how a round ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/decide/schedule.h"
#include "hybridsync/sync/side_data.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

// One rank's part in a window; merged, the node's.
struct Window {
  int64_t micro_steps = 0;
  double weight = 0;         // sum of the micro-batches' weights
  double loss_sum = 0;       // sum of weight times mean loss
  double samples = 0;        // as given to backward()
  int64_t epochs_ended = 0;  // by end_epoch(); merged by minimum
  bool finished = false;     // merged by "and"
  bool interrupted = false;  // merged by "or"
  int64_t bytes_fast = 0;    // sent by this rank in the node since its start; merged by sum
  SideData side;
};

void write(const Window& window, Writer& writer);
Window read_window(Reader& reader);  // from a rank of one's own node: asserted to be whole
Window merge(const std::vector<Window>& by_rank);

// How a rank's lane of a round went. `why` is empty when all is well; the summary is fragment 0's
// and comes from local rank 0.
struct RoundReport {
  std::string why;
  bool interrupted = false;
  double weight = 0;
  int64_t samples = 0;
  double loss_sum = 0;
  double loss_weight = 0;
  bool finished = false;
  Mode next_mode = Mode::gradient;
  int64_t next_interval = 1;
  int64_t bytes_sent_slow = 0;  // by this rank's lane since its start; merged by sum
  int64_t bytes_received_slow = 0;
  bool has_side = false;
  SideData side;
};

inline constexpr size_t kWhyBytes = 512;  // longer sentences are cut

void write(const RoundReport& report, Writer& writer);
RoundReport read_round_report(Reader& reader);

}  // namespace hybridsync
