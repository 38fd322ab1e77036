#include "hybridsync/simulate/place.h"

#include <algorithm>

#include "hybridsync/decide/digest.h"

namespace hybridsync {
namespace {

constexpr uint64_t kFirstAnchor = 1;
constexpr Payload kSome{1};

// Stands for the numbers of an anchor after these contributions were applied to it.
uint64_t moved(uint64_t anchor, const auto& contributions) {
  Digest digest;
  digest.add(anchor);
  for (const auto& c : contributions)
    if (c.weight > 0) digest.add(c.node, c.incarnation, c.sequence, c.weight);
  return digest.value() | 1;
}

// Samples that stand for one step: sums of them are equal only where the steps are the same.
int64_t step_samples(const Process& process, int fragment, uint64_t made) {
  return static_cast<int64_t>(Digest().add(process, fragment, made).value() >> 32) | 1;
}

}  // namespace

int64_t Resident::progress() const { return Position(position).contribute().samples; }

bool Resident::may_contribute(int staleness) const {
  return position.may_contribute(staleness) && seat.may_contribute(position.version());
}

void PlaceStep::begin(const View& view) {
  perform(place_.seat.begin(view, now_));
  perform(place_.seat.set_anchor(kFirstAnchor, now_));
}

void PlaceStep::on(const Message& message) { perform(place_.seat.on(message, now_)); }

void PlaceStep::contribute() {
  Learned learned;
  learned.weight = 1;
  learned.samples = step_samples(place_.seat.self(), place_.seat.fragment(), place_.books.made);
  place_.books.learned += learned.samples;
  place_.position.step(learned);
  Contribution draft = place_.position.contribute();
  draft.anchor_hash = place_.seat.lineage().anchor;
  draft.values = kSome;
  draft.ticket = place_.books.made + 1;
  perform(place_.seat.contribute(draft, now_));
}

void PlaceStep::fire(Timer timer) {
  now_ = timer == Timer::close ? place_.seat.due(timer).value_or(0) : 0;
  perform(place_.seat.fire(timer, now_));
}

void PlaceStep::set_busy(bool busy) { perform(place_.seat.set_busy(busy, now_)); }

void PlaceStep::note(Finding finding) {
  if (!wrong_ && finding) wrong_ = std::move(finding);
}

void PlaceStep::perform(const Actions& actions) {
  const auto& outbox = place_.seat.member().outbox();
  if (!outbox.empty()) place_.books.made = std::max(place_.books.made, outbox.back().sequence);
  for (const Action& action : actions) std::visit([&](const auto& a) { act(a); }, action);
}

void PlaceStep::act(const CloseRound& action) {
  note(check_close(action.close, policy_.staleness));
  const uint64_t after = moved(place_.seat.lineage().anchor, action.close.contributions);
  perform(place_.seat.publish(action.close, after, kSome, {}, now_));
}

void PlaceStep::act(const ApplyResult& action) {
  const uint64_t after = moved(place_.seat.lineage().anchor, action.result.roster);
  perform(place_.seat.applied(action.result, after, now_));
}

void PlaceStep::act(const AdoptState& action) { perform(place_.seat.adopted(action.state, now_)); }

// Those with which a busy node answered by itself are unknown to its training.
void PlaceStep::settle(const std::vector<Contribution>& own) {
  for (const Contribution& c : own)
    if (c.ticket != 0) place_.position.settle(1);
}

void PlaceStep::act(const Advanced& action) {
  const Past* on = place_.past;
  place_.past = chronicle_.extend(on, action.result);
  note(check_result(*place_.past, *on));
  settle(action.own);
  place_.position.move(action.result.version);
}

void PlaceStep::act(const Adopted& action) {
  const Past* before = place_.past;
  place_.past = chronicle_.find(place_.seat.lineage().chain);
  settle(action.change.applied);
  place_.position.move(action.version);
  for (const Contribution& c : action.change.restored) {
    if (c.ticket != 0) place_.position.take_back(c, false);
    place_.books.returned.push_back(c.sequence);
  }
  std::sort(place_.books.returned.begin(), place_.books.returned.end());
  if (action.change.lost) find_lost(before);
}

// What was in the tail that is gone, and was not kept.
void PlaceStep::find_lost(const Past* before) {
  const Process self = place_.seat.self();
  Books& books = place_.books;
  for (const Past* p = before; p; p = p->before)
    for (const RosterEntry& e : p->roster) {
      if (e.node != self.node || e.incarnation != self.incarnation) continue;
      const bool back = std::count(books.returned.begin(), books.returned.end(), e.sequence) > 0;
      if (back || place_.past->count(self, e.sequence) > 0) continue;
      books.lost.push_back(e.sequence);
      books.lost_samples += e.samples;
      lost_ = true;
    }
  std::sort(books.lost.begin(), books.lost.end());
}

void PlaceStep::act(const Returned& action) {
  Books& books = place_.books;
  auto& returned = books.returned;
  const uint64_t sequence = action.contribution.sequence;
  const auto at = std::lower_bound(returned.begin(), returned.end(), sequence);
  if (at != returned.end() && *at == sequence)
    note(Violation{Rule::exactly_once, "node " + std::to_string(place_.seat.self().node) +
                                           ": contribution " + std::to_string(sequence) +
                                           " was returned twice"});
  returned.insert(at, sequence);
  if (action.contribution.ticket == 0) return;
  if (action.reason == ReturnReason::dropped) {
    books.dropped += action.contribution.samples;
    place_.position.settle(1);
  } else {
    place_.position.take_back(action.contribution, true);
  }
}

void PlaceStep::act(const Report& action) {
  if (action.kind == Report::Kind::mismatch) note(Violation{Rule::agreement, action.text});
}

void PlaceStep::act(const Disagreement& action) { note(Violation{Rule::agreement, action.why}); }

}  // namespace hybridsync
