#include "hybridsync/decide/seat.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "hybridsync/decide/planted.h"

namespace hybridsync {
namespace {

std::string place(int fragment, Version version) {
  return "fragment " + std::to_string(fragment) + ", version " + std::to_string(version);
}

void add(std::vector<int>& nodes, int node) {
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), node);
  if (at == nodes.end() || *at != node) nodes.insert(at, node);
}

}  // namespace

Seat::Seat(int fragment, Process self, Policy policy, Schedule schedule)
    : fragment_(fragment),
      self_(self),
      policy_(policy),
      member_(self, policy, schedule),
      owner_(fragment, self.node, policy, schedule) {}

int Seat::owner() const {
  const auto f = static_cast<size_t>(fragment_);
  return f < view_.owners.size() ? view_.owners[f] : -1;
}

bool Seat::is_blank() const {
  return ready_epoch_ == 0 && lacks_anchor() && !planted(Bug::blank_joins);
}

void Seat::send(int to, MessageBody body, Actions& out) const {
  assert(to != self_.node);
  out.push_back(Send{to, Message{self_, view_.epoch, fragment_, std::move(body)}});
}

// --- timers

// It runs for the oldest one: results that settle younger ones do not put it off.
void Seat::arm_remind(Micros now) {
  if (member_.outbox().empty()) return remind_at_.reset();
  const uint64_t oldest = member_.outbox().front().sequence;
  if (remind_at_ && reminds_of_ == oldest) return;
  reminds_of_ = oldest;
  reminders_ = 0;
  remind_at_ = now + policy_.remind_pause(reminders_);
}

// A round that has been waiting for long: the first CALL may have been lost, and who is missing may
// itself wait, in another fragment.
void Seat::call_again(Actions& out) {
  if (owner_.inbox().empty() || lineage().mode == Mode::gradient) return;
  for (int node : owner_.missing()) {
    if (node == self_.node) called_ = true;
    if (node != self_.node) send(node, Call{lineage().version}, out);
  }
}

void Seat::arm_retry(Micros now) { retry_at_ = now + policy_.remind_pause(retries_); }

std::optional<Micros> Seat::due(Timer timer) const {
  if (timer == Timer::remind) return ready_ ? remind_at_ : std::nullopt;
  if (timer == Timer::retry) return retry_at_;
  return ready_ ? close_at_ : std::nullopt;
}

std::optional<Micros> Seat::next_due() const {
  std::optional<Micros> next;
  for (Timer timer : kTimers)
    if (const auto at = due(timer); at && (!next || *at < *next)) next = at;
  return next;
}

Actions Seat::tick(Micros now) {
  Actions out;
  for (Timer timer : kTimers) {
    const auto at = due(timer);
    if (!at || *at > now) continue;
    Actions more = fire(timer, now);
    std::move(more.begin(), more.end(), std::back_inserter(out));
  }
  return out;
}

Actions Seat::fire(Timer timer, Micros now) {
  Actions out;
  if (timer == Timer::close) decide(now, out);
  if (timer == Timer::remind) remind(now, out);
  if (timer == Timer::retry) ask_again(now, out);
  return out;
}

void Seat::remind(Micros now, Actions& out) {
  if (!ready_) return;
  if (owns()) call_again(out);
  for (Contribution c : member_.resend()) {
    if (owns()) break;
    c.values = c.side = {};
    send(owner(), Remind{c}, out);
  }
  remind_at_.reset();
  if (!member_.outbox().empty()) remind_at_ = now + policy_.remind_pause(++reminders_);
}

void Seat::ask_again(Micros now, Actions& out) {
  retry_at_.reset();
  ++retries_;
  if (target_) return reached(now, out);
  if (mending_) return fetch(owner(), true, now, out);
  if (ready_) return fetch(owner(), false, now, out);
  if (!is_member()) return fetch(owner(), false, now, out);
  if (owns()) return arm_retry(now);
  send_last(out);
  arm_retry(now);
}

// --- views

Last Seat::last() const {
  Epoch epoch = ready_epoch_;
  if (planted(Bug::learner_votes) && epoch == 0) epoch = view_.epoch;
  if (planted(Bug::by_result_epoch)) epoch = member_.log().empty() ? 0 : member_.log().back().epoch;
  return {epoch, lineage().version, lineage().chain};
}

void Seat::send_last(Actions& out) const { send(owner(), last(), out); }

Actions Seat::begin(const View& view, Micros now) {
  view_ = view;
  ready_ = true;
  ready_epoch_ = view.epoch;
  heard_ = now;
  if (owns()) owner_.open(view_, lineage());
  return {};
}

Actions Seat::install(const View& view, Micros now) {
  Actions out;
  if (view.epoch <= view_.epoch) return out;
  view_ = view;
  ready_ = establishing_ = mending_ = called_ = false;
  target_.reset();
  lasts_.clear();
  subscribers_.clear();
  owner_.open(View{}, lineage());
  retries_ = 0;
  remind_at_.reset();
  close_at_.reset();
  if (planted(Bug::forget_outbox)) member_.clear_outbox();
  std::erase_if(early_, [&](const Heard& h) { return h.epoch < view.epoch; });
  if (!is_member()) {
    if (owner() != self_.node) fetch(owner(), false, now, out);
    return out;
  }
  if (!owns()) {
    send_last(out);
    arm_retry(now);
    return out;
  }
  lasts_.push_back({self_, view.epoch, last()});
  for (const Heard& h : early_)
    if (h.epoch == view.epoch && view.has(h.from)) lasts_.push_back(h);
  early_.clear();
  arm_retry(now);
  collect(now, out);
  return out;
}

void Seat::handle(const Last& last, const Message& m, Micros now, Actions& out) {
  if (m.epoch > view_.epoch) {
    std::erase_if(early_, [&](const Heard& h) { return h.from.node == m.from.node; });
    early_.push_back({m.from, m.epoch, last});
    return;
  }
  if (!owns() || !view_.has(m.from)) return;
  if (ready_) return send(m.from.node, Start{lineage().version, lineage().chain}, out);
  std::erase_if(lasts_, [&](const Heard& h) { return h.from == m.from; });
  lasts_.push_back({m.from, m.epoch, last});
  collect(now, out);
}

// With LAST from everybody, the greatest lineage is the one that goes on.
void Seat::collect(Micros now, Actions& out) {
  if (lasts_.size() < view_.members.size() || target_) return;
  const auto rank = [](const Heard& h) {
    const Epoch epoch = planted(Bug::by_version) ? 0 : h.last.ready_epoch;
    return std::tuple(epoch, h.last.version, -h.from.node);
  };
  const Heard best =
      *std::max_element(lasts_.begin(), lasts_.end(),
                        [&](const Heard& a, const Heard& b) { return rank(a) < rank(b); });
  get_to({best.from.node, best.last.version, best.last.chain}, now, out);
}

void Seat::get_to(const Target& target, Micros now, Actions& out) {
  target_ = target;
  retries_ = 0;
  reached(now, out);
}

// On the way to the target, or there.
void Seat::reached(Micros now, Actions& out) {
  if (!target_) return;
  if (lineage().chain != target_->chain || is_blank()) {
    // The owner itself may be the one with the greatest lineage only by being there.
    if (target_->node == self_.node) return;
    return fetch(target_->node, lineage().version >= target_->version, now, out);
  }
  if (!owns()) return become_ready(now, out);
  establishing_ = true;
  arm_retry(now);
  send(kCoordinator, Establish{}, out);
}

void Seat::handle(const Established& answer, const Message&, Micros now, Actions& out) {
  if (!establishing_ || answer.refused) return;
  become_ready(now, out);
}

void Seat::become_ready(Micros now, Actions& out) {
  ready_ = true;
  ready_epoch_ = view_.epoch;
  establishing_ = false;
  target_.reset();
  retry_at_.reset();
  retries_ = reminders_ = 0;
  if (owns()) {
    owner_.open(view_, lineage());
    out.push_back(Report{Report::Kind::started, self_.node,
                         place(fragment_, lineage().version) + ": epoch " +
                             std::to_string(view_.epoch) + " begins"});
    for (const Process& p : view_.members)
      if (p != self_) send(p.node, Start{lineage().version, lineage().chain}, out);
  }
  for (const Contribution& c : member_.resend()) offer(c, now, out);
  arm_remind(now);
  decide(now, out);
}

void Seat::handle(const Start& start, const Message& m, Micros now, Actions& out) {
  if (m.from.node != owner() || owns() || !is_member()) return;
  if (!ready_) return get_to({m.from.node, start.version, start.chain}, now, out);
  // What is missing is probably on its way.
  if (start.version > lineage().version && !retry_at_) arm_retry(now);
}

// --- catching up

void Seat::fetch(int node, bool state, Micros now, Actions& out) {
  send(node, Fetch{lineage().version, lineage().chain, state || is_blank()}, out);
  arm_retry(now);
}

// Who only follows has nothing to be reminded of: it asks by itself whether it has missed anything.
void Seat::follow(Micros now) {
  if (!is_member() && view_.epoch > 0 && owner() != self_.node) arm_retry(now);
}

void Seat::handle(const Fetch& fetch, const Message& m, Micros, Actions& out) {
  const bool outsider = !view_.has(m.from);
  if (outsider && !ready_) return;
  if (outsider && owns()) add(subscribers_, m.from.node);
  if (!fetch.state && fetch.chain == lineage().chain) return;
  const auto results = fetch.state ? std::nullopt : member_.results_after(fetch.have, fetch.chain);
  if (!results) return send(m.from.node, State{lineage(), {}, {}, {}}, out);
  for (const Result& r : *results) send(m.from.node, r, out);
}

void Seat::handle(const State& state, const Message& m, Micros, Actions& out) {
  const Version version = state.lineage.version;
  const bool fills = is_blank() && state.lineage.anchor != 0;
  if (state.lineage.chain == lineage().chain && !mending_ && !fills) return;
  const bool on_the_way = target_ && m.from.node == target_->node && version >= target_->version;
  const bool following = !is_member() && view_.has(m.from) && retry_at_;
  const bool behind = ready_ && m.from.node == owner() && retry_at_ &&
                      (version > lineage().version || (mending_ && version == lineage().version));
  if (on_the_way || following || behind) out.push_back(AdoptState{state});
}

Actions Seat::adopted(const State& state, Micros now) {
  Actions out;
  const Member::Change change = member_.adopt(state.lineage);
  if (change.lost)
    out.push_back(Report{Report::Kind::lost, self_.node,
                         place(fragment_, state.lineage.version) +
                             ": results that this node had are gone, and so are contributions in "
                             "them that it no longer kept"});
  out.push_back(Adopted{state.lineage.version, change});
  mending_ = false;
  retry_at_.reset();
  retries_ = 0;
  if (target_) target_ = Target{target_->node, state.lineage.version, state.lineage.chain};
  reached(now, out);
  arm_remind(now);
  follow(now);
  return out;
}

void Seat::handle(const Result& r, const Message& m, Micros now, Actions& out) {
  const bool from_owner = m.from.node == owner();
  const bool follows =
      target_ ? m.from.node == target_->node : (ready_ && from_owner) || !is_member();
  if (!follows && !planted(Bug::no_fence)) return;
  if (r.version <= lineage().version) return;
  if (lacks_anchor()) return arm_retry(now);
  const bool next = r.version == lineage().version + 1 && r.chain == lineage().chain;
  if (next || planted(Bug::no_gap_check)) return out.push_back(ApplyResult{r});
  if (retry_at_) return;  // asked already
  if (r.version == lineage().version + 1 && ready_) {
    mending_ = true;
    out.push_back(Report{Report::Kind::mismatch, self_.node,
                         place(fragment_, r.version) +
                             ": the result is based on other parameters than this node's; it "
                             "takes those of node " +
                             std::to_string(owner())});
  }
  if (m.from.node != self_.node) fetch(m.from.node, mending_, now, out);
}

Actions Seat::applied(const Result& r, uint64_t after, Micros now) {
  Actions out;
  const bool wrong = r.weight > 0 && after != r.after;
  if (wrong && r.mode == Mode::gradient) {
    out.push_back(Disagreement{owner(), place(fragment_, r.version) +
                                            ": this node computed other numbers than the owner "
                                            "(the hashes differ)"});
    return out;
  }
  // A call outlives its round: a slow node gives what it has at its next step boundary. After the
  // last round nobody is called any more.
  out.push_back(Advanced{r, member_.extend(r, owns())});
  if (r.finished) called_ = false;
  retry_at_.reset();
  retries_ = 0;
  if (wrong) {
    mending_ = true;
    out.push_back(Report{Report::Kind::mismatch, self_.node,
                         place(fragment_, r.version) +
                             ": this node computed other numbers than the owner (the hashes "
                             "differ); it takes those of node " +
                             std::to_string(owner())});
    fetch(owner(), true, now, out);
  }
  reached(now, out);
  abstain_if_busy(now, out);  // the call may have overtaken the result
  arm_remind(now);
  follow(now);
  return out;
}

// --- rounds

Actions Seat::set_anchor(uint64_t hash, Micros now) {
  Actions out;
  member_.set_anchor(hash);
  for (const Contribution& c : owner_.inbox())
    if (c.anchor_hash != 0 && c.anchor_hash != hash)
      out.push_back(Disagreement{c.node, place(fragment_, lineage().version) + ": node " +
                                             std::to_string(c.node) +
                                             " has other parameters than node " +
                                             std::to_string(self_.node) + " (the hashes differ)"});
  if (!out.empty()) return out;
  if (retry_at_) ask_again(now, out);
  decide(now, out);
  return out;
}

bool Seat::fenced(const Message& m) const {
  if (m.epoch == view_.epoch) return false;
  if (std::holds_alternative<Last>(m.body) && m.epoch > view_.epoch) return false;
  const bool open = std::holds_alternative<Contribution>(m.body) ||
                    std::holds_alternative<Result>(m.body) ||
                    std::holds_alternative<Return>(m.body);
  return !(open && planted(Bug::no_fence));
}

Actions Seat::on(const Message& m, Micros now) {
  if (const auto* v = std::get_if<ViewMessage>(&m.body)) return install(v->view, now);
  Actions out;
  if (m.fragment != fragment_ || fenced(m)) return out;
  std::visit([&](const auto& body) { handle(body, m, now, out); }, m.body);
  return out;
}

Actions Seat::contribute(const Contribution& draft, Micros now) {
  Actions out;
  contribute(draft, now, out);
  decide(now, out);
  return out;
}

void Seat::contribute(const Contribution& draft, Micros now, Actions& out) {
  assert(may_contribute(draft.at));
  called_ = false;
  offer(member_.contribute(draft), now, out);
  arm_remind(now);
}

// To the owner; decide() is for the caller, once everything is offered.
void Seat::offer(const Contribution& c, Micros now, Actions& out) {
  if (!owns()) return send(owner(), c, out);
  answer(owner_.on(c, member_, now), c, out);
}

void Seat::handle(const Contribution& c, const Message& m, Micros now, Actions& out) {
  if (!ready_ || !owns()) return;
  const bool known = view_.has(m.from) || planted(Bug::no_fence);
  if (!known || !view_.find(m.from.node) || c.node != m.from.node ||
      c.incarnation != m.from.incarnation)
    return;
  answer(owner_.on(c, member_, now), c, out);
  decide(now, out);
}

void Seat::answer(const Owner::Verdict& verdict, const Contribution& c, Actions& out) {
  const auto* disagrees = std::get_if<Owner::Disagrees>(&verdict);
  if (disagrees) return out.push_back(Disagreement{c.node, disagrees->why});
  const bool settled = std::holds_alternative<Owner::Settled>(verdict);
  if (settled && c.node != self_.node)
    return send(c.node, Start{lineage().version, lineage().chain}, out);
  const auto* refused = std::get_if<Owner::Refused>(&verdict);
  if (!refused) return;
  if (c.node == self_.node) return take_back(c.sequence, refused->reason, out);
  send(c.node, Return{c.sequence, refused->reason}, out);
  if (c.has < lineage().version) send(c.node, Start{lineage().version, lineage().chain}, out);
  if (refused->reason != ReturnReason::mismatch) return;
  out.push_back(Report{Report::Kind::mismatch, c.node,
                       place(fragment_, lineage().version) + ": node " + std::to_string(c.node) +
                           " contributed on top of other parameters; it gets those of this node"});
  send(c.node, State{lineage(), {}, {}, {}}, out);
}

void Seat::handle(const Remind& remind, const Message& m, Micros now, Actions& out) {
  if (!ready_ || !owns() || !view_.has(m.from)) return;
  const Contribution& c = remind.contribution;
  const Owner::Verdict verdict = owner_.judge(c, member_);
  if (std::holds_alternative<Owner::Accepted>(verdict))
    return send(m.from.node, Resend{c.sequence}, out);
  answer(verdict, c, out);
  if (std::holds_alternative<Owner::Waits>(verdict)) call_again(out);
  decide(now, out);
}

void Seat::handle(const Resend& resend, const Message& m, Micros now, Actions& out) {
  if (!ready_ || m.from.node != owner()) return;
  for (const Contribution& c : member_.resend())
    if (c.sequence == resend.sequence) offer(c, now, out);
}

void Seat::handle(const Call& call, const Message& m, Micros now, Actions& out) {
  if (!ready_ || m.from.node != owner() || call.version < lineage().version) return;
  if (!member_.may_contribute(call.version)) return;  // it is there, or on its way
  called_ = true;
  abstain_if_busy(now, out);
}

void Seat::abstain_if_busy(Micros now, Actions& out) {
  if (!busy_ || !called_ || !may_contribute(lineage().version)) return;
  Contribution nothing;
  nothing.base = nothing.at = lineage().version;
  nothing.anchor_hash = lineage().mode == Mode::delta ? lineage().anchor : 0;
  contribute(nothing, now, out);
}

Actions Seat::set_busy(bool busy, Micros now) {
  Actions out;
  busy_ = busy;
  abstain_if_busy(now, out);
  decide(now, out);
  return out;
}

void Seat::handle(const Return& back, const Message& m, Micros now, Actions& out) {
  if (!ready_ || m.from.node != owner()) return;
  take_back(back.sequence, back.reason, out);
  if (back.reason == ReturnReason::mismatch) mending_ = true, arm_retry(now);
  arm_remind(now);
}

void Seat::take_back(uint64_t sequence, ReturnReason reason, Actions& out) {
  const auto c = member_.take_back(sequence);
  if (c && !planted(Bug::lose_returned)) out.push_back(Returned{*c, reason});
}

bool Seat::may_skip(Micros now) const { return now - heard_ <= policy_.suspect_after; }

void Seat::decide(Micros now, Actions& out) {
  close_at_.reset();  // also of a round that was another epoch's
  if (!ready_ || !owns() || lacks_anchor()) return;
  CloseDecision decision = owner_.decide(lineage(), now, may_skip(now));
  if (const auto* call = std::get_if<CallFor>(&decision)) {
    owner_.called(now);
    for (int node : call->missing)
      if (node != self_.node) send(node, Call{lineage().version}, out);
    if (std::count(call->missing.begin(), call->missing.end(), self_.node)) {
      called_ = true;
      abstain_if_busy(now, out);
    }
    decision = owner_.decide(lineage(), now, may_skip(now));
  }
  if (const auto* wait = std::get_if<WaitFor>(&decision)) {
    close_at_ = wait->until;
    if (wait->permission) close_at_ = now + policy_.heartbeat;
  }
  const auto* close = std::get_if<CloseNow>(&decision);
  if (!close) return;
  for (int node : close->skipped)
    out.push_back(Report{Report::Kind::skipped, node,
                         place(fragment_, lineage().version + 1) + ": node " +
                             std::to_string(node) + " was skipped (" + close->why + ")"});
  out.push_back(CloseRound{owner_.close(lineage(), *close)});
}

Actions Seat::publish(const Close& close, uint64_t after, Payload values, Payload side, Micros now,
                      const SquaredNorms& norms) {
  Actions out;
  const Published published =
      owner_.publish(close, lineage(), view_.epoch, after, values, side, norms);
  const Result& r = published.result;
  const auto report = [&](Report::Kind kind, const std::string& text) {
    if (!text.empty()) out.push_back(Report{kind, self_.node, text});
  };
  report(Report::Kind::stale, published.stale);
  report(Report::Kind::interval, published.interval);
  for (const Process& p : view_.members)
    if (p != self_) send(p.node, r, out);
  for (int node : subscribers_) send(node, r, out);
  if (planted(Bug::close_twice) && r.version % 2 == 0) return out;
  Actions more = applied(r, after, now);
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

Actions Seat::reconnected(int node, Micros now) {
  Actions out;
  if (ready_ && node == owner() && !owns())
    for (const Contribution& c : member_.resend()) offer(c, now, out);
  if (!ready_ && retry_at_) ask_again(now, out);
  return out;
}

std::vector<int> Seat::waits_for() const {
  if (ready_) return owns() ? owner_.missing() : std::vector<int>{owner()};
  if (!owns() || !is_member()) return {owner()};
  const bool asked = establishing_ || (target_ && target_->node == self_.node);
  if (asked) return {kCoordinator};
  if (target_) return {target_->node};
  std::vector<int> nodes;
  for (const Process& p : view_.members)
    if (std::none_of(lasts_.begin(), lasts_.end(), [&](const Heard& h) { return h.from == p; }))
      nodes.push_back(p.node);
  return nodes;
}

}  // namespace hybridsync
