// The comm side of one lane: this node's seats in the rounds of the lane's fragments, their bytes
// and their arithmetic. All decisions are in decide/, all arithmetic in math/; this is what joins
// them to an Exchange. No thread and no clock of its own: the production shell (Rounds) and the
// simulator drive the same code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/decide/coordinator.h"
#include "hybridsync/decide/pulse.h"
#include "hybridsync/decide/seat.h"
#include "hybridsync/sync/averager.h"
#include "hybridsync/sync/desk.h"
#include "hybridsync/wire/exchange.h"

namespace hybridsync {

class Lane {
 public:
  struct Options {
    std::string run_id;
    Process self;
    int lane = 0;
    FragmentTable table;
    Schedule schedule;
    Policy policy;
    OuterConfig outer;
    CodecOptions codec;
    SmallTensors small;        // of the table's fragments
    bool tells_means = false;  // delta mode: whether training wants to see each round's mean
    StatsAtSync statistics = StatsAtSync::merge;
    bool heartbeats = false;  // needed to close a round without somebody
    bool views = false;       // members may come and go; otherwise a lost peer ends the run
    int coordinator = 0;      // the node where the coordinator is
  };
  using SendFunction = std::function<void(int to, Channel, Bytes header, SharedBytes body)>;

  Lane(Options options, Desk& desk, SendFunction send);

  // Runs the coordinator here. `persist` writes a view down before it leaves.
  void host(Coordinator coordinator, std::function<void(const View&)> persist);
  // A new run, everybody is in the first view.
  void begin(const View& view, Micros now);
  // A process that asks to be let in.
  void join(Micros now);

  void on(ExchangeEvent event, Micros now);
  // Takes what the desk has, and fires what is due.
  void tick(Micros now);
  // When tick() has something to do.
  std::optional<Micros> next_due() const;
  // In order: the last messages.
  void leave();
  bool finished() const;  // every member is, in every fragment

  const std::map<int, Seat>& seats() const { return seats_; }
  const Coordinator* coordinator() const { return coordinator_ ? &*coordinator_ : nullptr; }
  const Averager& averager() const { return averager_; }
  // Payloads that are kept for a fragment.
  size_t payloads(int fragment) const;

  // Sees every action of a seat right before it is performed: for checks and traces.
  using Watch = std::function<void(const Seat&, const Action&)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  // A result or a state on its way into the anchor.
  struct Coming {
    Body body;
    std::vector<std::byte> anchor;  // as it will be; empty: it does not move
    SquaredNorms norms = {};        // at the owner of fragment 0
  };

  void take(Draft& draft, Micros now);
  void beat(Micros now);
  void to_coordinator(const Message& message, Micros now);
  void from_coordinator(const CoordinatorActions& actions, Micros now);

  void on_message(Received received, Micros now);
  void on_lost(const PeerLost& lost, Micros now);
  void suspect(Micros now);
  void suspect_silent(Micros now);
  void on_leave(int node);
  void check_left();
  bool has_left(int node) const;
  void refuse(int node, const std::string& why);
  bool fits(const Message& message, const BodyLayout& layout, size_t bytes) const;
  void keep(Message& message, Body body);
  void deliver(const Message& message, Micros now);

  void perform(Seat& seat, Actions actions, Micros now);
  void act(Seat& seat, const Send& action, Micros now);
  void act(Seat& seat, const CloseRound& action, Micros now);
  void act(Seat& seat, const ApplyResult& action, Micros now);
  void act(Seat& seat, const AdoptState& action, Micros now);
  void act(Seat& seat, const Advanced& action, Micros now);
  void act(Seat& seat, const Adopted& action, Micros now);
  void act(Seat& seat, const Returned& action, Micros now);
  void act(Seat& seat, const Report& action, Micros now);
  void act(Seat& seat, const Disagreement& action, Micros now);

  void send(int to, const Message& message, const Body& body);
  Body body_of(const Seat& seat, const Message& message);
  uint64_t compute(const Seat& seat, Mode mode, const Body& body);
  void move_anchor(int fragment, ByteSpan result, ConstValues mean, Values anchor);
  std::optional<SideData> merged_side(const Seat& seat, const Close& close, bool& ok) const;
  Values momentum(int fragment);
  std::optional<Bytes> mean_of(const Seat& seat, const Close& close);
  void forget_residuals(int fragment, Version oldest);
  void sweep(const Seat& seat);
  void count_abstentions(const Seat& seat);
  void publish_status(const Seat& seat);
  std::string phase() const;

  const Options options_;
  const uint64_t run_;
  Desk& desk_;
  SendFunction send_;
  Watch watch_;
  std::map<int, Seat> seats_;  // by fragment
  std::optional<Pulse> pulse_;
  std::optional<Coordinator> coordinator_;
  std::function<void(const View&)> persist_;
  bool joining_ = false;
  // Members to which the connection broke, by node, until something comes again.
  std::map<int, Process> suspects_;
  // Since when members that were asked with REMIND have been silent, by node.
  std::map<int, Micros> asked_;
  Micros ticked_ = 0;

  std::map<int, std::map<uint64_t, Body>> bodies_;  // by fragment, then handle
  uint64_t next_handle_ = 1;
  Averager averager_;
  std::map<int, std::vector<std::byte>> momentum_;  // the outer optimizer's buffers
  std::map<int, Coming> coming_;                    // by fragment
  std::map<int, uint64_t> counted_;                 // contributions in the ledger, by fragment
  std::map<int, int> leaves_;                       // by node: channels on which it said so
};

}  // namespace hybridsync
