#include "hybridsync/sync/lane.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/math/outer.h"

namespace hybridsync {
namespace {

std::optional<SideData> side_in(const Body& body) {
  if (body.layout.side_bytes == 0) return std::nullopt;
  Reader reader(ByteSpan(*body.bytes).subspan(body.layout.values_bytes));
  return read_side_data(reader);
}

const SharedBytes& nothing() {
  static const SharedBytes empty = std::make_shared<const Bytes>();
  return empty;
}

ByteSpan values_in(const Body& body) {
  return ByteSpan(*body.bytes).first(body.layout.values_bytes);
}

// What a contribution or a result carries under this handle.
template <class T>
void name_payloads(T& carrier, const BodyLayout& layout, Payload payload) {
  if (layout.values_bytes > 0) carrier.values = payload;
  if (layout.side_bytes > 0) carrier.side = payload;
}

// 0: nothing.
template <class T>
uint64_t handle_of(const T& carrier) {
  return carrier.values ? carrier.values.handle : carrier.side.handle;
}

// What would ask for a payload again, or answer for one, if it overtook it.
bool keeps_order(const Message& m) {
  return std::holds_alternative<Contribution>(m.body) || std::holds_alternative<Remind>(m.body) ||
         std::holds_alternative<Result>(m.body) || std::holds_alternative<Return>(m.body) ||
         std::holds_alternative<Start>(m.body);
}

}  // namespace

Lane::Lane(Options options, Desk& desk, SendFunction send)
    : options_(std::move(options)),
      run_(run_hash(options_.run_id)),
      desk_(desk),
      send_(std::move(send)),
      averager_(options_.table, options_.schedule, options_.codec, options_.small,
                Gains(options_.outer.lr == kAutoLr)) {
  for (int f : options_.table.of_lane(options_.lane)) {
    const int part = options_.table.fragments[f].part;
    seats_.emplace(f, Seat(f, options_.self, options_.policy,
                           options_.schedule.of_part(part, options_.table.parts())));
    if (options_.outer.momentum != 0) momentum_[f].resize(options_.table.fragments[f].bytes());
  }
}

void Lane::host(Coordinator coordinator, std::function<void(const View&)> persist) {
  coordinator_ = std::move(coordinator);
  persist_ = std::move(persist);
}

void Lane::begin(const View& view, Micros now) {
  if (options_.heartbeats && !seats_.empty()) pulse_.emplace(options_.policy, now);
  for (auto& [f, seat] : seats_) perform(seat, seat.begin(view, now), now);
}

void Lane::join(Micros now) {
  pulse_.emplace(options_.policy, now);
  joining_ = true;
  to_coordinator({options_.self, 0, -1, Join{}}, now);
}

// --- time

void Lane::tick(Micros now) {
  // After a pause of its own nobody is judged by what was asked before it.
  if (now - ticked_ > options_.policy.suspect_after) asked_.clear();
  ticked_ = now;
  Desk::Work work = desk_.take_work();
  for (const auto& [f, hash] : work.anchors) {
    Seat& seat = seats_.at(f);
    perform(seat, seat.set_anchor(hash, now), now);
  }
  for (Draft& draft : work.drafts) take(draft, now);
  if (work.busy)
    for (auto& [f, seat] : seats_) perform(seat, seat.set_busy(*work.busy, now), now);
  if (pulse_) beat(now);
  if (coordinator_) from_coordinator(coordinator_->tick(now), now);
  for (auto& [f, seat] : seats_) {
    if (const auto due = seat.next_due(); due && *due <= now) perform(seat, seat.tick(now), now);
  }
  check_left();
}

std::optional<Micros> Lane::next_due() const {
  std::optional<Micros> next;
  const auto earlier = [&](std::optional<Micros> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const auto& [f, seat] : seats_) earlier(seat.next_due());
  if (pulse_) earlier(pulse_->next_due());
  return next;
}

void Lane::take(Draft& draft, Micros now) {
  Seat& seat = seats_.at(draft.fragment);
  Contribution c = draft.contribution;
  const bool over = seat.lineage().finished && !options_.views;  // the others may have left
  if (over || !seat.may_contribute(c.at)) {
    desk_.tell(draft.fragment, GivenBack{c, ReturnReason::not_now});
    return publish_status(seat);
  }
  const Payload payload{next_handle_++};
  name_payloads(c, draft.body.layout, payload);
  if (handle_of(c) != 0) bodies_[draft.fragment][payload.handle] = std::move(draft.body);
  desk_.count([&](Ledger& l) { l.contributed.add(c.samples); });
  ++counted_[draft.fragment];
  perform(seat, seat.contribute(c, now), now);
}

// --- the coordinator

void Lane::beat(Micros now) {
  const auto counter = pulse_->tick(now);
  if (!counter) return;
  Heartbeat beat{*counter, {}};
  Epoch epoch = 0;
  for (const auto& [f, seat] : seats_) {
    beat.fragments.push_back(seat.status());
    epoch = seat.epoch();
  }
  if (epoch == 0 && joining_) return to_coordinator({options_.self, 0, -1, Join{}}, now);
  to_coordinator({options_.self, epoch, -1, beat}, now);
  suspect_silent(now);
  suspect(now);
}

void Lane::to_coordinator(const Message& message, Micros now) {
  if (coordinator_) return from_coordinator(coordinator_->on(message, now), now);
  if (options_.coordinator != options_.self.node) send(options_.coordinator, message, {});
}

void Lane::from_coordinator(const CoordinatorActions& actions, Micros now) {
  for (const CoordinatorAction& action : actions) {
    if (const auto* persist = std::get_if<Persist>(&action)) persist_(persist->view);
    if (const auto* event = std::get_if<ViewEvent>(&action))
      desk_.report({event->lossy ? Report::Kind::lost : Report::Kind::view, -1,
                    "epoch " + std::to_string(event->epoch) + ": " + event->why});
    if (const auto* one = std::get_if<CoordinatorSend>(&action)) {
      if (one->to == options_.self.node)
        deliver(one->message, now);
      else
        send(one->to, one->message, {});
    }
  }
}

void Lane::deliver(const Message& m, Micros now) {
  if (const auto* answer = std::get_if<HeartbeatAnswer>(&m.body)) {
    if (!pulse_) return;
    pulse_->answered(answer->counter, now);
    for (auto& [f, seat] : seats_) seat.coordinator_heard(pulse_->answered_at());
  } else if (std::holds_alternative<ViewMessage>(m.body)) {
    asked_.clear();  // others may be asked now
    for (auto& [f, seat] : seats_) perform(seat, seat.on(m, now), now);
  } else if (const auto found = seats_.find(m.fragment); found != seats_.end()) {
    perform(found->second, found->second.on(m, now), now);
  } else if (coordinator_) {
    from_coordinator(coordinator_->on(m, now), now);
  }
}

// --- messages

void Lane::on(ExchangeEvent event, Micros now) {
  if (const auto* lost = std::get_if<PeerLost>(&event)) return on_lost(*lost, now);
  on_message(std::move(std::get<Received>(event)), now);
}

void Lane::refuse(int node, const std::string& why) {
  desk_.fail({Outcome::Kind::mismatch, node,
              "node " + std::to_string(node) + " sent what no member sends: " + why});
}

void Lane::on_message(Received received, Micros now) {
  const auto decoded = decode(received.header, received.body, {run_, received.from});
  if (const auto* b = std::get_if<BadFrame>(&decoded)) return refuse(received.from, b->why);
  suspects_.erase(received.from);
  asked_.erase(received.from);
  auto wire = read_message(std::get<Frame>(decoded));
  if (!wire) return refuse(received.from, "fields that do not fit the message");
  Message& message = wire->message;
  if (std::holds_alternative<Leave>(message.body) && !options_.views)
    return on_leave(received.from);
  if (!fits(message, wire->layout, received.body.size()))
    return refuse(received.from,
                  "a message that does not fit fragment " + std::to_string(message.fragment));
  const bool to_coordinator = std::holds_alternative<Establish>(message.body);
  if (to_coordinator && coordinator_) return from_coordinator(coordinator_->on(message, now), now);
  if (!received.body.empty())
    keep(message, {std::make_shared<const Bytes>(std::move(received.body)), wire->layout});
  deliver(message, now);
}

bool Lane::fits(const Message& m, const BodyLayout& layout, size_t bytes) const {
  if (layout.side_bytes > bytes || layout.values_bytes + layout.side_bytes != bytes) return false;
  const bool of_views = std::holds_alternative<ViewMessage>(m.body) ||
                        std::holds_alternative<Last>(m.body) ||
                        std::holds_alternative<Join>(m.body);
  if (of_views && !options_.views) return false;
  if (m.fragment == -1) return bytes == 0;
  if (seats_.find(m.fragment) == seats_.end()) return false;
  const auto whole = static_cast<uint64_t>(options_.table.fragments[m.fragment].bytes());
  Version version = -1;
  if (const auto* c = std::get_if<Contribution>(&m.body)) {
    if (Process{c->node, c->incarnation} != m.from) return false;
    if ((c->weight > 0) != (layout.values_bytes > 0)) return false;
    version = c->at;
  } else if (const auto* remind = std::get_if<Remind>(&m.body)) {
    return Process{remind->contribution.node, remind->contribution.incarnation} == m.from &&
           bytes == 0;
  } else if (const auto* r = std::get_if<Result>(&m.body)) {
    if ((r->weight > 0) != (layout.values_bytes > 0)) return false;
    version = r->version - 1;
    for (const RosterEntry& e : r->roster)
      if (e.age > options_.policy.staleness) return false;
  } else if (std::holds_alternative<State>(m.body)) {
    const bool outer = options_.outer.momentum != 0;
    return layout.values_bytes == whole && layout.side_bytes == (outer ? whole : 0);
  } else {
    return bytes == 0;
  }
  return layout.values_bytes == 0 || averager_.fits(m.fragment, version, layout.values_bytes);
}

// Gives the message's payloads a handle.
void Lane::keep(Message& message, Body body) {
  const Payload payload{next_handle_++};
  std::visit(
      [&](auto& b) {
        if constexpr (requires { b.values; }) {
          name_payloads(b, body.layout, payload);
        } else if constexpr (requires { b.anchor; }) {
          b.anchor = payload;
        }
      },
      message.body);
  bodies_[message.fragment][payload.handle] = std::move(body);
}

// --- peers that go

void Lane::on_lost(const PeerLost& lost, Micros now) {
  if (options_.views) {
    const View view = seats_.empty() ? View{} : seats_.begin()->second.view();
    if (const Process* process = view.find(lost.node)) suspects_[lost.node] = *process;
    return suspect(now);
  }
  if (has_left(lost.node) || (!seats_.empty() && finished())) return;
  desk_.fail({Outcome::Kind::peer_lost, lost.node,
              "node " + std::to_string(lost.node) + " is gone (" + lost.why + ") " + phase()});
}

// Said again with every heartbeat for as long as nothing is heard from it: only so can the
// coordinator tell a cut between two members from a moment's trouble. A process that has left the
// view is no longer suspected: the one that comes back may never have a reason to speak to this
// node.
void Lane::suspect(Micros now) {
  if (suspects_.empty()) return;
  const View view = seats_.empty() ? View{} : seats_.begin()->second.view();
  std::erase_if(suspects_, [&](const auto& suspect) { return !view.has(suspect.second); });
  for (const auto& [node, process] : suspects_)
    to_coordinator({options_.self, view.epoch, -1, Suspect{node}}, now);
}

// A comm thread always answers REMIND, however busy its node is: one that does not, while the
// coordinator hears both, is cut off from this node.
void Lane::suspect_silent(Micros now) {
  if (!options_.views) return;
  const View view = seats_.empty() ? View{} : seats_.begin()->second.view();
  for (const auto& [node, since] : asked_) {
    const Process* process = view.find(node);
    if (process && now - since > 2 * options_.policy.suspect_after) suspects_[node] = *process;
  }
}

void Lane::leave() {
  for (const auto& [f, seat] : seats_) forget_residuals(f, seat.lineage().version + 1);
  const Message message{options_.self, 0, -1, Leave{}};
  for (int node = 0; node < options_.table.nodes; ++node)
    for (Channel channel : {Channel::control, Channel::bulk})
      if (node != options_.self.node)
        send_(node, channel, encode({message, {}}, run_, {}), nothing());
}

void Lane::on_leave(int node) {
  ++leaves_[node];
  check_left();
}

// A node leaves when it has the last results. It comes on both channels, behind everything else
// that this node gets from it, but not behind what others send: so only who still waits for that
// very node has lost something.
void Lane::check_left() {
  for (const auto& [f, seat] : seats_) {
    if (leaves_.empty() || seat.member().outbox().empty() || seat.lineage().finished) continue;
    for (int node : seat.waits_for())
      if (has_left(node))
        return desk_.fail(
            {Outcome::Kind::peer_lost, node,
             "node " + std::to_string(node) + " left before training had finished, " + phase()});
  }
}

bool Lane::has_left(int node) const {
  const auto found = leaves_.find(node);
  return found != leaves_.end() && found->second == 2;
}

bool Lane::finished() const {
  return std::all_of(seats_.begin(), seats_.end(),
                     [](const auto& s) { return s.second.lineage().finished; });
}

size_t Lane::payloads(int fragment) const {
  const auto found = bodies_.find(fragment);
  return found == bodies_.end() ? 0 : found->second.size();
}

std::string Lane::phase() const {
  for (const auto& [f, seat] : seats_)
    if (!seat.member().outbox().empty())
      return "while this node waited for fragment " + std::to_string(f) + ", version " +
             std::to_string(seat.lineage().version + 1);
  return "while this node was training";
}

// --- actions

void Lane::perform(Seat& seat, Actions actions, Micros now) {
  for (const Action& action : actions) {
    if (watch_) watch_(seat, action);
    std::visit([&](const auto& a) { act(seat, a, now); }, action);
  }
  sweep(seat);
  publish_status(seat);
}

void Lane::act(Seat& seat, const Send& action, Micros now) {
  if (action.to == kCoordinator) return to_coordinator(action.message, now);
  send(action.to, action.message, body_of(seat, action.message));
}

void Lane::send(int to, const Message& message, const Body& body) {
  if (std::holds_alternative<Remind>(message.body)) asked_.try_emplace(to, ticked_);
  const SharedBytes& bytes = body.bytes ? body.bytes : nothing();
  const Channel channel =
      bytes->empty() && !keeps_order(message) ? Channel::control : Channel::bulk;
  send_(to, channel, encode({message, body.layout}, run_, *bytes), bytes);
}

// What goes beside a message: the payload that its handles name, and for STATE the numbers of now.
Body Lane::body_of(const Seat& seat, const Message& message) {
  const int f = seat.fragment();
  if (std::holds_alternative<State>(message.body)) {
    Writer writer;
    writer.raw(bytes_of(as_const(desk_.anchor(f))));
    Body body;
    body.layout.values_bytes = writer.view().size();
    if (count_of(momentum(f)) > 0) writer.raw(bytes_of(as_const(momentum(f))));
    body.layout.side_bytes = writer.view().size() - body.layout.values_bytes;
    body.bytes = std::make_shared<const Bytes>(writer.take());
    return body;
  }
  return std::visit(
      [&](const auto& b) -> Body {
        if constexpr (requires { b.values; }) {
          const uint64_t handle = handle_of(b);
          return handle ? bodies_.at(f).at(handle) : Body{};
        }
        return {};
      },
      message.body);
}

Values Lane::momentum(int f) {
  const auto found = momentum_.find(f);
  const Fragment& fragment = options_.table.fragments[f];
  if (found == momentum_.end()) return values_at(nullptr, fragment.type, 0);
  return values_at(found->second.data(), fragment.type, fragment.count);
}

std::optional<SideData> Lane::merged_side(const Seat& seat, const Close& close, bool& ok) const {
  std::vector<SideData> parts;
  ok = true;
  for (const Contribution& c : close.contributions) {
    const bool late = c.at + 1 < close.version;
    if (!c.side || late) continue;
    auto side = side_in(bodies_.at(seat.fragment()).at(c.side.handle));
    ok = ok && side.has_value();
    if (side) parts.push_back(std::move(*side));
  }
  if (!ok || parts.empty()) return std::nullopt;
  auto merged = merge(parts, close.mode == Mode::delta ? options_.statistics : StatsAtSync::merge);
  ok = merged.has_value();
  return merged;
}

// The owner's arithmetic: the mean of what was contributed, and the merged side data. The lineage
// moves on here before the result is published.
void Lane::act(Seat& seat, const CloseRound& action, Micros now) {
  Close close = action.close;
  const int f = seat.fragment();
  const auto mean = mean_of(seat, close);
  if (!mean) return;
  const auto abstains = [](const Contribution& c) { return c.weight == 0; };
  if (!mean->empty() &&
      std::all_of(close.contributions.begin(), close.contributions.end(), abstains))
    close.contributions.front().weight = kRestWeight;
  bool side_ok = true;
  const auto side = merged_side(seat, close, side_ok);
  if (!side_ok)
    return desk_.fail({Outcome::Kind::mismatch, -1, "nodes sent side data of different models"});
  const Body body = make_body(*mean, side ? &*side : nullptr);
  const Payload payload{next_handle_++};
  Result named;
  name_payloads(named, body.layout, payload);
  bodies_[f][payload.handle] = body;
  const uint64_t after = compute(seat, close.mode, body);
  for (int node : close.skipped) desk_.count([&](Ledger& l) { l.skip(node); });
  Actions actions = seat.publish(close, after, named.values, named.side, now, coming_[f].norms);
  averager_.publish(f, seat.lineage().version, seat.lineage().chain);
  perform(seat, std::move(actions), now);
}

// Empty where there is nothing to bring; nothing after a failure.
std::optional<Bytes> Lane::mean_of(const Seat& seat, const Close& close) {
  const auto& bodies = bodies_[seat.fragment()];
  std::vector<Averager::Term> terms;
  std::vector<int> nodes;
  bool last = true;
  for (const Contribution& c : close.contributions) {
    last = last && c.finished;
    if (c.weight == 0 || !c.values) continue;
    terms.push_back({values_in(bodies.at(c.values.handle)), c.weight, c.squared_norm});
    nodes.push_back(c.node);
  }
  size_t bad = 0;
  auto mean =
      averager_.mean(seat.fragment(), close.version - 1, seat.lineage().chain, terms, last, bad);
  if (const double forgotten = averager_.take_forgotten(); forgotten > 0)
    desk_.count([&](Ledger& l) { l.decayed_squared_norm += forgotten; });
  if (!mean) refuse(nodes[bad], "numbers that are no code");
  return mean;
}

void Lane::act(Seat& seat, const ApplyResult& action, Micros now) {
  const Result& r = action.result;
  const uint64_t handle = handle_of(r);
  const Body body = handle ? bodies_.at(seat.fragment()).at(handle) : Body{};
  const uint64_t after = compute(seat, r.mode, body);
  perform(seat, seat.applied(r, after, now), now);
}

// Prepares the news of a result; the hash of what it gives.
uint64_t Lane::compute(const Seat& seat, Mode mode, const Body& body) {
  const int f = seat.fragment();
  Coming& coming = coming_[f];
  coming = {body, {}};
  if (body.layout.values_bytes == 0) return 0;
  const ConstValues mean = averager_.numbers(f, values_in(body));
  if (bytes_of(mean).empty()) {
    desk_.fail({Outcome::Kind::mismatch, -1, "a result's numbers are no code"});
    return 0;
  }
  if (mode == Mode::gradient) return hash_of(mean);
  const Fragment& fragment = options_.table.fragments[f];
  coming.anchor.resize(fragment.bytes());
  const Values next = values_at(coming.anchor.data(), fragment.type, fragment.count);
  copy(as_const(desk_.anchor(f)), next);
  if (f == 0 && seat.owns()) coming.norms = {squared_norm(mean), squared_norm(as_const(next))};
  move_anchor(f, values_in(body), mean, next);
  return hash_of(as_const(next));
}

void Lane::move_anchor(int f, ByteSpan result, ConstValues mean, Values anchor) {
  OuterConfig outer = outer_for(options_.outer, options_.codec.kind, averager_.is_plain(f, result));
  if (outer.lr == kAutoLr) outer.lr = averager_.gain_in(f, result);
  outer_step(outer, mean, anchor, momentum(f));
}

void Lane::act(Seat& seat, const Advanced& action, Micros) {
  const int f = seat.fragment();
  const Result& r = action.result;
  Coming coming = std::exchange(coming_[f], {});
  desk_.count([&](Ledger& l) {
    ++l.rounds;
    for (const RosterEntry& e : r.roster)
      if (e.node == options_.self.node && e.incarnation == options_.self.incarnation)
        l.applied_at(e.age, e.samples);
  });
  const Version back = options_.views ? options_.policy.staleness + 1 : 0;
  forget_residuals(f, std::max(r.stable, r.version - back));
  Moved moved{r, action.own, {}, side_in(coming.body)};
  if (r.mode == Mode::gradient || options_.tells_means) {
    moved.body = coming.body;
    if (coming.body.bytes && coming.body.layout.values_bytes > 0)
      moved.body.layout.values_bytes = averager_.code_in(f, values_in(coming.body)).size();
  }
  desk_.set_coding(averager_.costs());
  desk_.tell(f, std::move(moved), std::move(coming.anchor));
}

void Lane::act(Seat& seat, const AdoptState& action, Micros now) {
  const int f = seat.fragment();
  const Body body = bodies_.at(f).at(action.state.anchor.handle);
  Coming& coming = coming_[f];
  const auto bytes = ByteSpan(*body.bytes);
  coming.anchor = copy_of(bytes.first(body.layout.values_bytes));
  const ByteSpan outer = bytes.subspan(body.layout.values_bytes);
  if (!outer.empty()) std::copy(outer.begin(), outer.end(), momentum_.at(f).begin());
  perform(seat, seat.adopted(action.state, now), now);
}

void Lane::act(Seat& seat, const Adopted& action, Micros) {
  const int f = seat.fragment();
  Coming coming = std::exchange(coming_[f], {});
  Replaced replaced{action.version, seat.lineage(), action.change.applied, {}};
  for (const Contribution& c : action.change.restored)
    replaced.restored.emplace_back(c, c.values ? bodies_.at(f).at(c.values.handle) : Body{});
  desk_.count([&](Ledger& l) {
    for (const Contribution& c : action.change.applied) l.applied.add(c.samples);
    for (const Contribution& c : action.change.restored) l.restored.add(c.samples);
  });
  desk_.tell(f, std::move(replaced), std::move(coming.anchor));
}

void Lane::act(Seat& seat, const Returned& action, Micros) {
  desk_.count([&](Ledger& l) {
    const bool dropped = action.reason == ReturnReason::dropped;
    (dropped ? l.dropped : l.returned).add(action.contribution.samples);
  });
  desk_.tell(seat.fragment(), GivenBack{action.contribution, action.reason});
}

void Lane::act(Seat&, const Report& action, Micros) {
  if (action.kind == Report::Kind::mismatch) desk_.count([](Ledger& l) { ++l.mismatches; });
  desk_.report(action);
}

void Lane::act(Seat&, const Disagreement& action, Micros) {
  desk_.fail({Outcome::Kind::mismatch, action.node, action.why});
}

// --- what is left behind

void Lane::forget_residuals(int f, Version oldest) {
  const double lost = averager_.forget(f, oldest);
  if (lost > 0) desk_.count([&](Ledger& l) { l.lost_squared_norm += lost; });
}

void Lane::sweep(const Seat& seat) {
  auto& bodies = bodies_[seat.fragment()];
  if (bodies.empty()) return;
  std::set<uint64_t> live;
  seat.each_payload([&](const Payload& p) { live.insert(p.handle); });
  std::erase_if(bodies, [&](const auto& entry) { return !live.contains(entry.first); });
}

// Those by which a busy node abstained.
void Lane::count_abstentions(const Seat& seat) {
  uint64_t& counted = counted_[seat.fragment()];
  for (; counted < seat.member().made(); ++counted)
    desk_.count([](Ledger& l) { l.contributed.add(0); });
}

void Lane::publish_status(const Seat& seat) {
  count_abstentions(seat);
  Desk::Status status;
  status.called = seat.called();
  status.ready = seat.ready();
  status.open = !seat.member().outbox().empty();
  status.offered = seat.member().offered();
  status.version = seat.lineage().version;
  desk_.set_status(seat.fragment(), status, seat.waits_for());
}

}  // namespace hybridsync
