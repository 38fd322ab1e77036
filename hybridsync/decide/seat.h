// A node's seat in the rounds of one fragment: always a member, sometimes the owner, and what both
// do when the view changes. A machine without sockets, threads or clock.
//
// Use: give it what happens (messages, a due timer, a contribution), and perform the actions in
// their order. Three of them ask for arithmetic and want its outcome back before anything else
// happens: CloseRound -> publish(), ApplyResult -> applied(), AdoptState -> adopted().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/member.h"
#include "hybridsync/decide/messages.h"
#include "hybridsync/decide/owner.h"

namespace hybridsync {

// --- actions

constexpr int kCoordinator = -1;

// To a node, or to wherever the coordinator is; never to the node itself. A State goes with the
// numbers as they are at this moment: the shell adds them.
struct Send {
  int to = kCoordinator;
  Message message;
};
struct CloseRound {
  Close close;
};
struct ApplyResult {
  Result result;
};
struct AdoptState {
  State state;
};
// The lineage moved on by this result, here.
struct Advanced {
  Result result;
  std::vector<Contribution> own;  // contributions of this node that it settled
};
// The lineage was replaced by another one (STATE).
struct Adopted {
  Version version = 0;
  Member::Change change;
};
// A contribution stops being unresolved. It becomes progress again, unless it was dropped.
struct Returned {
  Contribution contribution;
  ReturnReason reason = ReturnReason::too_old;
};
// Something that a user must hear of; the run goes on.
struct Report {
  enum class Kind {
    skipped,
    mismatch,
    lost,
    started,
    view,
    not_finite,
    codec,
    interval,
    stale
  } kind;
  int node = -1;
  std::string text;
};
// The run cannot go on with this node.
struct Disagreement {
  int node = -1;
  std::string why;
};
using Action = std::variant<Send, CloseRound, ApplyResult, AdoptState, Advanced, Adopted, Returned,
                            Report, Disagreement>;
using Actions = std::vector<Action>;

// close: the owner's round may close now. remind: a contribution has no answer. retry: a question
// of a view change, or for missing results, has none.
enum class Timer { close, remind, retry };
inline constexpr Timer kTimers[] = {Timer::close, Timer::remind, Timer::retry};

class Seat {
 public:
  Seat(int fragment, Process self, Policy policy, Schedule schedule);

  // A new run: everybody starts with the same numbers, and is ready in the first view.
  [[nodiscard]] Actions begin(const View& view, Micros now);
  // A view from the coordinator; an older one changes nothing.
  [[nodiscard]] Actions install(const View& view, Micros now);
  [[nodiscard]] Actions on(const Message& message, Micros now);
  // Only where may_contribute(draft.at).
  [[nodiscard]] Actions contribute(const Contribution& draft, Micros now);

  [[nodiscard]] Actions publish(const Close& close, uint64_t after, Payload values, Payload side,
                                Micros now, const SquaredNorms& norms = {});
  // `after`: the hash that the arithmetic gave.
  [[nodiscard]] Actions applied(const Result& result, uint64_t after, Micros now);
  [[nodiscard]] Actions adopted(const State& state, Micros now);

  // When this timer is to fire; nothing: not armed.
  std::optional<Micros> due(Timer timer) const;
  [[nodiscard]] Actions fire(Timer timer, Micros now);
  // Fires what is due.
  [[nodiscard]] Actions tick(Micros now);
  std::optional<Micros> next_due() const;

  // The connection to this node is there again: what it may have missed is sent again.
  [[nodiscard]] Actions reconnected(int node, Micros now);
  // The coordinator answered a heartbeat that was sent then.
  void coordinator_heard(Micros sent) { heard_ = std::max(heard_, sent); }
  // A busy node (evaluation, checkpoint) answers CALL by abstaining.
  [[nodiscard]] Actions set_busy(bool busy, Micros now);
  // Of the numbers that all nodes agree on when delta mode begins; before that no delta round
  // closes here and no result of one is applied.
  [[nodiscard]] Actions set_anchor(uint64_t hash, Micros now);

  bool may_contribute(Version at) const { return ready_ && member_.may_contribute(at); }
  // The owner waits for what this node has.
  bool called() const { return called_; }
  bool ready() const { return ready_; }
  Epoch epoch() const { return view_.epoch; }
  Epoch ready_epoch() const { return ready_epoch_; }
  const View& view() const { return view_; }
  int owner() const;  // its node; -1 before any view
  bool owns() const { return owner() == self_.node; }
  const Process& self() const { return self_; }
  int fragment() const { return fragment_; }
  const Member& member() const { return member_; }
  const Lineage& lineage() const { return member_.lineage(); }
  const Owner& rounds() const { return owner_; }
  FragmentStatus status() const { return {ready_epoch_, is_blank() ? -2 : lineage().version}; }
  // Whose message would let this fragment go on, and what it is about.
  std::vector<int> waits_for() const;

  // Of every payload that may still be needed.
  void each_payload(const auto& f) const;

  static void visit(auto& s, auto&& f) {
    f(s.view_, s.ready_, s.ready_epoch_, s.member_, s.owner_, s.lasts_, s.early_, s.target_,
      s.establishing_, s.mending_, s.called_, s.busy_, s.subscribers_, s.remind_at_, s.reminds_of_,
      s.reminders_, s.retry_at_, s.retries_, s.close_at_, s.heard_);
  }
  bool operator==(const Seat&) const = default;

 private:
  // A LAST, with its sender and the epoch that it is for.
  struct Heard {
    Process from;
    Epoch epoch = 0;
    Last last;
    static void visit(auto& s, auto&& f) { f(s.from, s.epoch, s.last); }
    bool operator==(const Heard&) const = default;
  };
  // Where this node has to get before it is ready, and who has that.
  struct Target {
    int node = -1;
    Version version = 0;
    uint64_t chain = 0;
    static void visit(auto& s, auto&& f) { f(s.node, s.version, s.chain); }
    bool operator==(const Target&) const = default;
  };

  bool lacks_anchor() const { return lineage().mode == Mode::delta && lineage().anchor == 0; }
  // A process that came later and has no numbers yet: a result cannot give it any, whatever version
  // it is on top of.
  bool is_blank() const;
  bool is_member() const { return view_.has(self_); }
  bool may_skip(Micros now) const;
  bool fenced(const Message& message) const;

  void handle(const Contribution& c, const Message& m, Micros now, Actions& out);
  void handle(const Remind& remind, const Message& m, Micros now, Actions& out);
  void handle(const Resend& resend, const Message& m, Micros now, Actions& out);
  void handle(const Call& call, const Message& m, Micros now, Actions& out);
  void handle(const Result& result, const Message& m, Micros now, Actions& out);
  void handle(const Return& back, const Message& m, Micros now, Actions& out);
  void handle(const Fetch& fetch, const Message& m, Micros now, Actions& out);
  void handle(const State& state, const Message& m, Micros now, Actions& out);
  void handle(const Last& last, const Message& m, Micros now, Actions& out);
  void handle(const Start& start, const Message& m, Micros now, Actions& out);
  void handle(const Established& answer, const Message& m, Micros now, Actions& out);
  template <class Other>
  void handle(const Other&, const Message&, Micros, Actions&) {}  // not about a fragment

  void answer(const Owner::Verdict& verdict, const Contribution& c, Actions& out);
  void decide(Micros now, Actions& out);
  void abstain_if_busy(Micros now, Actions& out);
  void contribute(const Contribution& draft, Micros now, Actions& out);
  void offer(const Contribution& c, Micros now, Actions& out);
  void take_back(uint64_t sequence, ReturnReason reason, Actions& out);
  void collect(Micros now, Actions& out);
  void get_to(const Target& target, Micros now, Actions& out);
  void fetch(int node, bool state, Micros now, Actions& out);
  void reached(Micros now, Actions& out);
  void become_ready(Micros now, Actions& out);
  void send_last(Actions& out) const;
  void ask_again(Micros now, Actions& out);
  void remind(Micros now, Actions& out);
  void call_again(Actions& out);
  void arm_remind(Micros now);
  void follow(Micros now);
  void arm_retry(Micros now);
  void send(int to, MessageBody body, Actions& out) const;
  Last last() const;

  int fragment_;
  Process self_;
  Policy policy_;
  View view_;
  bool ready_ = false;
  Epoch ready_epoch_ = 0;  // the last one in which it was ready
  Member member_;
  Owner owner_;
  std::vector<Heard> lasts_;  // of this epoch, by node
  std::vector<Heard> early_;  // of an epoch whose view has not come yet
  std::optional<Target> target_;
  bool establishing_ = false;  // the coordinator was asked
  bool mending_ = false;       // STATE was asked for although ready
  bool called_ = false;
  bool busy_ = false;
  std::vector<int> subscribers_;  // processes outside the view that follow this fragment
  std::optional<Micros> remind_at_;
  uint64_t reminds_of_ = 0;  // the oldest unresolved one
  int reminders_ = 0;
  std::optional<Micros> retry_at_;
  int retries_ = 0;
  std::optional<Micros> close_at_;
  Micros heard_ = 0;
};

void Seat::each_payload(const auto& f) const {
  const auto both = [&](const auto& x) {
    if (x.values) f(x.values);
    if (x.side) f(x.side);
  };
  for (const Contribution& c : member_.outbox()) both(c);
  for (const Member::Kept& k : member_.kept()) both(k.contribution);
  for (const Result& r : member_.log()) both(r);
  for (const Contribution& c : owner_.inbox()) both(c);
}

}  // namespace hybridsync
