#include "hybridsync/sync/rounds.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/math/outer.h"

namespace hybridsync {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(200);

SharedBytes make_body(ConstValues values, bool with_values, const SideData* side,
                      BodyLayout& layout) {
  Writer writer;
  if (with_values) writer.raw(bytes_of(values));
  layout.values_bytes = writer.view().size();
  if (side) write(*side, writer);
  layout.side_bytes = writer.view().size() - layout.values_bytes;
  return std::make_shared<const Bytes>(writer.take());
}

std::string name(int fragment, Version version) {
  return "fragment " + std::to_string(fragment) + ", version " + std::to_string(version);
}

std::optional<SideData> side_in(const SharedBytes& bytes, const BodyLayout& layout) {
  if (layout.side_bytes == 0) return std::nullopt;
  Reader reader(ByteSpan(*bytes).subspan(layout.values_bytes));
  return read_side_data(reader);
}

}  // namespace

Rounds::Rounds(Options options, std::unique_ptr<Exchange> exchange, std::vector<Values> agreed)
    : options_(std::move(options)),
      run_(run_hash(options_.run_id)),
      exchange_(std::move(exchange)),
      mine_(options_.table.of_lane(options_.lane)) {
  for (int f : mine_) {
    const Fragment& fragment = options_.table.fragments[f];
    State state{fragment, Member(f, options_.node, options_.schedule), {}, agreed[f], {}, {}};
    if (options_.table.owner(f) == options_.node)
      state.owner.emplace(f, options_.table.nodes, options_.schedule);
    if (options_.outer.momentum != 0) state.momentum.resize(fragment.bytes());
    states_.emplace(f, std::move(state));
  }
  thread_ = std::thread([this] { run(); });
}

Rounds::~Rounds() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  exchange_->wake();
  thread_.join();
  say_leave();
}

void Rounds::say_leave() {
  const auto nothing = std::make_shared<const Bytes>();
  for (int node = 0; node < options_.table.nodes; ++node)
    for (Channel channel : {Channel::control, Channel::bulk})
      if (node != options_.node)
        exchange_->send(node, channel, header(MessageKind::leave, 0, 0, {}, {}), nothing);
}

void Rounds::contribute(int fragment, const Contribution& draft, ConstValues values,
                        const SideData* side) {
  Draft d{fragment, draft, {}};
  d.body.bytes = make_body(values, draft.weight > 0, side, d.body.layout);
  {
    std::lock_guard lock(mutex_);
    pending_[fragment] = {draft.base, {}};
    drafts_.push_back(std::move(d));
  }
  exchange_->wake();
}

Outcome Rounds::wait(const Patience& patience, const std::function<Outcome()>& healthy) {
  Waiter waiter(patience);
  const auto describe = [&] {  // called with the lock held
    const auto& [fragment, pending] = *pending_.begin();
    return Waiting{0, pending.nodes, name(fragment, pending.version)};
  };
  std::unique_lock lock(mutex_);
  while (!pending_.empty() && failure_.ok()) {
    if (waiter.check(describe) != Waiter::Verdict::go_on)
      return {Outcome::Kind::interrupted, -1, "interrupted while waiting for " + describe().what};
    if (Outcome health = healthy(); !health.ok()) return health;
    changed_.wait_for(lock, waiter.slice());
  }
  if (!failure_.ok()) return failure_;
  for (auto& [fragment, finished] : arrived_) finished_[fragment] = std::move(finished);
  arrived_.clear();
  return {};
}

void Rounds::run() {
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    take_drafts();
    if (auto event = exchange_->poll(Clock::now() + kPollInterval)) handle(std::move(*event));
  }
}

void Rounds::take_drafts() {
  std::deque<Draft> drafts;
  {
    std::lock_guard lock(mutex_);
    drafts.swap(drafts_);
  }
  for (Draft& d : drafts) {
    State& state = states_.at(d.fragment);
    const Contribution c = state.member.contribute(d.contribution);
    const int owner = options_.table.owner(d.fragment);
    if (owner == options_.node) {
      on_contribution(state, c, std::move(d.body));
      continue;
    }
    Writer fields;
    write(ContributionFields{c, d.body.layout}, fields);
    publish_pending(state);
    send(owner, MessageKind::contribute, state, c.base, fields, d.body.bytes);
  }
  check_left();
}

void Rounds::send(int to, MessageKind kind, const State& state, Version version,
                  const Writer& fields, const SharedBytes& body) {
  const Channel channel = body->empty() ? Channel::control : Channel::bulk;
  exchange_->send(to, channel, header(kind, state.fragment.id, version, fields.view(), *body),
                  body);
}

Bytes Rounds::header(MessageKind kind, int fragment, Version version, ByteSpan fields,
                     ByteSpan body) const {
  Envelope envelope;
  envelope.run = run_;
  envelope.node = static_cast<uint32_t>(options_.node);
  envelope.kind = static_cast<uint8_t>(kind);
  envelope.fragment = static_cast<uint32_t>(fragment);
  envelope.version = static_cast<uint64_t>(version);
  return encode(envelope, fields, body);
}

void Rounds::handle(ExchangeEvent event) {
  if (const auto* lost = std::get_if<PeerLost>(&event)) {
    if (has_left(lost->node) || (!states_.empty() && finished())) return;
    return fail({Outcome::Kind::peer_lost, lost->node,
                 "node " + std::to_string(lost->node) + " is gone (" + lost->why + ") " + phase()});
  }
  on_message(std::move(std::get<Received>(event)));
}

void Rounds::on_message(Received message) {
  const auto bad = [&](const std::string& why) {
    fail({Outcome::Kind::mismatch, message.from,
          "node " + std::to_string(message.from) + " sent what no member sends: " + why});
  };
  const auto decoded = decode(message.header, message.body, {run_, message.from});
  if (const auto* b = std::get_if<BadFrame>(&decoded)) return bad(b->why);
  const Frame& frame = std::get<Frame>(decoded);
  if (frame.envelope.kind == static_cast<uint8_t>(MessageKind::leave))
    return on_leave(message.from);
  const auto found = states_.find(static_cast<int>(frame.envelope.fragment));
  if (found == states_.end()) return bad("a fragment of another lane");
  State& state = found->second;
  auto bytes = std::make_shared<const Bytes>(std::move(message.body));
  if (frame.envelope.kind == static_cast<uint8_t>(MessageKind::contribute)) {
    const auto fields = read_contribution(Reader(frame.fields));
    if (!fields || !state.owner || fields->contribution.node != message.from ||
        !fits(state, fields->body, *bytes))
      return bad("a contribution that does not fit fragment " + std::to_string(state.fragment.id));
    return on_contribution(state, fields->contribution, {bytes, fields->body});
  }
  const auto fields = read_result(Reader(frame.fields));
  if (!fields || options_.table.owner(state.fragment.id) != message.from ||
      !fits(state, fields->body, *bytes))
    return bad("a result that does not fit fragment " + std::to_string(state.fragment.id));
  on_result(state, fields->result, {bytes, fields->body});
}

void Rounds::on_leave(int node) {
  ++leaves_[node];
  check_left();
}

// A node leaves when it has the last results. It comes on both channels, behind everything else
// that this node gets from it, but not behind what others send: so only who still waits for that
// very node has lost something.
void Rounds::check_left() {
  for (const auto& [fragment, state] : states_) {
    if (!state.member.unresolved()) continue;
    for (int node : waited_for(state))
      if (has_left(node))
        return fail(
            {Outcome::Kind::peer_lost, node,
             "node " + std::to_string(node) + " left before training had finished, " + phase()});
  }
}

bool Rounds::has_left(int node) const {
  const auto found = leaves_.find(node);
  return found != leaves_.end() && found->second == 2;
}

std::vector<int> Rounds::waited_for(const State& state) const {
  if (state.owner) return state.owner->missing();
  return {options_.table.owner(state.fragment.id)};
}

bool Rounds::finished() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const auto& s) { return s.second.member.finished(); });
}

bool Rounds::fits(const State& state, const BodyLayout& layout, const Bytes& body) const {
  const bool values = layout.values_bytes == 0 ||
                      layout.values_bytes == static_cast<uint64_t>(state.fragment.bytes());
  return values && layout.side_bytes <= body.size() &&
         layout.values_bytes + layout.side_bytes == body.size();
}

void Rounds::on_contribution(State& state, Contribution c, Body body) {
  const uint64_t handle = next_handle_++;
  if (body.layout.values_bytes > 0) c.values = {handle};
  if (body.layout.side_bytes > 0) c.side = {handle};
  state.bodies[handle] = std::move(body);
  const OwnerAction action = state.owner->on(c);
  publish_pending(state);
  if (const auto* d = std::get_if<Disagree>(&action))
    return fail({Outcome::Kind::mismatch, d->node, d->why});
  if (const auto* decision = std::get_if<Close>(&action)) close(state, *decision);
}

ConstValues Rounds::values_in(const State& state, const Body& body) const {
  auto* data = const_cast<std::byte*>(body.bytes->data());
  return as_const(values_at(data, state.fragment.type, state.fragment.count));
}

std::optional<SideData> Rounds::merged_side(const State& state, const Close& decision,
                                            bool& ok) const {
  std::vector<SideData> parts;
  ok = true;
  for (const Contribution& c : decision.contributions) {
    if (!c.side) continue;
    const Body& body = state.bodies.at(c.side.handle);
    auto side = side_in(body.bytes, body.layout);
    ok = ok && side.has_value();
    if (side) parts.push_back(std::move(*side));
  }
  if (!ok || parts.empty()) return std::nullopt;
  const bool delta = decision.contributions.front().mode == Mode::delta;
  auto merged = merge(parts, delta ? options_.statistics : StatsAtSync::merge);
  ok = merged.has_value();
  return merged;
}

// The owner's arithmetic: the mean of what was contributed, in member order, and the merged side
// data.
void Rounds::close(State& state, const Close& decision) {
  std::vector<ConstValues> terms;
  std::vector<double> weights;
  for (const Contribution& c : decision.contributions) {
    if (c.weight == 0 || !c.values) continue;
    terms.push_back(values_in(state, state.bodies.at(c.values.handle)));
    weights.push_back(c.weight);
  }
  bool side_ok = true;
  const auto side = merged_side(state, decision, side_ok);
  if (!side_ok)
    return fail({Outcome::Kind::mismatch, -1, "nodes sent side data of different models"});
  std::vector<std::byte> mean(state.fragment.bytes());
  const Values values = values_at(mean.data(), state.fragment.type, state.fragment.count);
  if (!terms.empty()) weighted_mean(terms, weights, values);

  Body body;
  body.bytes = make_body(as_const(values), !terms.empty(), side ? &*side : nullptr, body.layout);
  const uint64_t after = apply(state, decision.contributions.front().mode, body).value_or(0);
  const Payload payload{body.layout.values_bytes > 0 ? next_handle_++ : 0};
  const Result result = state.owner->publish(decision, after, payload, {});
  state.bodies.clear();
  Writer fields;
  write(ResultFields{result, body.layout}, fields);
  for (int node = 0; node < options_.table.nodes; ++node)
    if (node != options_.node)
      send(node, MessageKind::result, state, result.version, fields, body.bytes);
  const MemberAction action = state.member.on(result);
  if (const auto* d = std::get_if<Diverged>(&action))
    return fail({Outcome::Kind::mismatch, options_.node, d->why});
  resolve(state, result, body, after);
}

void Rounds::on_result(State& state, const Result& result, const Body& body) {
  const MemberAction action = state.member.on(result);
  if (std::holds_alternative<Ignore>(action)) return;
  if (const auto* d = std::get_if<Diverged>(&action))
    return fail({Outcome::Kind::mismatch, options_.table.owner(state.fragment.id), d->why});
  resolve(state, result, body, apply(state, result.mode, body).value_or(0));
}

// Moves what all nodes agree on; the hash afterwards, or nothing for a round in which everybody
// abstained.
std::optional<uint64_t> Rounds::apply(State& state, Mode mode, const Body& body) {
  if (body.layout.values_bytes == 0) return std::nullopt;
  const ConstValues mean = values_in(state, body);
  if (mode == Mode::gradient) {
    copy(mean, state.agreed);
  } else {
    outer_step(options_.outer, mean, state.agreed,
               values_at(state.momentum.data(), state.fragment.type,
                         state.momentum.empty() ? 0 : state.fragment.count));
  }
  return hash_of(as_const(state.agreed));
}

void Rounds::resolve(State& state, const Result& result, const Body& body, uint64_t after) {
  if (const auto diverged = state.member.applied(result, after))
    return fail({Outcome::Kind::mismatch, options_.table.owner(state.fragment.id), diverged->why});
  std::lock_guard lock(mutex_);
  arrived_[state.fragment.id] = {result, side_in(body.bytes, body.layout)};
  pending_.erase(state.fragment.id);
  changed_.notify_all();
}

void Rounds::publish_pending(const State& state) {
  std::vector<int> nodes = waited_for(state);
  std::lock_guard lock(mutex_);
  const auto found = pending_.find(state.fragment.id);
  if (found != pending_.end()) found->second = {state.member.version() + 1, std::move(nodes)};
}

std::string Rounds::phase() const {
  std::lock_guard lock(mutex_);
  if (pending_.empty()) return "while this node was training";
  const auto& [fragment, pending] = *pending_.begin();
  return "while this node waited for " + name(fragment, pending.version);
}

void Rounds::fail(Outcome outcome) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(outcome);
  changed_.notify_all();
}

}  // namespace hybridsync
