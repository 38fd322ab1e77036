// The one authority on the view: a machine without sockets, threads or clock. It sees heartbeats,
// suspicions and processes that want to join, and makes the next view from them. Rounds never pass
// through it: while it is away, rounds with everybody present go on.
//
// What it must not forget is the view. Whoever runs it writes that down before the view leaves
// (Persist comes before the Sends), and gives it back after a restart.
//
// What it promises, after every event:
// - Epochs only grow, a view is never empty, every fragment's owner is a member.
// - Every view holds, for every fragment, a process known to have been ready in the last epoch that
//   was established for it. Where all of those are gone, going on loses what only they had: such a
//   view is `lossy`, and made only after deaths, silence or broken connections. While that can be
//   avoided by letting a removed process back in that is heard, or by keeping one that leaves a
//   little longer, it is.
// - One change at a time: learners go in when nobody is missing and every fragment of the current
//   epoch is established.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/messages.h"
#include "hybridsync/decide/policy.h"

namespace hybridsync {

struct CoordinatorConfig {
  int fragments = 1;
  int min_members = 1;  // a view with fewer is not made: the members wait for somebody to come
  bool removes = true;  // false: nobody is ever removed or let in, the view stays what it is
  Process self;         // where it runs: the sender of its messages, and never blamed for a cut
  Policy policy;        // heartbeat, suspect_after
  bool operator==(const CoordinatorConfig&) const = default;
};

// To one node. Its epoch is the view's, except that Established names the epoch that was asked for.
struct CoordinatorSend {
  int to = -1;
  Message message;
  bool operator==(const CoordinatorSend&) const = default;
};
struct Persist {
  View view;
  bool operator==(const Persist&) const = default;
};
// For the record: a sentence that says what happened and why. `lossy`: of the fragments `lost` no
// process of the view is known to have been ready in the last established epoch, so what only the
// others had is lost. Said again of every view until such a fragment is established anew.
struct ViewEvent {
  Epoch epoch = 0;
  bool lossy = false;
  std::vector<int> lost;
  std::string why;
  bool operator==(const ViewEvent&) const = default;
};
using CoordinatorAction = std::variant<CoordinatorSend, Persist, ViewEvent>;
using CoordinatorActions = std::vector<CoordinatorAction>;

class Coordinator {
 public:
  // A new run: `first` is the view of the beginning, in which every member is ready. `restarted`:
  // `first` is what was written down last; views change again only after suspect_after, when those
  // who are there have been heard. Timers start at `now`.
  Coordinator(CoordinatorConfig config, View first, bool restarted, Micros now);

  // Heartbeat, Suspect, Join, Leave, Establish; others, and those of a process that was started
  // again since, are ignored. A message may come twice, late or never: members repeat a heartbeat
  // every heartbeat, Suspect as long as it holds (a cut between two members is only seen by that),
  // and Join, Leave and Establish until they see that it was heard.
  [[nodiscard]] CoordinatorActions on(const Message& message, Micros now);

  // Call it at least every heartbeat. If its own loop paused (more than suspect_after since the
  // last tick), every timer starts anew before anybody is judged.
  [[nodiscard]] CoordinatorActions tick(Micros now);

  // As if this member had been silent for too long. Until it is heard again the removal is tried
  // again by tick(), when it is not possible now. Nothing happens if the node is not a member.
  [[nodiscard]] CoordinatorActions remove(int node, const std::string& why, Micros now);

  const View& view() const { return view_; }

  // The last epoch that was confirmed for this fragment; 0: none is known (after a restart).
  Epoch established(int fragment) const { return established_[fragment]; }

  // The configuration is left out: it does not change.
  static void visit(auto& s, auto&& f) {
    f(s.view_, s.established_, s.peers_, s.suspicions_, s.ticked_, s.changes_from_, s.restarted_);
  }
  bool operator==(const Coordinator&) const = default;

 private:
  // Why a process does not count as alive. Whatever it was, being heard ends it.
  enum class Gone : uint8_t { no, silent, suspected, cut, told };

  // The newest known process of a node. In the view: a member, otherwise a learner if it is heard.
  struct Peer {
    Process process;
    Micros heard = 0;
    Micros not_before = 0;  // not let in: it was removed for a cut that may still be there
    Gone gone = Gone::no;
    bool left = false;      // said Leave
    bool reported = false;  // `fragments` comes from a heartbeat
    std::vector<FragmentStatus> fragments;
    std::vector<Epoch> confirmed;  // by fragment: ready as an owner, whatever it has said since
    // A learner's, by fragment: the newest version known at its last heartbeat and the one before.
    std::vector<Version> newest, newest_before;
    static void visit(auto& s, auto&& f) {
      f(s.process, s.heard, s.not_before, s.gone, s.left, s.reported, s.fragments, s.confirmed,
        s.newest, s.newest_before);
    }
    bool operator==(const Peer&) const = default;
  };

  struct Suspicion {
    Process accuser, accused;
    Micros since = 0;
    Micros renewed = 0;
    static void visit(auto& s, auto&& f) { f(s.accuser, s.accused, s.since, s.renewed); }
    bool operator==(const Suspicion&) const = default;
  };

  using Members = std::vector<Process>;

  Peer* hear(const Process& from, Micros now);
  Peer& peer(int node);
  const Peer* find(int node) const;
  const Peer* alive_as(const Process& process) const;

  void on_heartbeat(Peer& peer, const Message& message, CoordinatorActions& actions);
  void on_establish(Peer& peer, const Message& message, CoordinatorActions& actions);
  void on_suspect(const Process& accuser, int node, Micros now);
  void send(int to, MessageBody body, CoordinatorActions& actions) const;

  void restart_timers(Micros now);
  void forget_suspicions(Micros now);
  void mark_silent(Micros now);
  void mark_suspected(Micros now);
  void mark_cut(Micros now);
  int blamed() const;

  bool may_change(Micros now) const;
  bool stays(const Process& member) const;
  bool proven_dead(const Process& member) const;
  bool serves(const Peer& peer, Micros now) const;
  bool ready(const Peer& peer, int fragment) const;
  bool covered(const Members& members, int fragment) const;
  bool unsure(const Members& members, int fragment) const;
  bool caught_up(const Peer& peer) const;
  Version newest_version(int fragment) const;
  std::vector<int> lost_by(const Members& next) const;

  Members next_members(Micros now) const;
  void keep_ready(Members& next, Micros now) const;
  void fill_up(Members& next, Micros now) const;
  std::vector<int> assign(const Members& next) const;
  std::string describe(const Members& next, const std::string& why) const;
  void remove_the_gone(const std::string& why, Micros now, CoordinatorActions& actions);
  void let_in(Micros now, CoordinatorActions& actions);
  void issue(Members next, const std::string& why, CoordinatorActions& actions);

  CoordinatorConfig config_;
  View view_;
  std::vector<Epoch> established_;     // by fragment
  std::vector<Peer> peers_;            // ascending by node
  std::vector<Suspicion> suspicions_;  // between members; ascending by accuser, accused
  Micros ticked_ = 0;
  Micros changes_from_ = 0;
  bool restarted_ = false;
};

}  // namespace hybridsync
