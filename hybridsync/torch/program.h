// The program's own trainer: what each rank of `hybridsync train` runs.
#pragma once

#include <ostream>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

// Trains train.model on train.data as this rank of the run: collective over all ranks, each in a
// process of its own (torch's threads and seed, and the handlers of SIGINT, SIGTERM and SIGHUP, are
// the process's). Progress goes to `out`, from the run's first rank.
//
// The run's folder (run_log.h) gets the records of each node and, from the run's first rank, the
// final weights in model.pt and its optimizer's state in optimizer.pt (start_state.h), from which
// another run can begin with train.start_from. The held-out part, or train.evaluate_samples of it,
// is evaluated every train.evaluate_every steps, and on the final weights. In between, the first
// rank of every node evaluates its own weights at the same time, so that no node waits for
// another's evaluation; the record shows the first node's. Evaluation is not part of the training
// time.
//
// The summary is the whole run's on the run's first rank; elsewhere losses are NaN and bytes zero.
// Its utilisation is the share of the training time in which the ranks compute (forward, backward
// and the data for them) rather than wait for each other or for the network, or step.
//
// Throws ConfigError; RunEnded when a peer is gone; Interrupted after one of the three signals; the
// last two leave an event in the record. Until the ranks have found each other a signal just ends
// the process.
RunSummary run_training(const Config& config, const Environment& environment, std::ostream& out);

}  // namespace hybridsync
