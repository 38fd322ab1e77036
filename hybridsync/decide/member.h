// A node's side of one fragment's rounds: what it has applied, and which of its contributions are
// still open. A value without sockets, threads or clock; Seat joins it with the owner's side and
// the views.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hybridsync/decide/messages.h"
#include "hybridsync/decide/policy.h"

namespace hybridsync {

class Member {
 public:
  Member(Process self, Policy policy, Schedule schedule);

  const Lineage& lineage() const { return lineage_; }
  const std::vector<Contribution>& outbox() const { return outbox_; }  // unresolved, oldest first
  const std::vector<Result>& log() const { return log_; }              // newest last

  Version offered() const { return last_at_; }  // the newest version with a contribution on top
  uint64_t made() const { return sequence_; }   // contributions so far, abstentions included
  // Contributions whose fate may be open at a time: s + 1, in gradient mode 1.
  size_t most_unresolved() const;
  // At most one contribution per version, and not more unresolved ones than that.
  bool may_contribute(Version at) const;

  // Completes a draft (base, at, and all that was learned) and makes it unresolved. Only where
  // may_contribute() says so.
  [[nodiscard]] Contribution contribute(Contribution draft);
  // The outbox as it has to be sent now.
  std::vector<Contribution> resend() const;

  // RETURN: stops being unresolved, and another one may be made on top of the same version. Nothing
  // if it was not.
  [[nodiscard]] std::optional<Contribution> take_back(uint64_t sequence);

  // A result on top of this version; gives the own contributions that it settled. `keep_values`:
  // others may ask this node for it.
  std::vector<Contribution> extend(const Result& result, bool keep_values);

  // A lineage taken over as a whole (STATE).
  struct Change {
    std::vector<Contribution> applied;   // unresolved until now, and the lineage holds them
    std::vector<Contribution> restored;  // were applied here, and the lineage does not hold them
    bool lost = false;  // a tail was dropped with contributions in it that were forgotten already
  };
  [[nodiscard]] Change adopt(const Lineage& lineage);

  // Results after (version, chain), if the log has all of them.
  std::optional<std::vector<Result>> results_after(Version version, uint64_t chain) const;

  void set_anchor(uint64_t hash) { lineage_.anchor = hash; }
  // An outbox of a view that is gone, for planted bugs only.
  void clear_outbox() { outbox_.clear(); }

  // Own contributions in results that not every member has yet: were their tail dropped, they would
  // become progress again.
  struct Kept {
    Version version = 0;
    Contribution contribution;
    static void visit(auto& s, auto&& f) { f(s.version, s.contribution); }
    bool operator==(const Kept&) const = default;
  };
  const std::vector<Kept>& kept() const { return kept_; }

  static void visit(auto& s, auto&& f) {
    f(s.lineage_, s.outbox_, s.kept_, s.log_, s.sequence_, s.last_at_, s.stable_, s.forgotten_,
      s.forgotten_sequence_);
  }
  bool operator==(const Member&) const = default;

 private:
  Contribution current(Contribution contribution) const;
  void forget_stable(Version stable);

  Process self_;
  Policy policy_;
  Lineage lineage_;
  std::vector<Contribution> outbox_;
  std::vector<Kept> kept_;
  std::vector<Result> log_;
  uint64_t sequence_ = 0;
  Version last_at_ = -1;
  Version stable_ = 0;
  Version forgotten_ = 0;  // newest version of which an applied contribution was forgotten
  uint64_t forgotten_sequence_ = 0;  // ... which one
};

}  // namespace hybridsync
