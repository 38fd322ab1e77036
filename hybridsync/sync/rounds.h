// Runs the rounds of one lane's fragments on the comm thread: takes this node's contributions,
// plays owner and member, applies results. The training thread hands over a copy and waits for what
// is ready.
//
// All decisions are in decide/ (Owner, Member), all arithmetic in math/; this is the shell between
// them and the Exchange.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/member.h"
#include "hybridsync/decide/owner.h"
#include "hybridsync/math/values.h"
#include "hybridsync/sync/round_messages.h"
#include "hybridsync/sync/side_data.h"
#include "hybridsync/wire/exchange.h"
#include "hybridsync/wire/frame.h"

namespace hybridsync {

class Rounds {
 public:
  struct Options {
    std::string run_id;
    int node = 0;
    int lane = 0;
    FragmentTable table;
    Schedule schedule;
    OuterConfig outer;
    StatsAtSync statistics = StatsAtSync::merge;
  };

  // `agreed`, by fragment id: where the numbers that all nodes agree on live. In gradient mode the
  // newest mean, in delta mode the anchor, which the caller fills in before the first contribution
  // of that mode. This object writes those of its lane, between contribute() and the end of wait().
  Rounds(Options options, std::unique_ptr<Exchange> exchange, std::vector<Values> agreed);
  ~Rounds();

  const std::vector<int>& fragments() const { return mine_; }  // of this lane

  // Hands over one fragment's contribution; copies the values. A draft of weight 0 abstains and its
  // values are not read. The draft's anchor_hash must be set. `side` belongs to fragment 0 and may
  // be null.
  void contribute(int fragment, const Contribution& draft, ConstValues values,
                  const SideData* side);

  // Until every contribution has its result. `healthy` is asked now and then, and ends the wait by
  // a reason.
  Outcome wait(const Patience& patience, const std::function<Outcome()>& healthy);

  // After wait(): of that fragment's newest round.
  const Result& result(int fragment) const { return finished_.at(fragment).result; }
  const std::optional<SideData>& side(int fragment) const { return finished_.at(fragment).side; }

  Exchange::Counters counters() const { return exchange_->counters(); }

 private:
  struct Body {
    SharedBytes bytes;
    BodyLayout layout;
  };
  struct Draft {
    int fragment;
    Contribution contribution;
    Body body;
  };
  struct Finished {
    Result result;
    std::optional<SideData> side;
  };
  struct Pending {
    Version version;
    std::vector<int> nodes;
  };
  // Everything the comm thread keeps of one fragment.
  struct State {
    Fragment fragment;
    Member member;
    std::optional<Owner> owner;
    Values agreed;
    std::vector<std::byte> momentum;  // the outer optimizer's buffer
    std::map<uint64_t, Body> bodies;  // of the open round
  };

  void run();
  void take_drafts();
  void handle(ExchangeEvent event);
  void say_leave();
  void on_leave(int node);
  void check_left();
  bool has_left(int node) const;
  std::vector<int> waited_for(const State& state) const;
  void on_message(Received message);
  void on_contribution(State& state, Contribution contribution, Body body);
  void on_result(State& state, const Result& result, const Body& body);
  void close(State& state, const Close& decision);
  void resolve(State& state, const Result& result, const Body& body, uint64_t after);
  std::optional<uint64_t> apply(State& state, Mode mode, const Body& body);
  std::optional<SideData> merged_side(const State& state, const Close& decision, bool& ok) const;
  void send(int to, MessageKind kind, const State& state, Version version, const Writer& fields,
            const SharedBytes& body);
  Bytes header(MessageKind kind, int fragment, Version version, ByteSpan fields,
               ByteSpan body) const;
  bool finished() const;
  void publish_pending(const State& state);
  void fail(Outcome outcome);
  bool fits(const State& state, const BodyLayout& layout, const Bytes& body) const;
  ConstValues values_in(const State& state, const Body& body) const;
  std::string phase() const;

  const Options options_;
  const uint64_t run_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<int> mine_;
  std::map<int, State> states_;  // comm thread only
  uint64_t next_handle_ = 1;
  std::map<int, int> leaves_;  // by node: channels on which it said that it leaves

  std::map<int, Finished> finished_;  // training thread only

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Draft> drafts_;
  std::map<int, Pending> pending_;
  std::map<int, Finished> arrived_;
  Outcome failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hybridsync
