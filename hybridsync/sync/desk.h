// What a rank's training thread and the comm side of its lane hand each other: contributions one
// way; results, anchors and returned contributions the other way. The training thread never waits
// for the network here unless it asks to.
//
// One thread on each side. In a simulation both sides are the same thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/seat.h"
#include "hybridsync/math/values.h"
#include "hybridsync/sync/coding_costs.h"
#include "hybridsync/sync/ledger.h"
#include "hybridsync/sync/round_messages.h"
#include "hybridsync/sync/side_data.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

// The bytes of a message: a fragment's numbers, then what goes beside them.
struct Body {
  SharedBytes bytes;
  BodyLayout layout;
};

// What happened to a fragment on the comm side, in order.
struct Moved {  // on by one version
  Result result;
  std::vector<Contribution> own;  // those of this node that it settled
  Body body;                      // gradient mode: the mean; none where everybody abstained
  std::optional<SideData> side;
};
struct Replaced {  // by another lineage
  Version version = 0;
  Lineage lineage;
  std::vector<Contribution> own;                        // unresolved here, held by it
  std::vector<std::pair<Contribution, Body>> restored;  // applied here, not held by it
};
struct GivenBack {  // no longer unresolved
  Contribution contribution;
  ReturnReason reason = ReturnReason::too_old;
};
using News = std::variant<Moved, Replaced, GivenBack>;

// A fragment's numbers as they travel, if there are any, then what goes beside them; `side` may be
// null.
Body make_body(ByteSpan values, const SideData* side);

struct Draft {
  int fragment = 0;
  Contribution contribution;
  Body body;
};

class Desk {
 public:
  // The fragments of one lane.
  Desk(const FragmentTable& table, const std::vector<int>& fragments);

  // --- training side

  // Hands over a contribution. Gives the ticket under which its fate will be told.
  uint64_t contribute(int fragment, Contribution draft, Body body);
  // The first anchor of a fragment: what all nodes agree on at this moment.
  void set_anchor(int fragment, ConstValues values, uint64_t hash);
  void set_busy(bool busy);

  struct Status {
    bool news = false;     // take() has something
    bool called = false;   // the owner waits for what this node has
    bool ready = true;     // not in the middle of a view change
    bool open = false;     // a contribution has no result yet
    Version offered = -1;  // the newest version on top of which there was an offer
    Version version = 0;   // of the anchor
  };
  Status status(int fragment) const;
  // Everything since the last take; copies the anchor as it is after that (not in gradient mode).
  std::vector<News> take(int fragment, Values anchor);
  Ledger ledger() const;
  CodingCosts coding() const;  // of the comm side
  // Reports since the last call, for the record.
  std::vector<Report> reports();
  // Of the comm side: why the run cannot go on.
  Outcome failure() const;

  // Until `enough` (called with no lock held), the comm side's failure, or `patience` ends it; it
  // is asked after every change. `healthy` is asked now and then, and ends the wait by a reason.
  Outcome wait(const std::function<bool()>& enough, const Patience& patience,
               const std::function<Outcome()>& healthy);

  // --- comm side

  // Called when something waits for the comm side: any thread.
  void on_work(std::function<void()> wake);
  struct Work {
    std::deque<Draft> drafts;
    std::vector<std::pair<int, uint64_t>> anchors;  // set: fragment and hash
    std::optional<bool> busy;
  };
  Work take_work();
  // Tells the news. `anchor`: the numbers that the fragment's anchor becomes by it; empty: it
  // stays.
  void tell(int fragment, News news, std::vector<std::byte> anchor = {});
  // All but `news`; and the nodes for whom a contribution without a result waits.
  void set_status(int fragment, const Status& status, std::vector<int> waits_for = {});
  void count(const std::function<void(Ledger&)>& entry);
  void set_coding(const CodingCosts& costs);
  void report(Report report);
  void fail(Outcome outcome);
  // Copies of what STATE sends. Comm side only.
  Values anchor(int fragment);

 private:
  struct Place {
    Fragment fragment;
    std::vector<std::byte> anchor;        // the comm side's
    std::vector<std::byte> first_anchor;  // until it takes it
    std::vector<News> news;
    Status status;
    std::vector<int> waits_for;
    Values values() { return values_at(anchor.data(), fragment.type, fragment.count); }
  };
  Waiting waiting() const;

  std::map<int, Place> places_;
  mutable std::mutex mutex_;  // guards everything
  std::condition_variable changed_;
  Work work_;
  std::function<void()> wake_ = [] {};
  uint64_t next_ticket_ = 1;
  Ledger ledger_;
  CodingCosts coding_;
  std::vector<Report> reports_;
  Outcome failure_;
  uint64_t changes_ = 0;
  uint64_t seen_ = 0;  // of these, by wait()
};

}  // namespace hybridsync
