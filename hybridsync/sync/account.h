// One fragment as a node's training sees it. It keeps the account
//
//   anchor - parameters = unresolved + kept + progress
//
// balanced: unresolved are the node's contributions whose fate is open, kept is what their codes
// left out and the parameters still hold, progress is what was learned since. A node sees its own
// unresolved work in its parameters until it is applied, and never twice. Used by the training
// thread of the rank that is the fragment's endpoint.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hybridsync/decide/position.h"
#include "hybridsync/sync/desk.h"
#include "hybridsync/sync/error_feedback.h"
#include "hybridsync/sync/gradient_feedback.h"

namespace hybridsync {

class Account {
 public:
  // `round`: in place, what parameters keep of values written into them; the identity unless they
  // are narrower than the core. `momentum`: of gradients, where they travel as codes. The desk must
  // outlive it.
  Account(Fragment fragment, int node, int staleness, Schedule schedule, Desk& desk,
          std::function<void(Values)> round,
          std::shared_ptr<Coder> coder = std::make_shared<Coder>(),
          const SenderMomentum& momentum = {});

  const Fragment& fragment() const { return fragment_; }
  const Position& position() const { return position_; }
  Mode mode() const { return mode_; }
  bool finished() const { return finished_; }  // every member is
  int64_t interval() const { return interval_; }
  // Where the interval adapts: it is fragment 0's, in all fragments.
  void set_interval(int64_t interval) { interval_ = interval; }

  // delta mode begins (or the run, in it): the parameters are what all nodes agree on.
  void set_anchor(ConstValues parameters);

  void step(const Learned& learned) { position_.step(learned); }
  bool may_contribute() const;
  // After `more` further steps.
  bool wants_to_contribute(int64_t more = 0) const;
  bool must_wait(int64_t more = 0) const;
  // While training waits, in whichever fragment: the owner of this one wants what there is, if it
  // is nothing. Otherwise fragments could wait for each other.
  bool should_answer() const;
  // Will training have to wait after `more` further steps and the contributions due then?
  bool will_wait(int64_t more) const;
  bool has_news() const { return desk_.status(fragment_.id).news; }

  // delta mode: offers everything that was learned since; `finished`: this node's training is over.
  // `side` (fragment 0) may be null. Nothing unless it may.
  void contribute(ConstValues parameters, bool finished, const SideData* side);
  // gradient mode: offers this node's mean gradient, or what GradientFeedback makes of it. A draft
  // of weight 0 abstains.
  void contribute_gradient(const Contribution& draft, ConstValues gradient, const SideData* side);

  // What the news did.
  struct Change {
    bool moved = false;            // delta mode: `out` holds new parameters
    bool advanced = false;         // at least one result
    Result newest;                 // of the results
    std::optional<SideData> side;  // of the newest result that had any
    int64_t samples = 0;           // of all results together
    int64_t own_samples = 0;       // of these, this node's
    int64_t dropped_samples = 0;   // of contributions that were thrown away, as configured
    int64_t rounds = 0;            // results in which not everybody abstained
    int64_t age = -1;              // the largest of this node's contributions in the newest
    // delta mode, where the comm side tells it: the newest mean delta. Valid until the next call.
    std::optional<ConstValues> mean = {};
  };
  // Takes the news. delta mode: `out` becomes the parameters after it, if they move. gradient mode:
  // `out` becomes the mean gradient of the newest result, unless everybody abstained.
  Change apply(ConstValues parameters, Values out);

  // What the account is made of, for checks.
  ConstValues anchor() const;
  // What codes left out and lies beside the parameters.
  std::span<const float> beside() const { return feedback_.beside(); }
  // Of coded gradients; nullptr where there are none.
  const GradientFeedback* gradients() const { return gradients_ ? &*gradients_ : nullptr; }
  // f(ticket, body) of every unresolved contribution, oldest first; delta mode.
  void each_unresolved(const auto& f) const {
    for (const Open& open : open_) f(open.ticket, open.body);
  }

 private:
  struct Open {
    uint64_t ticket = 0;
    Body body;  // delta mode
  };
  bool may_contribute(const Desk::Status& status) const;
  int staleness_now() const { return mode_ == Mode::gradient ? 0 : staleness_; }
  Values scratch(std::vector<std::byte>& memory) const;
  ConstValues numbers(const Body& body);
  void expected(Values out);
  ByteSpan encode(Contribution& c, Values learned, Bytes& memory);
  void offer(const Contribution& c, ByteSpan values, const SideData* side);
  void give_up(Contribution& c);
  Bytes encode(const Contribution& c, std::span<const float> gradient);
  void count_forgotten(double squared);
  void settle(const std::vector<Contribution>& own);
  void take_interval(int64_t interval);
  void take(const Moved& news, Values progress, Values out, Change& change);
  void take(const Replaced& news, Values progress, Values out, Change& change);
  void take(const GivenBack& news, Values progress, Values out, Change& change);

  Fragment fragment_;
  int node_;
  int staleness_;
  Schedule schedule_;
  Desk& desk_;
  std::function<void(Values)> round_;
  Position position_;
  Mode mode_;
  int64_t interval_;
  bool finished_ = false;
  bool not_finite_ = false;  // the parameters, since the last contribution
  double last_weight_ = 0;   // of the newest contribution that had any
  ErrorFeedback feedback_;
  std::optional<GradientFeedback> gradients_;
  std::vector<std::byte> anchor_;
  uint64_t anchor_hash_ = 0;
  Body mean_;                        // the newest, where it is told
  std::vector<Open> open_;           // unresolved contributions, oldest first
  std::vector<std::byte> progress_;  // scratch
};

}  // namespace hybridsync
