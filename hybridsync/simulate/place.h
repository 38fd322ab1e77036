// A process in one fragment, with arithmetic that is only names: the production seat and position,
// the training side and the comm side folded into one, and the books for the invariants. A value.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/decide/position.h"
#include "hybridsync/decide/seat.h"
#include "hybridsync/simulate/invariants.h"

namespace hybridsync {

struct Resident {
  Seat seat;
  Position position;
  Books books;
  const Past* past = nullptr;  // of the seat's lineage

  int64_t progress() const;  // samples
  Fact fact() const { return {&seat, past, &books, progress()}; }
  bool may_contribute(int staleness) const;
  // `past` follows from the lineage.
  static void visit(auto& s, auto&& f) {
    f(s.seat.self(), s.seat.fragment(), s.seat, s.position, s.books);
  }
};

// What one event at a place does.
class PlaceStep {
 public:
  PlaceStep(Resident& place, Chronicle& chronicle, const Policy& policy)
      : place_(place), chronicle_(chronicle), policy_(policy) {}

  void begin(const View& view);
  void on(const Message& message);
  // One step is learned and offered, with everything that is progress.
  void contribute();
  // As if its time had come.
  void fire(Timer timer);
  void set_busy(bool busy);

  const std::vector<Send>& sent() const { return sent_; }
  const Finding& wrong() const { return wrong_; }  // the first violation on the way
  bool lost() const { return lost_; }              // a tail was lost with contributions in it

 private:
  void perform(const Actions& actions);
  void act(const Send& action) { sent_.push_back(action); }
  void act(const CloseRound& action);
  void act(const ApplyResult& action);
  void act(const AdoptState& action);
  void act(const Advanced& action);
  void act(const Adopted& action);
  void act(const Returned& action);
  void act(const Report& action);
  void act(const Disagreement& action);
  void settle(const std::vector<Contribution>& own);
  void find_lost(const Past* before);
  void note(Finding finding);

  Resident& place_;
  Chronicle& chronicle_;
  const Policy& policy_;
  Micros now_ = 0;
  std::vector<Send> sent_;
  Finding wrong_;
  bool lost_ = false;
};

}  // namespace hybridsync
