// What one optimizer step leaves in the record: a line of metrics.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hybridsync {

// What became of a node's contributions so far, all fragments together; nothing is lost without a
// number here. At rest contributed = applied + returned + dropped + what has no result yet;
// returned and restored work is contributed again.
struct LedgerRecord {
  int64_t contributed = 0;
  int64_t applied = 0;
  int64_t returned = 0;  // progress again
  int64_t dropped = 0;   // thrown away, as configured
  int64_t restored = 0;  // applied in results that were given up: progress again
  int64_t lost = 0;      // with a process that died, or such results
  double lost_norm = 0;
  double decayed_norm = 0;  // of what codes left out and gamma or error_feedback forgot
  int64_t skipped = 0;      // as owner: times that a round closed without a node that was too late
  int64_t mismatches = 0;   // hashes that differed
  std::vector<int64_t> ages;             // applied ones by age in versions, from 0
  std::vector<int64_t> skipped_by_node;  // as owner
  int64_t samples_contributed = 0;
  int64_t samples_applied = 0;
  int64_t samples_returned = 0;  // and restored

  bool operator==(const LedgerRecord&) const = default;
};

struct StepRecord {
  int node = 0;
  int64_t step = 0;          // attempts, this one included
  int64_t samples = 0;       // of the whole run so far
  double seconds = 0;        // since training began
  double loss = 0;           // weighted mean over the node's window
  double global_loss = 0;    // over the members of the newest round; NaN before the first
  double lr = 0;             // as applied to the first parameter group
  double grad_norm = 0;      // before clipping
  bool skipped = false;      // non-finite: nothing was touched
  int64_t interval = 1;      // K in force
  int64_t rounds = 0;        // completed by every fragment
  std::string mode;          // every_step, periodic, delayed
  int64_t contributors = 0;  // contributions in the newest round of fragment 0
  int64_t age = -1;          // the oldest of this node's in it, in versions; -1: it has none there
  double drift = 0;          // of the nodes in it, relative; 0: unknown
  LedgerRecord ledger;

  // Seconds of this step by part, as the training thread saw them.
  double compute_seconds =
      0;  // forward and backward (between micro-steps of the window), data included
  double reduce_seconds = 0;       // duration of the in-node reduction
  double reduce_wait_seconds = 0;  // the part of it that the training thread waited for
  double optimizer_seconds = 0;
  double exchange_seconds = 0;  // waiting between nodes
  double agree_seconds = 0;     // in-node agreement
  double other_seconds = 0;

  // Bytes of this node in this step (all of its ranks), by tier and direction.
  int64_t bytes_fast = 0;
  int64_t bytes_sent_slow = 0;
  int64_t bytes_received_slow = 0;

  // What codes stood for in this step at this node, what they took, and how long coding took;
  // codec_plain: times that a code would not have been shorter than the plain numbers.
  int64_t codec_bytes_before = 0;
  int64_t codec_bytes_after = 0;
  int64_t codec_plain = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;
};

// Evaluation on the held-out part.
struct EvaluationRecord {
  int64_t step = 0;
  int64_t samples = 0;
  double seconds = 0;
  double loss = 0;
  double accuracy = 0;  // fraction right, of images or of next characters
};

}  // namespace hybridsync
