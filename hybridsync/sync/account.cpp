#include "hybridsync/sync/account.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"

namespace hybridsync {

Account::Account(Fragment fragment, int node, int staleness, Schedule schedule, Desk& desk,
                 std::function<void(Values)> round, std::shared_ptr<Coder> coder,
                 const SenderMomentum& momentum)
    : fragment_(fragment),
      node_(node),
      staleness_(staleness),
      schedule_(schedule),
      desk_(desk),
      round_(std::move(round)),
      mode_(schedule.mode(0)),
      interval_(schedule.interval(0)),
      feedback_(coder, fragment) {
  if (schedule.strategy == Strategy::every_step && feedback_.codes())
    gradients_.emplace(std::move(coder), static_cast<size_t>(fragment.count), momentum);
}

Values Account::scratch(std::vector<std::byte>& memory) const {
  if (memory.size() < static_cast<size_t>(fragment_.bytes())) memory.resize(fragment_.bytes());
  return values_at(memory.data(), fragment_.type, fragment_.count);
}

ConstValues Account::numbers(const Body& body) {
  return feedback_.numbers(ByteSpan(*body.bytes).first(body.layout.values_bytes));
}

ConstValues Account::anchor() const {
  auto* data = const_cast<std::byte*>(anchor_.data());
  return as_const(values_at(data, fragment_.type, anchor_.empty() ? 0 : fragment_.count));
}

void Account::set_anchor(ConstValues parameters) {
  copy(parameters, scratch(anchor_));
  anchor_hash_ = hash_of(parameters);
  desk_.set_anchor(fragment_.id, parameters, anchor_hash_);
}

// What the parameters are without progress, as they can hold it.
void Account::expected(Values out) {
  copy(anchor(), out);
  for (const Open& open : open_)
    if (open.body.layout.values_bytes > 0) subtract(as_const(out), numbers(open.body), out);
}

bool Account::may_contribute() const { return may_contribute(desk_.status(fragment_.id)); }

bool Account::may_contribute(const Desk::Status& status) const {
  if (!position_.may_contribute(staleness_now())) return false;
  // A busy node may have abstained on top of this version by itself.
  return status.ready && (position_.version() > status.offered || status.version < status.offered);
}

bool Account::wants_to_contribute(int64_t more) const {
  const Desk::Status status = desk_.status(fragment_.id);
  const bool called = staleness_now() > 0 && status.called;
  return may_contribute(status) && position_.due(interval_, called, more);
}

bool Account::should_answer() const {
  const Desk::Status status = desk_.status(fragment_.id);
  return may_contribute(status) && status.called;
}

bool Account::must_wait(int64_t more) const {
  return position_.must_wait(interval_, staleness_now(), more);
}

bool Account::will_wait(int64_t more) const {
  if (wants_to_contribute(more)) return position_.unresolved() + 1 > staleness_now();
  return must_wait(more);
}

void Account::contribute(ConstValues parameters, bool finished, const SideData* side) {
  assert(mode_ == Mode::delta && !anchor_.empty());
  if (!may_contribute()) return;
  const Values delta = scratch(progress_);
  expected(delta);
  round_(delta);
  subtract(as_const(delta), parameters, delta);
  Contribution c = position_.contribute();
  c.finished = finished;
  c.squared_norm = squared_norm(as_const(delta));
  c.anchor_hash = anchor_hash_;
  // Numbers that are not finite never leave.
  if (!std::isfinite(c.squared_norm)) give_up(c);
  // What codes left out travels with the last contribution, whatever was learned since.
  if (finished && c.weight == 0 && !not_finite_ && feedback_.owes(as_const(delta)))
    c.weight = last_weight_;
  Bytes memory;
  const ByteSpan values = encode(c, delta, memory);
  if (finished) feedback_.end();
  if (c.weight > 0) last_weight_ = c.weight;
  offer(c, values, c.weight > 0 ? side : nullptr);
}

ByteSpan Account::encode(Contribution& c, Values learned, Bytes& memory) {
  if (c.weight == 0) return {};
  if (!feedback_.codes()) return bytes_of(as_const(learned));
  feedback_.coder().set_round(schedule_.coded_rounds(c.at));
  auto code = feedback_.encode(learned, c.finished);
  if (!code) give_up(c);
  memory = std::move(code).value_or(Bytes{});
  return memory;
}

// What was learned since the last contribution cannot be given to anybody; training goes on from
// what is left as soon as there is news.
void Account::give_up(Contribution& c) {
  if (c.weight > 0) {
    desk_.count([&](Ledger& l) { l.lost.add(c.samples); });
    desk_.report({Report::Kind::not_finite, node_,
                  "fragment " + std::to_string(fragment_.id) + " of node " + std::to_string(node_) +
                      " is not finite on version " + std::to_string(c.at) + ": " +
                      std::to_string(c.steps) + " steps are lost, it goes on from the anchor"});
  }
  c.weight = 0;
  c.loss_sum = c.loss_weight = c.squared_norm = 0;
  not_finite_ = true;
}

void Account::contribute_gradient(const Contribution& draft, ConstValues gradient,
                                  const SideData* side) {
  assert(mode_ == Mode::gradient);
  Contribution c = draft;
  c.base = c.at = position_.version();
  (void)position_.contribute();
  Bytes memory;
  ByteSpan values;
  if (c.weight > 0) {
    values = bytes_of(gradient);
    if (gradients_) values = memory = encode(c, std::get<std::span<const float>>(gradient));
  }
  if (c.finished && gradients_) {
    gradients_->end();
    count_forgotten(gradients_->take_forgotten());
  }
  offer(c, values, side);
}

Bytes Account::encode(const Contribution& c, std::span<const float> gradient) {
  const bool coded = schedule_.coded(c.at);
  if (coded) feedback_.coder().set_round(schedule_.coded_rounds(c.at));
  Bytes bytes = coded ? gradients_->encode(gradient) : gradients_->plain(gradient);
  count_forgotten(gradients_->take_forgotten());
  if (gradients_->overflowed())
    desk_.report({Report::Kind::not_finite, node_,
                  "what fragment " + std::to_string(fragment_.id) + " of node " +
                      std::to_string(node_) + " had not sent yet is not finite on version " +
                      std::to_string(c.at) + ": it is dropped"});
  return bytes;
}

void Account::offer(const Contribution& c, ByteSpan values, const SideData* side) {
  Body body = make_body(values, side);
  const uint64_t ticket = desk_.contribute(fragment_.id, c, body);
  open_.push_back({ticket, mode_ == Mode::delta ? std::move(body) : Body{}});
}

Account::Change Account::apply(ConstValues parameters, Values out) {
  Change change;
  mean_ = {};
  const Values progress = scratch(progress_);
  const bool delta = mode_ == Mode::delta && !anchor_.empty();
  const bool restarts = delta && std::exchange(not_finite_, false);
  if (restarts) position_.give_up();
  change.moved = restarts;
  // Right after a contribution there is no progress, whatever rounding says.
  if (delta && (restarts || (position_.at_rest() && feedback_.knows_rest()))) {
    feedback_.rest_after_contribution(progress);
  } else if (delta) {
    expected(progress);
    round_(progress);
    subtract(as_const(progress), parameters, progress);
  }
  const auto news = desk_.take(fragment_.id, delta ? scratch(anchor_) : Values{});
  for (const News& one : news)
    std::visit([&](const auto& n) { take(n, progress, out, change); }, one);
  if (!delta || !change.moved) return change;
  feedback_.move(progress);
  count_forgotten(feedback_.take_forgotten());
  expected(out);
  subtract(as_const(out), as_const(progress), out);
  if (mean_.bytes) change.mean = numbers(mean_);
  return change;
}

void Account::count_forgotten(double squared) {
  if (squared > 0) desk_.count([&](Ledger& l) { l.decayed_squared_norm += squared; });
}

void Account::settle(const std::vector<Contribution>& own) {
  for (const Contribution& c : own) {
    const auto at = std::find_if(open_.begin(), open_.end(),
                                 [&](const Open& o) { return o.ticket == c.ticket; });
    if (at == open_.end()) continue;  // it abstained by itself
    open_.erase(at);
    position_.settle(1);
  }
}

void Account::take_interval(int64_t interval) {
  if (!schedule_.adapts() || fragment_.id == 0) interval_ = interval;
}

void Account::take(const Moved& news, Values, Values out, Change& change) {
  const Result& r = news.result;
  settle(news.own);
  position_.move(r.version);
  if (r.mode == Mode::gradient) {
    if (r.weight > 0) copy(numbers(news.body), out);
    mode_ = r.next_mode;
  } else {
    change.moved = true;
    if (r.weight > 0) anchor_hash_ = r.after;
    if (r.weight > 0 && news.body.bytes) mean_ = news.body;
  }
  take_interval(r.next_interval);
  finished_ = r.finished;
  change.advanced = true;
  change.newest = r;
  change.samples += r.samples;
  change.rounds += r.weight > 0 ? 1 : 0;
  change.age = -1;
  for (const RosterEntry& e : r.roster) {
    if (e.node != node_) continue;
    change.own_samples += e.samples;
    change.age = std::max(change.age, e.age);
  }
  if (news.side) change.side = news.side;
}

void Account::take(const Replaced& news, Values progress, Values, Change& change) {
  settle(news.own);
  position_.move(news.version);
  for (const auto& [c, body] : news.restored) {
    if (body.layout.values_bytes > 0) add(numbers(body), progress);
    position_.take_back(c, false);
  }
  anchor_hash_ = news.lineage.anchor;
  mode_ = news.lineage.mode;
  take_interval(news.lineage.interval);
  finished_ = news.lineage.finished;
  change.moved = true;
}

void Account::take(const GivenBack& news, Values progress, Values, Change& change) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Open& o) { return o.ticket == news.contribution.ticket; });
  if (at == open_.end()) return;
  if (news.reason == ReturnReason::dropped) {
    change.dropped_samples += news.contribution.samples;
    position_.drop(news.contribution);
    change.moved = true;
  } else {
    if (at->body.layout.values_bytes > 0) add(numbers(at->body), progress);
    position_.take_back(news.contribution, true);
  }
  open_.erase(at);
}

}  // namespace hybridsync
