// All of hybridsync that knows no torch. The order is the one to read the code in: what can be set,
// what is decided, what is computed, how bytes travel, where the three meet, and what is shown of
// it. The adapter for LibTorch is hybridsync/torch/trainer.h.
#pragma once

// This order is meant.
// clang-format off
// Configuration: structs with defaults and reasons, and where this process stands.
#include "hybridsync/config/config.h"
#include "hybridsync/config/load.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/config/error.h"

// Decisions: values in, values out; no clock, no sockets, no threads.
#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/decide/messages.h"
#include "hybridsync/decide/owner.h"
#include "hybridsync/decide/member.h"

// Arithmetic: spans of numbers in, spans of numbers out.
#include "hybridsync/math/values.h"
#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/outer.h"
#include "hybridsync/math/batch_stats.h"
#include "hybridsync/math/learning_rate.h"
#include "hybridsync/math/hash.h"

// Wires: collectives inside a node, messages between nodes.
#include "hybridsync/wire/wait.h"
#include "hybridsync/wire/rendezvous.h"
#include "hybridsync/wire/node_memory.h"
#include "hybridsync/wire/group.h"
#include "hybridsync/wire/exchange.h"
#include "hybridsync/wire/zmq_exchange.h"

// The step, where the three meet.
#include "hybridsync/sync/replica.h"
#include "hybridsync/sync/wires.h"
#include "hybridsync/sync/reducer.h"
#include "hybridsync/sync/rounds.h"
#include "hybridsync/sync/node_rounds.h"
#include "hybridsync/sync/synchronizer.h"

// Samples, and what a run leaves behind.
#include "hybridsync/data/global_order.h"
#include "hybridsync/data/source.h"
#include "hybridsync/observe/step_record.h"
#include "hybridsync/observe/record_json.h"
#include "hybridsync/observe/recorder.h"
#include "hybridsync/observe/summary.h"
#include "hybridsync/observe/run_data.h"
#include "hybridsync/observe/report.h"

// All ranks of a run on one machine.
#include "hybridsync/launch/launcher.h"
#include "hybridsync/launch/dry_run.h"
#include "hybridsync/launch/bench.h"
// clang-format on
