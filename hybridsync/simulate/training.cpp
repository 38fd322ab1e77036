#include "hybridsync/simulate/training.h"

#include <algorithm>
#include <cmath>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"

namespace hybridsync {
namespace {

std::span<const float> floats(const ConstValues& values) {
  return std::get<std::span<const float>>(values);
}

}  // namespace

Training::Training(const Scenario& scenario, const Process& self, Desk& desk, Oracle& oracle,
                   Random random)
    : scenario_(scenario), self_(self), desk_(desk), oracle_(oracle), random_(random) {
  const auto count = static_cast<size_t>(scenario.problem->parameters());
  parameters_.resize(count);
  gradient_.resize(count);
  scratch_.resize(count);
  scenario.problem->start(parameters_);
  const auto coder = std::make_shared<Coder>(scenario.codec);
  for (const Fragment& f : scenario.table.fragments) {
    const Schedule schedule = scenario.schedule.of_part(f.part, scenario.table.parts());
    accounts_.emplace_back(
        f, self.node, scenario.policy.staleness, schedule, desk, [](Values) {}, coder);
    books_.push_back({Book(scenario.codec, static_cast<size_t>(f.count)), 0, {}});
  }
  if (gradient_mode()) return;
  for (Account& a : accounts_) a.set_anchor(as_const(part(parameters_, a)));
}

Values Training::part(std::vector<float>& of, const Account& account) const {
  const Fragment& f = account.fragment();
  return std::span<float>(of).subspan(static_cast<size_t>(f.offset), static_cast<size_t>(f.count));
}

Learned Training::learned(double loss) const {
  const auto samples = scenario_.samples_per_step;
  const auto weight = static_cast<double>(samples);
  // What is told of the learning rate falls, so that intervals that follow it have something to do.
  const double told = scenario_.problem->learning_rate() / (1 + static_cast<double>(steps_) / 16);
  return {weight, samples, weight * loss, weight, told};
}

void Training::step() {
  const double loss = scenario_.problem->gradient(self_.node, parameters_, random_, gradient_);
  const Learned what = learned(loss);
  ++steps_;
  samples_ += what.samples;
  for (Books& books : books_) books.samples += what.samples;
  for (Account& a : accounts_) a.step(what);
  if (gradient_mode()) return offer_gradient();
  const auto rate = static_cast<float>(scenario_.problem->learning_rate());
  for (float& g : gradient_) g *= rate;
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i] -= gradient_[i];
  for (size_t f = 0; f < accounts_.size(); ++f)
    books_[f].numbers.learn(floats(as_const(part(gradient_, accounts_[f]))));
}

void Training::offer_gradient() {
  for (size_t f = 0; f < accounts_.size(); ++f) {
    Account& a = accounts_[f];
    const ConstValues gradient = as_const(part(gradient_, a));
    Contribution c;
    c.weight = static_cast<double>(scenario_.samples_per_step);
    c.samples = books_[f].samples;
    c.steps = 1;
    c.loss_weight = c.weight;
    a.contribute_gradient(c, gradient, nullptr);
    Body body;
    body.bytes = std::make_shared<const Bytes>(copy_of(bytes_of(gradient)));
    body.layout.values_bytes = body.bytes->size();
    write_down(a, books_[f], &body);
  }
}

void Training::take_gradient(Account& account, Books& books) {
  const Values mean = part(scratch_, account), parameters = part(parameters_, account);
  const auto change = account.apply(as_const(parameters), mean);
  books.open.clear();
  if (change.newest.weight > 0) {
    scale(mean, scenario_.problem->learning_rate());
    subtract(as_const(parameters), as_const(mean), parameters);
  }
  if (account.mode() == Mode::delta) account.set_anchor(as_const(parameters));
}

void Training::take_news() {
  for (size_t f = 0; f < accounts_.size(); ++f) {
    Account& a = accounts_[f];
    if (!a.has_news()) continue;
    if (a.mode() == Mode::gradient)
      take_gradient(a, books_[f]);
    else
      take_news(a, books_[f]);
  }
  follow();
}

// The interval of fragment 0 is that of all, as on a real node.
void Training::follow() {
  if (!scenario_.schedule.adapts()) return;
  for (Account& a : accounts_) a.set_interval(accounts_.front().interval());
}

void Training::take_news(Account& account, Books& books) {
  const Values parameters = part(parameters_, account);
  const Values out = part(scratch_, account);
  const auto change = account.apply(as_const(parameters), out);
  if (change.moved) {
    copy(as_const(out), parameters);
    books.numbers.move();
  }
  const int f = account.fragment().id;
  std::vector<uint64_t> open;
  account.each_unresolved([&](uint64_t ticket, const Body&) { open.push_back(ticket); });
  // Those that were applied and then restored, possibly between two looks of this training.
  std::vector<uint64_t> back = oracle_.take_restored(self_, f);
  for (uint64_t ticket : books.open) {
    const bool gone = !std::count(open.begin(), open.end(), ticket);
    const bool known = std::count(back.begin(), back.end(), ticket) > 0;
    if (gone && !known && oracle_.fate(self_, f, ticket) == Oracle::Fate::returned)
      back.push_back(ticket);
  }
  for (uint64_t ticket : back) give_back(f, ticket, books);
  books.open = std::move(open);
  check(account, books);
}

void Training::give_back(int fragment, uint64_t ticket, Books& books) {
  const Oracle::Offered& offer = oracle_.offer(self_, fragment, ticket);
  books.samples += offer.samples;
  books.numbers.take_back(offer.numbers);
  oracle_.taken_back(self_, fragment, ticket);
}

// anchor - parameters = unresolved + what the books say
void Training::check(const Account& account, const Books& books) {
  if (account.mode() == Mode::gradient) return;
  std::vector<float> rest(floats(account.anchor()).begin(), floats(account.anchor()).end());
  subtract(std::span<const float>(rest), as_const(part(parameters_, account)),
           std::span<float>(rest));
  account.each_unresolved([&](uint64_t ticket, const Body&) {
    const auto& numbers = oracle_.offer(self_, account.fragment().id, ticket).numbers;
    for (size_t i = 0; i < numbers.size(); ++i) rest[i] -= numbers[i];
  });
  check_numbers(account, books.numbers, rest);
}

void Training::check_numbers(const Account& account, const Book& book,
                             std::span<const float> rest) {
  const auto beside = account.beside();
  double size = 1, most = 0, kept = 0, lost = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    size = std::max<double>(size, std::abs(floats(account.anchor())[i]));
    most = std::max(most, std::abs(rest[i] - book.in_parameters(i)));
    const double apart = beside.empty() ? 0 : beside[i];
    if (!beside.empty()) kept = std::max(kept, std::abs(apart - book.beside().at(i)));
    if (book.owed().empty()) continue;
    lost = std::max(lost, std::abs(rest[i] - book.held(i) + apart - book.owed()[i]));
  }
  const double most_allowed = rounding(book.offers()) * size;
  const auto expect = [&](double error, const char* what) {
    if (error <= most_allowed) return;
    oracle_.broken(
        Rule::account, account.fragment().id,
        "node " + std::to_string(self_.node) + ": " + what + " by " + std::to_string(error));
  };
  expect(most, "anchor - parameters differs from unresolved + progress");
  expect(kept, "the residual beside the parameters differs from what codes left out");
  expect(lost, "what it learned differs from what it contributed and still has");
}

void Training::offer(bool ended, bool anything) {
  if (gradient_mode()) return;
  for (size_t f = 0; f < accounts_.size(); ++f) {
    Account& a = accounts_[f];
    // Nothing is offered only while nothing else is open: otherwise there would always be
    // something, and nobody would ever have finished.
    const bool nothing = anything && books_[f].open.empty();
    // A fragment that everybody has finished needs no further round, unless somebody has joined.
    const bool left = a.should_answer() || (!a.finished() && (a.position().steps() > 0 || nothing));
    if (ended ? left : a.wants_to_contribute()) offer(a, books_[f], ended);
  }
}

void Training::offer(Account& account, Books& books, bool ended) {
  const size_t before = books.open.size();
  // Finished is only who has nothing else on its way.
  account.contribute(as_const(part(parameters_, account)), ended && before == 0, nullptr);
  write_down(account, books, nullptr);
}

// A contribution that was just offered, if one was.
void Training::write_down(const Account& account, Books& books, const Body* gradient) {
  const int f = account.fragment().id;
  size_t count = 0;
  account.each_unresolved([&](uint64_t ticket, const Body& body) {
    if (count++ < books.open.size()) return;
    const auto& offer =
        oracle_.offered(self_, f, ticket, gradient ? *gradient : body, books.samples);
    books.numbers.offer(offer.numbers);
    books.open.push_back(ticket);
    books.samples = 0;
  });
  check(account, books);
}

void Training::answer() {
  for (size_t f = 0; f < accounts_.size(); ++f)
    if (!gradient_mode() && accounts_[f].should_answer()) offer(accounts_[f], books_[f], false);
}

bool Training::must_wait() const {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [](const Account& a) { return a.must_wait(); });
}

bool Training::at_rest() const {
  for (size_t f = 0; f < accounts_.size(); ++f) {
    if (books_[f].samples > 0) return false;
    for (uint64_t ticket : books_[f].open)
      if (oracle_.offer(self_, accounts_[f].fragment().id, ticket).samples > 0) return false;
  }
  return true;
}

bool Training::keeps_residual() const {
  return std::any_of(accounts_.begin(), accounts_.end(), [](const Account& a) {
    return std::any_of(a.beside().begin(), a.beside().end(), [](float x) { return x != 0; });
  });
}

bool Training::has_news() const {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [](const Account& a) { return a.has_news(); });
}

std::vector<Oracle::Trained> Training::trained() const {
  std::vector<Oracle::Trained> all;
  for (const Books& books : books_) all.push_back({samples_, books.samples});
  return all;
}

}  // namespace hybridsync
