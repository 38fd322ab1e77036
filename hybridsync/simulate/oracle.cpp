#include "hybridsync/simulate/oracle.h"

#include <algorithm>
#include <cmath>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/math/outer.h"
#include "hybridsync/simulate/deeds.h"

namespace hybridsync {
namespace {

std::string at(Version version) { return "version " + std::to_string(version); }

}  // namespace

Oracle::Oracle(const Scenario& scenario, std::span<const float> start)
    : scenario_(scenario), coder_(scenario.codec) {
  for (const Fragment& f : scenario.table.fragments) {
    const auto part = start.subspan(static_cast<size_t>(f.offset), static_cast<size_t>(f.count));
    Step root;
    root.anchor.assign(part.begin(), part.end());
    root.momentum.resize(part.size());
    fragments_.emplace_back().steps.emplace(0, std::move(root));
  }
}

void Oracle::broken(Rule rule, int fragment, std::string text) {
  if (!breach_) breach_ = Breach{rule, fragment, std::move(text)};
}

std::string Oracle::name(int fragment, const Process& process, uint64_t sequence) const {
  return "fragment " + std::to_string(fragment) + ": contribution #" + std::to_string(sequence) +
         " of " + words(process);
}

// --- contributions

const Oracle::Offered& Oracle::offered(const Process& process, int fragment, uint64_t ticket,
                                       const Body& body, int64_t samples) {
  Tree& tree = fragments_[static_cast<size_t>(fragment)];
  Offered& offered = tree.places[process].offers[ticket];
  offered.samples = samples;
  if (body.layout.values_bytes == 0) return offered;
  offered.numbers.resize(tree.steps.at(0).anchor.size());
  if (!coder_.decode(ByteSpan(*body.bytes).first(body.layout.values_bytes),
                     std::span<float>(offered.numbers)))
    broken(Rule::account, fragment, words(process) + " offers bytes that are no numbers");
  return offered;
}

void Oracle::taken_back(const Process& process, int fragment, uint64_t ticket) {
  Place& place = fragments_[static_cast<size_t>(fragment)].places[process];
  const auto sequence = place.sequences.find(ticket);
  if (sequence == place.sequences.end())
    place.offers.erase(ticket);  // it never left the node
  else
    place.made[sequence->second - 1].taken_back = true;
}

const Oracle::Offered& Oracle::offer(const Process& process, int fragment, uint64_t ticket) const {
  return fragments_[static_cast<size_t>(fragment)].places.at(process).offers.at(ticket);
}

Oracle::Made* Oracle::find(Tree& tree, const Process& process, uint64_t sequence) {
  const auto place = tree.places.find(process);
  if (place == tree.places.end() || sequence == 0 || sequence > place->second.made.size())
    return nullptr;
  Made& made = place->second.made[sequence - 1];
  return made.known ? &made : nullptr;
}

// A seat's own contribution, the first time that anything is done with it.
void Oracle::learn(const Seat& seat, const Contribution& c) {
  if (c.node != seat.self().node || c.incarnation != seat.self().incarnation) return;
  Place& place = tree(seat).places[seat.self()];
  if (place.made.size() < c.sequence) place.made.resize(c.sequence);
  Made& made = place.made[c.sequence - 1];
  if (made.known) return;
  made.known = true;
  made.contribution = c;
  ++sums_.contributions;
  if (c.ticket == 0) return;
  place.sequences[c.ticket] = c.sequence;
  const Offered& offer = place.offers.at(c.ticket);
  if (offer.samples != c.samples)
    broken(Rule::account, seat.fragment(),
           name(seat.fragment(), seat.self(), c.sequence) + " speaks of " +
               std::to_string(c.samples) + " samples, and holds " + std::to_string(offer.samples));
}

void Oracle::see(const Seat& seat, const Action& action) {
  std::visit([&](const auto& a) { see(seat, a); }, action);
}

void Oracle::see(const Seat& seat, const Send& action) {
  if (const auto* c = std::get_if<Contribution>(&action.message.body)) learn(seat, *c);
}

void Oracle::see(const Seat& seat, const CloseRound& action) {
  for (const Contribution& c : action.close.contributions) learn(seat, c);
}

Oracle::Fate Oracle::fate(const Process& process, int fragment, uint64_t ticket) const {
  const Place& place = fragments_[static_cast<size_t>(fragment)].places.at(process);
  const auto sequence = place.sequences.find(ticket);
  if (sequence == place.sequences.end()) return Fate::returned;  // it never left the node
  return place.made[sequence->second - 1].fate;
}

std::vector<uint64_t> Oracle::take_restored(const Process& process, int fragment) {
  return std::exchange(fragments_[static_cast<size_t>(fragment)].places[process].restored, {});
}

void Oracle::see(const Seat& seat, const Returned& action) {
  const int f = seat.fragment();
  learn(seat, action.contribution);
  Made& made = *find(tree(seat), seat.self(), action.contribution.sequence);
  if (made.fate != Fate::open)
    broken(Rule::exactly_once, f,
           name(f, seat.self(), action.contribution.sequence) + " came back, but it was settled");
  for (uint64_t chain : made.in)
    if (is_before(tree(seat), chain, seat.lineage().chain))
      broken(Rule::exactly_once, f,
             name(f, seat.self(), action.contribution.sequence) +
                 " came back, but this node's lineage holds it");
  made.fate = action.reason == ReturnReason::dropped ? Fate::dropped : Fate::returned;
}

// --- results

bool Oracle::is_before(const Tree& tree, uint64_t chain, uint64_t later) const {
  const Version version = tree.steps.at(chain).version;
  const Step* step = &tree.steps.at(later);
  while (step->version > version) {
    later = step->parent;
    step = &tree.steps.at(later);
  }
  return later == chain;
}

bool Oracle::one_lineage(int fragment, uint64_t a, uint64_t b) const {
  const Tree& tree = fragments_[static_cast<size_t>(fragment)];
  const auto one = tree.steps.find(a), other = tree.steps.find(b);
  if (one == tree.steps.end() || other == tree.steps.end()) return false;
  return one->second.version <= other->second.version ? is_before(tree, a, b)
                                                      : is_before(tree, b, a);
}

const Oracle::LeftOut* Oracle::left_out(int fragment, uint64_t chain, const Process& owner) const {
  const Tree& tree = fragments_[static_cast<size_t>(fragment)];
  const auto step = tree.steps.find(chain);
  if (step == tree.steps.end() || step->second.maker != owner) return nullptr;
  return scenario_.codec.error_feedback == 1 ? &step->second.left_out : nullptr;
}

const std::vector<float>* Oracle::anchor(int fragment, uint64_t chain) const {
  const Tree& tree = fragments_[static_cast<size_t>(fragment)];
  const auto step = tree.steps.find(chain);
  return step == tree.steps.end() ? nullptr : &step->second.anchor;
}

void Oracle::see(const Seat& seat, const Advanced& action) {
  const int f = seat.fragment();
  course_ =
      combine(course_, combine(seat.lineage().chain, static_cast<uint64_t>(seat.self().node)));
  for (const Contribution& c : action.own) learn(seat, c);
  const uint64_t chain = seat.lineage().chain;
  if (!tree(seat).steps.contains(chain)) add(seat, action.result);
  for (const Contribution& c : action.own) {
    Made& made = *find(tree(seat), seat.self(), c.sequence);
    if (made.fate != Fate::open)
      broken(Rule::exactly_once, f,
             name(f, seat.self(), c.sequence) + " is applied after its fate was told");
    made.fate = Fate::settled;
  }
  for (const RosterEntry& e : action.result.roster) {
    if (Process{e.node, e.incarnation} != seat.self()) continue;
    const Made* made = find(tree(seat), seat.self(), e.sequence);
    if (made && made->fate != Fate::settled)
      broken(Rule::exactly_once, f,
             name(f, seat.self(), e.sequence) + (made->fate == Fate::open
                                                     ? " is applied and still counts as unresolved"
                                                     : " is applied although it came back"));
  }
}

void Oracle::see(const Seat& seat, const Adopted& action) {
  const int f = seat.fragment();
  Tree& t = tree(seat);
  course_ = combine(course_,
                    combine(seat.lineage().chain, 64u + static_cast<uint64_t>(seat.self().node)));
  if (!t.steps.contains(seat.lineage().chain))
    return broken(Rule::one_lineage, f, words(seat.self()) + " took a STATE that nobody made");
  for (const Contribution& c : action.change.applied) {
    learn(seat, c);
    Made& made = *find(t, seat.self(), c.sequence);
    const auto held = [&](uint64_t chain) { return is_before(t, chain, seat.lineage().chain); };
    if (std::none_of(made.in.begin(), made.in.end(), held))
      broken(Rule::exactly_once, f,
             name(f, seat.self(), c.sequence) + " counts as applied in a STATE without it");
    made.fate = Fate::settled;
  }
  for (const Contribution& c : action.change.restored) {
    learn(seat, c);
    Made& made = *find(t, seat.self(), c.sequence);
    if (made.fate != Fate::settled)
      broken(Rule::exactly_once, f,
             name(f, seat.self(), c.sequence) + " is progress again, but it was not settled");
    made.fate = Fate::returned;
    if (c.ticket != 0) t.places[seat.self()].restored.push_back(c.ticket);
  }
}

// A result that nobody had before: its owner applies it first.
void Oracle::add(const Seat& seat, const Result& r) {
  const int f = seat.fragment();
  Tree& t = tree(seat);
  const uint64_t chain = seat.lineage().chain;
  ++results_;
  t.newest = std::max(t.newest, r.version);
  const auto [known, fresh] = t.of_epoch.emplace(std::pair(r.epoch, r.version), chain);
  if (!fresh)
    broken(Rule::one_lineage, f,
           "a second result for epoch " + std::to_string(r.epoch) + ", " + at(r.version));
  const auto parent = t.steps.find(r.chain);
  if (parent == t.steps.end() || parent->second.version + 1 != r.version)
    return broken(Rule::one_lineage, f, at(r.version) + " has no predecessor that anybody made");
  Step step{r.chain, r.version, parent->second.total_samples, r.roster, {}, {}, seat.self(),
            {},      {}};
  double weight = 0;
  for (const RosterEntry& e : r.roster) {
    check_entry(seat, r, e, chain);
    step.total_samples += e.samples;
    weight += e.weight;
  }
  if (step.total_samples != r.total_samples || weight != r.weight)
    broken(Rule::account, f, at(r.version) + " counts other samples than its roster");
  compute(f, r, step);
  t.steps.emplace(chain, std::move(step));
  for (const RosterEntry& e : r.roster)
    if (Made* made = find(t, {e.node, e.incarnation}, e.sequence)) made->in.push_back(chain);
}

void Oracle::check_entry(const Seat& seat, const Result& r, const RosterEntry& e, uint64_t) {
  const int f = seat.fragment();
  Tree& t = tree(seat);
  const Process process{e.node, e.incarnation};
  const Made* made = find(t, process, e.sequence);
  if (!made) return broken(Rule::exactly_once, f, name(f, process, e.sequence) + " was never made");
  const Contribution& c = made->contribution;
  const bool rest = c.weight == 0 && c.finished && e.weight == kRestWeight && r.weight == e.weight;
  if ((c.weight != e.weight && !rest) || c.samples != e.samples)
    broken(Rule::account, f, name(f, process, e.sequence) + " is applied with another weight");
  const int64_t most = r.mode == Mode::gradient ? 0 : scenario_.policy.staleness;
  // A base that lay in a tail which is gone is brought down to what there is.
  const int64_t age = std::max<int64_t>(0, r.version - 1 - c.base);
  if (e.age > most || age > most)
    broken(Rule::bounded_age, f,
           name(f, process, e.sequence) + " is " + std::to_string(age) + " versions old at " +
               at(r.version) + ", allowed are " + std::to_string(most));
  for (uint64_t other : made->in)
    if (is_before(t, other, r.chain))
      broken(Rule::exactly_once, f,
             name(f, process, e.sequence) + " is applied twice, at " +
                 at(t.steps.at(other).version) + " and at " + at(r.version));
}

// The owner's arithmetic once more, from what was offered.
void Oracle::compute(int fragment, const Result& r, Step& step) {
  Tree& t = fragments_[static_cast<size_t>(fragment)];
  const Step& before = t.steps.at(r.chain);
  step.anchor = before.anchor;
  step.momentum = before.momentum;
  step.left_out.sum.resize(step.anchor.size());
  if (before.maker == step.maker) {
    step.residual = before.residual;
    step.left_out = before.left_out;
  }
  std::vector<ConstValues> terms;
  std::vector<double> weights;
  bool last = true;
  for (const RosterEntry& e : r.roster) {
    const Process process{e.node, e.incarnation};
    const Made* made = find(t, process, e.sequence);
    last = last && made && made->contribution.finished;
    if (!made || made->contribution.weight == 0) continue;
    const auto& numbers = offer(process, fragment, made->contribution.ticket).numbers;
    terms.push_back(std::span<const float>(numbers));
    weights.push_back(e.weight);
  }
  const bool rest = last && std::any_of(step.residual.begin(), step.residual.end(),
                                        [](float x) { return x != 0; });
  if (terms.empty() && !rest) return;
  std::vector<float> mean(step.anchor.size());
  if (!terms.empty()) weighted_mean(terms, weights, std::span<float>(mean));
  const bool plain = encode(r, last, mean, step);
  uint64_t after = hash_of(ConstValues(std::span<const float>(mean)));
  if (r.mode == Mode::delta) {
    const OuterConfig outer = outer_for(scenario_.outer, scenario_.codec.kind, plain);
    const bool buffer = outer.momentum != 0;
    outer_step(outer, std::span<const float>(mean), std::span<float>(step.anchor),
               std::span<float>(step.momentum.data(), buffer ? step.momentum.size() : 0));
    after = hash_of(ConstValues(std::span<const float>(step.anchor)));
  } else {  // what delta mode will begin from: everybody's parameters
    scale(std::span<float>(mean), scenario_.problem->learning_rate());
    subtract(std::span<const float>(step.anchor), std::span<const float>(mean),
             std::span<float>(step.anchor));
  }
  if (after != r.after)
    broken(Rule::identical_anchors, fragment,
           at(r.version) + " is not the mean of what its roster names");
}

// What all members get of the mean, with what the maker left out before on this very lineage;
// whether nothing is held back.
bool Oracle::encode(const Result& r, bool last, std::span<float> mean, Step& step) {
  if (r.mode == Mode::gradient || !coder_.codes(Real::f32)) return true;
  const auto beta = static_cast<float>(scenario_.codec.error_feedback);
  if (beta > 0) step.residual.resize(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    step.left_out.sum[i] += mean[i];
    step.left_out.size = std::max(step.left_out.size, std::abs(step.left_out.sum[i]));
  }
  coder_.set_round(scenario_.schedule.coded_rounds(r.version - 1));
  const auto bytes = last ? Coder::plain(mean, beta, step.residual)
                          : coder_.encode(mean, beta, step.residual).value_or(Bytes{});
  if (!coder_.decode(bytes, mean)) broken(Rule::account, -1, "a mean that has no code");
  for (size_t i = 0; i < mean.size(); ++i) step.left_out.sum[i] -= mean[i];
  return bytes.size() == mean.size_bytes();
}

// --- the end

Oracle::Sums& Oracle::Sums::operator+=(const Sums& o) {
  contributions += o.contributions;
  trained += o.trained;
  applied += o.applied;
  dropped += o.dropped;
  open += o.open;
  progress += o.progress;
  lost_with_processes += o.lost_with_processes;
  lost_with_tails += o.lost_with_tails;
  return *this;
}

void Oracle::ended(const Process& process, std::vector<Trained> by_fragment) {
  for (size_t f = 0; f < by_fragment.size(); ++f) {
    Place& place = fragments_[f].places[process];
    place.ended = true;
    place.trained = by_fragment[f];
  }
}

std::vector<uint64_t> Oracle::path(const Tree& tree, uint64_t head) const {
  std::vector<uint64_t> chains;
  for (; head != 0; head = tree.steps.at(head).parent) chains.push_back(head);
  return chains;
}

void Oracle::check_end(const std::vector<const Seat*>& seats) {
  if (seats.empty()) return;
  const int f = seats.front()->fragment();
  Tree& t = tree(*seats.front());
  const uint64_t head = seats.front()->lineage().chain;
  for (const Seat* seat : seats)
    for (const Contribution& c : seat->member().outbox()) learn(*seat, c);
  for (const Seat* seat : seats)
    if (seat->lineage().chain != head)
      return broken(Rule::identical_anchors, f,
                    words(seat->self()) + " ends at " + at(seat->lineage().version) + ", " +
                        words(seats.front()->self()) + " at " +
                        at(seats.front()->lineage().version));
  if (!t.steps.contains(head)) return;
  const auto chains = path(t, head);
  const std::set<uint64_t> on_path(chains.begin(), chains.end());
  for (auto& [process, place] : t.places) {
    const Process& p = process;
    const auto live =
        std::find_if(seats.begin(), seats.end(), [&](const Seat* s) { return s->self() == p; });
    check_place(f, process, place, live == seats.end() ? nullptr : *live, on_path);
  }
  check_samples(f, t, head);
}

// Every contribution of one process is in one place; what it trained on is the sum of them.
void Oracle::check_place(int f, const Process& process, Place& place, const Seat* seat,
                         const std::set<uint64_t>& path) {
  int64_t applied = 0, dropped = 0, open = 0, lost = 0;
  for (size_t i = 0; i < place.made.size(); ++i) {
    const Made& made = place.made[i];
    if (!made.known) continue;
    const Contribution& c = made.contribution;
    const auto held = std::count_if(made.in.begin(), made.in.end(),
                                    [&](uint64_t chain) { return path.contains(chain); });
    if (held > 1)
      broken(Rule::exactly_once, f, name(f, process, i + 1) + " is applied twice in the end");
    const bool back = made.fate == Fate::returned || made.fate == Fate::dropped;
    // A lossy view may bring back the tail that was dropped when its work became progress again.
    if (held > 0 && back && !lossy_)
      broken(Rule::exactly_once, f, name(f, process, i + 1) + " came back, and is applied");
    if (held > 0 && !back) applied += c.samples;
    if (made.fate == Fate::dropped) dropped += c.samples;
    if (made.fate == Fate::returned && !made.taken_back) lost += c.samples;
    if (held > 0 || back) continue;
    const bool in_outbox = seat && made.fate == Fate::open;
    (in_outbox ? open : lost) += c.samples;
    if (seat && !in_outbox && !lossy_)
      broken(Rule::exactly_once, f,
             name(f, process, i + 1) + " was applied in results that are gone, and is lost");
  }
  if (!place.ended) return;
  // What nothing had been done with yet.
  for (const auto& [ticket, offer] : place.offers)
    if (!place.sequences.contains(ticket)) (seat ? open : lost) += offer.samples;
  const int64_t found = applied + dropped + open + lost + place.trained.progress;
  if (found != place.trained.samples)
    broken(Rule::account, f,
           words(process) + " trained on " + std::to_string(place.trained.samples) +
               " samples in fragment " + std::to_string(f) + ", and " + std::to_string(found) +
               " are accounted for");
  sums_.trained += place.trained.samples;
  sums_.applied += applied;
  sums_.dropped += dropped;
  sums_.open += open;
  (seat ? sums_.progress : sums_.lost_with_processes) += place.trained.progress;
  (seat ? sums_.lost_with_tails : sums_.lost_with_processes) += lost;
}

void Oracle::check_samples(int f, const Tree& tree, uint64_t head) {
  int64_t samples = 0;
  for (uint64_t chain : path(tree, head))
    for (const RosterEntry& e : tree.steps.at(chain).roster) samples += e.samples;
  if (samples != tree.steps.at(head).total_samples)
    broken(Rule::account, f, "the lineage's total is not the sum of its results");
}

}  // namespace hybridsync
