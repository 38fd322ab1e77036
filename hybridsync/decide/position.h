// Where a node's training stands in one fragment: what it has learned since its last contribution,
// when it contributes, and when it has to wait. Pure; lives beside the parameters, whereas Member
// lives beside the wires and may know of newer results already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hybridsync/decide/messages.h"

namespace hybridsync {

// One optimizer step of the node.
struct Learned {
  double weight = 0;    // samples behind the numbers; 0: a skipped step
  int64_t samples = 0;  // trained on, also by skipped steps
  double loss_sum = 0;
  double loss_weight = 0;
  double lr = 0;  // learning rate; 0: unknown, or skipped
  bool operator==(const Learned&) const = default;
};

class Position {
 public:
  Version version() const { return version_; }  // in the parameters
  int64_t steps() const { return steps_; }      // since the last contribution
  // Nothing was learned since, and nothing came back: not even what had no steps of its own.
  bool at_rest() const { return steps_ == 0 && since_.weight == 0; }
  int unresolved() const { return unresolved_; }
  const Learned& since() const { return since_; }  // the last contribution

  void step(const Learned& learned) {
    if (!fresh_) base_ = version_;
    fresh_ = true;
    ++steps_;
    ++steps_on_version_;
    since_.weight += learned.weight;
    since_.samples += learned.samples;
    since_.loss_sum += learned.loss_sum;
    since_.loss_weight += learned.loss_weight;
    if (learned.lr > 0) since_.lr = learned.lr;
  }

  // After `more` further steps: is a contribution due by its interval or by CALL?
  bool due(int64_t interval, bool called, int64_t more = 0) const {
    return steps_ + more >= interval || (called && steps_ + more > 0);
  }

  // At most one contribution per version, and not more than s + 1 unresolved ones.
  bool may_contribute(int staleness) const {
    return version_ > offered_ && unresolved_ <= staleness;
  }

  // Must training wait? Only when a contribution is due by its interval and none may be made: with
  // s + 1 unresolved ones, or s + 1 intervals after the newest result.
  bool must_wait(int64_t interval, int staleness, int64_t more = 0) const {
    if (unresolved_ > staleness) return true;
    return steps_ + more >= interval && steps_on_version_ + more >= (staleness + 1) * interval;
  }

  // A contribution of all that was learned; its payload and hash are the caller's.
  Contribution contribute() {
    Contribution c;
    c.base = fresh_ ? base_ : version_;
    c.at = version_;
    c.weight = since_.weight;
    c.samples = since_.samples;
    c.steps = steps_;
    c.loss_sum = since_.loss_sum;
    c.loss_weight = since_.loss_weight;
    c.lr = since_.lr;
    since_ = {};
    steps_ = 0;
    fresh_ = false;
    offered_ = version_;
    ++unresolved_;
    return c;
  }

  // The parameters are on top of this version now.
  void move(Version version) {
    if (version != version_) steps_on_version_ = 0;
    if (version < version_) offered_ = -1;
    version_ = version;
    base_ = std::min(base_, version);
  }
  void settle(int contributions) { unresolved_ -= contributions; }

  // A contribution was thrown away; its version is open to another one.
  void drop(const Contribution& c) {
    --unresolved_;
    offered_ = std::min(offered_, c.at - 1);
  }

  // A contribution is progress again, on top of what the parameters stand on now: like a residual
  // it is as old as its offer.
  void take_back(const Contribution& c, bool was_unresolved) {
    if (was_unresolved) --unresolved_;
    offered_ = std::min(offered_, c.at - 1);
    since_.weight += c.weight;
    since_.samples += c.samples;
    since_.loss_sum += c.loss_sum;
    since_.loss_weight += c.loss_weight;
    if (since_.lr == 0) since_.lr = c.lr;
    steps_ += c.steps;
  }

  // What was learned since the last contribution is worth nothing; its samples were trained on.
  void give_up() { since_.weight = since_.loss_sum = since_.loss_weight = 0; }

  static void visit(auto& s, auto&& f) {
    f(s.version_, s.base_, s.fresh_, s.steps_, s.steps_on_version_, s.unresolved_, s.offered_,
      s.since_.weight, s.since_.samples, s.since_.loss_sum, s.since_.loss_weight, s.since_.lr);
  }
  bool operator==(const Position&) const = default;

 private:
  Version version_ = 0;
  Version base_ = 0;    // of the steps that were learned since the last contribution
  bool fresh_ = false;  // there are such steps; what came back is as old as its offer
  int64_t steps_ = 0;
  int64_t steps_on_version_ = 0;
  int unresolved_ = 0;
  Version offered_ = -1;
  Learned since_;
};

}  // namespace hybridsync
