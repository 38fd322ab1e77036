#include "hybridsync/sync/desk.h"

#include <cassert>
#include <utility>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {
Body make_body(ByteSpan values, const SideData* side) {
  Writer writer;
  Body body;
  writer.raw(values);
  body.layout.values_bytes = writer.view().size();
  if (side) write(*side, writer);
  body.layout.side_bytes = writer.view().size() - body.layout.values_bytes;
  body.bytes = std::make_shared<const Bytes>(writer.take());
  return body;
}

Desk::Desk(const FragmentTable& table, const std::vector<int>& fragments) {
  for (int f : fragments) {
    Place place{table.fragments[f], {}, {}, {}, {}, {}};
    place.anchor.resize(place.fragment.bytes());
    places_.emplace(f, std::move(place));
  }
}

void Desk::on_work(std::function<void()> wake) { wake_ = std::move(wake); }

uint64_t Desk::contribute(int fragment, Contribution draft, Body body) {
  uint64_t ticket = 0;
  {
    std::lock_guard lock(mutex_);
    draft.ticket = ticket = next_ticket_++;
    work_.drafts.push_back({fragment, draft, std::move(body)});
  }
  wake_();
  return ticket;
}

void Desk::set_anchor(int fragment, ConstValues values, uint64_t hash) {
  {
    std::lock_guard lock(mutex_);
    const auto bytes = bytes_of(values);
    places_.at(fragment).first_anchor.assign(bytes.begin(), bytes.end());
    work_.anchors.emplace_back(fragment, hash);
  }
  wake_();
}

void Desk::set_busy(bool busy) {
  {
    std::lock_guard lock(mutex_);
    work_.busy = busy;
  }
  wake_();
}

Desk::Status Desk::status(int fragment) const {
  std::lock_guard lock(mutex_);
  const Place& place = places_.at(fragment);
  Status status = place.status;
  status.news = !place.news.empty();
  return status;
}

std::vector<News> Desk::take(int fragment, Values anchor) {
  std::lock_guard lock(mutex_);
  Place& place = places_.at(fragment);
  if (count_of(anchor) > 0 && !place.news.empty()) copy(as_const(place.values()), anchor);
  return std::exchange(place.news, {});
}

Ledger Desk::ledger() const {
  std::lock_guard lock(mutex_);
  return ledger_;
}

CodingCosts Desk::coding() const {
  std::lock_guard lock(mutex_);
  return coding_;
}

std::vector<Report> Desk::reports() {
  std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

Outcome Desk::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Outcome Desk::wait(const std::function<bool()>& enough, const Patience& patience,
                   const std::function<Outcome()>& healthy) {
  Waiter waiter(patience);
  while (!enough()) {
    if (Outcome failed = failure(); !failed.ok()) return failed;
    const auto describe = [&] { return waiting(); };
    if (waiter.check(describe) != Waiter::Verdict::go_on)
      return {Outcome::Kind::interrupted, -1, "interrupted while waiting for " + describe().what};
    if (Outcome health = healthy(); !health.ok()) return health;
    std::unique_lock lock(mutex_);
    if (changes_ == seen_) changed_.wait_for(lock, waiter.slice());
    seen_ = changes_;
  }
  return failure();
}

// The first fragment whose contribution is open.
Waiting Desk::waiting() const {
  std::lock_guard lock(mutex_);
  for (const auto& [f, place] : places_)
    if (place.status.open && place.news.empty())
      return {0, place.waits_for,
              "fragment " + std::to_string(f) + ", version " +
                  std::to_string(place.status.version + 1)};
  return {0, {}, "its comm thread"};
}

Desk::Work Desk::take_work() {
  std::lock_guard lock(mutex_);
  for (const auto& [f, hash] : work_.anchors) {
    Place& place = places_.at(f);
    place.anchor = std::exchange(place.first_anchor, {});
  }
  return std::exchange(work_, {});
}

Values Desk::anchor(int fragment) { return places_.at(fragment).values(); }

void Desk::tell(int fragment, News news, std::vector<std::byte> anchor) {
  std::lock_guard lock(mutex_);
  Place& place = places_.at(fragment);
  if (!anchor.empty()) {
    assert(anchor.size() == place.anchor.size());
    place.anchor.swap(anchor);
  }
  place.news.push_back(std::move(news));
  ++changes_;
  changed_.notify_all();
}

void Desk::set_status(int fragment, const Status& status, std::vector<int> waits_for) {
  std::lock_guard lock(mutex_);
  Place& place = places_.at(fragment);
  place.status = status;
  place.waits_for = std::move(waits_for);
  ++changes_;
  changed_.notify_all();
}

void Desk::count(const std::function<void(Ledger&)>& entry) {
  std::lock_guard lock(mutex_);
  entry(ledger_);
}

void Desk::set_coding(const CodingCosts& costs) {
  std::lock_guard lock(mutex_);
  coding_ = costs;
}

void Desk::report(Report report) {
  std::lock_guard lock(mutex_);
  reports_.push_back(std::move(report));
}

void Desk::fail(Outcome outcome) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(outcome);
  ++changes_;
  changed_.notify_all();
}

}  // namespace hybridsync
