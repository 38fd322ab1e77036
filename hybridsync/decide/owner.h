// The owner's side of a fragment: it collects contributions, decides when a round closes, and makes
// the result. A value without sockets, threads or clock; Seat joins it with the member's side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/close_decision.h"
#include "hybridsync/decide/interval.h"
#include "hybridsync/decide/member.h"
#include "hybridsync/decide/messages.h"

namespace hybridsync {

// A round that closes now, with these contributions in the order of the sum: by node, then
// sequence.
struct Close {
  Version version = 0;  // of the result
  Mode mode = Mode::gradient;
  std::vector<Contribution> contributions;
  std::vector<int> skipped;
  std::string why;
};

// A round that is over, and what a user must hear of the interval; empty: nothing.
struct Published {
  Result result;
  std::string interval;  // it is another one from here on
  std::string stale;     // it should be another one
};

class Owner {
 public:
  Owner(int fragment, int self, Policy policy, Schedule schedule);

  // A new epoch begins, at this lineage.
  void open(const View& view, const Lineage& lineage);

  // What is to become of a contribution.
  struct Accepted {};
  struct Waits {};    // it is in the inbox already
  struct Settled {};  // the lineage holds it
  struct Refused {
    ReturnReason reason;
  };
  struct Disagrees {  // the run cannot go on with its sender
    std::string why;
  };
  using Verdict = std::variant<Accepted, Waits, Settled, Refused, Disagrees>;
  // What on() would answer; nothing changes.
  [[nodiscard]] Verdict judge(const Contribution& c, const Member& member) const;
  [[nodiscard]] Verdict on(const Contribution& c, const Member& member, Micros now);

  [[nodiscard]] CloseDecision decide(const Lineage& lineage, Micros now, bool may_skip) const;
  void called(Micros now) { called_ = now; }
  [[nodiscard]] Close close(const Lineage& lineage, const CloseNow& decision) const;

  // After the arithmetic: the result, and the next round is open.
  [[nodiscard]] Published publish(const Close& close, const Lineage& lineage, Epoch epoch,
                                  uint64_t after, Payload values, Payload side,
                                  const SquaredNorms& norms = {});

  const std::vector<Contribution>& inbox() const { return inbox_; }
  std::vector<int> missing() const;

  static void visit(auto& s, auto&& f) {
    f(s.standings_, s.inbox_, s.opened_, s.called_, s.interval_);
  }
  bool operator==(const Owner&) const = default;

 private:
  std::optional<Verdict> check_numbers(const Contribution& c, const Member& member) const;
  bool is_late(const Contribution& c) const;
  Standing* standing(int node);
  Version stable(Version own) const;
  Wish next_interval(const Close& close, const Lineage& lineage, const SquaredNorms& norms);

  int fragment_;
  int self_;
  Policy policy_;
  Schedule schedule_;
  std::vector<Standing> standings_;
  std::vector<Contribution> inbox_;  // by node, then sequence
  std::optional<Micros> opened_;
  std::optional<Micros> called_;
  Interval interval_;  // fragment 0's is that of all
};

}  // namespace hybridsync
