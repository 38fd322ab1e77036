// What nodes tell each other: about one fragment, and about who takes part. Payloads are handles,
// so that the machines that handle these messages are values: they can be copied, compared and
// branched without moving numbers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/lineage.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/decide/time.h"
#include "hybridsync/decide/view.h"

namespace hybridsync {

// CONTRIBUTE, member -> owner. weight 0: the node abstains; it has nothing to give to this round
// and its payload is none.
struct Contribution {
  int node = -1;
  uint32_t incarnation = 0;
  uint64_t sequence = 0;  // of this process and fragment, from 1
  Version base = 0;       // the oldest version that any included step was computed on
  Version at = 0;         // the version on top of which it is offered
  Mode mode = Mode::gradient;
  bool finished = false;  // this node's training is over: it only stays for the others
  double weight = 0;      // samples (or tokens, or micro-batches) behind the numbers
  int64_t samples = 0;    // trained on since the last contribution, also by skipped steps
  int64_t steps = 0;
  double loss_sum = 0;  // weighted; loss = loss_sum / loss_weight
  double loss_weight = 0;
  double lr = 0;             // learning rate of the newest step that was not skipped; 0: none
  double squared_norm = 0;   // of the numbers
  uint64_t anchor_hash = 0;  // of what it is offered on top of: all members must name the same
  uint64_t settled = 0;      // every sequence number below is settled at the sender
  Version has = 0;           // the newest version that the sender keeps
  Payload values;
  Payload side;         // fragment 0: batch statistics and what else travels once per round
  uint64_t ticket = 0;  // the sender's own name for it; does not travel
  static void visit(auto& s, auto&& f) {
    f(s.node, s.incarnation, s.sequence, s.base, s.at, s.mode, s.finished, s.weight, s.samples,
      s.steps, s.loss_sum, s.loss_weight, s.lr, s.squared_norm, s.anchor_hash, s.settled, s.has,
      s.values, s.side);
  }
  bool operator==(const Contribution&) const = default;
};

// Has this contribution arrived? The same without payloads: an owner that has it or has settled it
// says so if it must, one that does not asks for it with Resend.
struct Remind {
  Contribution contribution;
  static void visit(auto& s, auto&& f) { f(s.contribution); }
  bool operator==(const Remind&) const = default;
};
struct Resend {
  uint64_t sequence = 0;
  static void visit(auto& s, auto&& f) { f(s.sequence); }
  bool operator==(const Resend&) const = default;
};

// CALL, owner -> members: the round on top of `version` has its quorum and closes after the grace
// time. Contribute at your next step boundary.
struct Call {
  Version version = 0;
  static void visit(auto& s, auto&& f) { f(s.version); }
  bool operator==(const Call&) const = default;
};

// Why a contribution was not applied and never will be. late: a round that its steps could have
// been for closed without its node, and the configuration does not fold such work in. dropped: the
// configuration says that late work is thrown away; otherwise it becomes progress again. not_now:
// it never left this node.
enum class ReturnReason : uint8_t { too_old, late, dropped, mode, mismatch, not_now };

// RETURN, owner -> member.
struct Return {
  uint64_t sequence = 0;
  ReturnReason reason = ReturnReason::too_old;
  static void visit(auto& s, auto&& f) { f(s.sequence, s.reason); }
  bool operator==(const Return&) const = default;
};

// FETCH, to whoever has it: what came after (version, chain). Answered with results where the
// lineage reaches back that far and agrees, otherwise with STATE.
struct Fetch {
  Version have = 0;
  uint64_t chain = 0;
  bool state = false;  // only STATE will do
  static void visit(auto& s, auto&& f) { f(s.have, s.chain, s.state); }
  bool operator==(const Fetch&) const = default;
};

// STATE: a whole fragment as the sender has it.
struct State {
  Lineage lineage;
  Payload anchor;
  Payload outer;  // the outer optimizer's buffer
  Payload side;   // of the newest round that had any
  static void visit(auto& s, auto&& f) { f(s.lineage, s.anchor, s.outer, s.side); }
  bool operator==(const State&) const = default;
};

// LAST, member -> owner at a view change: where I am.
struct Last {
  Epoch ready_epoch = 0;  // the last one in which it was ready
  Version version = 0;
  uint64_t chain = 0;
  static void visit(auto& s, auto&& f) { f(s.ready_epoch, s.version, s.chain); }
  bool operator==(const Last&) const = default;
};

// START, owner -> members: where the lineage of this epoch stands.
struct Start {
  Version version = 0;
  uint64_t chain = 0;
  static void visit(auto& s, auto&& f) { f(s.version, s.chain); }
  bool operator==(const Start&) const = default;
};

// ESTABLISH, owner -> coordinator: may this epoch begin for the fragment? The answer is refused if
// a newer view was issued meanwhile.
struct Establish {
  static void visit(auto&, auto&&) {}
  bool operator==(const Establish&) const = default;
};
struct Established {
  bool refused = false;
  static void visit(auto& s, auto&& f) { f(s.refused); }
  bool operator==(const Established&) const = default;
};

// HEARTBEAT, every node -> coordinator.
struct FragmentStatus {
  Epoch ready_epoch = 0;  // the last one in which this fragment was ready here
  Version version = 0;
  static void visit(auto& s, auto&& f) { f(s.ready_epoch, s.version); }
  bool operator==(const FragmentStatus&) const = default;
};
struct Heartbeat {
  uint64_t counter = 0;
  std::vector<FragmentStatus> fragments;
  static void visit(auto& s, auto&& f) { f(s.counter, s.fragments); }
  bool operator==(const Heartbeat&) const = default;
};
struct HeartbeatAnswer {
  uint64_t counter = 0;
  static void visit(auto& s, auto&& f) { f(s.counter); }
  bool operator==(const HeartbeatAnswer&) const = default;
};

// SUSPECT, member -> coordinator: the connection to this node broke, or it does not answer.
struct Suspect {
  int node = -1;
  static void visit(auto& s, auto&& f) { f(s.node); }
  bool operator==(const Suspect&) const = default;
};
// JOIN, LEAVE: a process -> coordinator.
struct Join {
  static void visit(auto&, auto&&) {}
  bool operator==(const Join&) const = default;
};
struct Leave {
  static void visit(auto&, auto&&) {}
  bool operator==(const Leave&) const = default;
};
// VIEW, coordinator -> everybody that it knows.
struct ViewMessage {
  View view;
  static void visit(auto& s, auto&& f) { f(s.view); }
  bool operator==(const ViewMessage&) const = default;
};

using MessageBody = std::variant<Contribution, Remind, Resend, Call, Result, Return, Fetch, State,
                                 Last, Start, Establish, Established, Heartbeat, HeartbeatAnswer,
                                 Suspect, Join, Leave, ViewMessage>;

struct Message {
  Process from;
  Epoch epoch = 0;
  int fragment = -1;  // -1: about the node
  MessageBody body;
  static void visit(auto& s, auto&& f) { f(s.from, s.epoch, s.fragment, s.body); }
  bool operator==(const Message&) const = default;
};

}  // namespace hybridsync
