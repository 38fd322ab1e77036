#include "hybridsync/simulate/scenario.h"

#include <algorithm>
#include <cmath>

#include "hybridsync/config/error.h"
#include "hybridsync/config/units.h"
#include "hybridsync/config/value.h"

namespace hybridsync {
namespace {

constexpr Micros kMilli = 1000;
constexpr Micros kUsualStep = 10 * kMilli;
constexpr int kMostFragments = 4;

// Equal pieces; the planner of real runs would not cut so few numbers.
FragmentTable cut(int64_t count, int nodes, int fragments, int64_t parts) {
  FragmentTable table{nodes, 1, {}};
  for (int f = 0; f < fragments; ++f) {
    const int64_t from = count * f / fragments, to = count * (f + 1) / fragments;
    const int part = static_cast<int>(f % std::min<int64_t>(parts, fragments));
    table.fragments.push_back({f, Real::f32, from, to - from, part});
  }
  return table;
}

// Codes of few numbers are no shorter than these.
std::shared_ptr<const Problem> make_problem(int nodes, const CodecOptions& codec, Random& random) {
  if (random.chance(0.1)) return make_perceptron(nodes, random.fork(1));
  const int64_t more = codec.kind == CodecKind::fp32 ? 1 : 12;
  return make_quadratic(nodes, more * random.between(6, 16), random.fork(1));
}

Severity severity(Random& random) {
  const double u = random.uniform();
  if (u < 0.10) return Severity::calm;
  if (u < 0.40) return Severity::mild;
  return u < 0.80 ? Severity::hard : Severity::wild;
}

// What may go wrong without views: nothing that only a new view can mend.
std::vector<FaultKind> kinds(Severity severity, bool views) {
  using enum FaultKind;
  std::vector<FaultKind> kinds = {freeze, cut, slow, drift, busy, finish};
  if (severity == Severity::mild || !views) return kinds;
  kinds.insert(kinds.end(), {crash, crash, power_off, broken, partition, freeze, leave});
  return kinds;
}

std::vector<int> some_nodes(int nodes, int count, Random& random) {
  std::vector<int> all;
  for (int n = 0; n < nodes; ++n) all.push_back(n);
  for (int i = 0; i < count; ++i)
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(random.between(i, nodes - 1))]);
  all.resize(static_cast<size_t>(count));
  std::sort(all.begin(), all.end());
  return all;
}

// Faults over the time that training takes at least. At most one node goes for good, and never
// that of the coordinator: without it views do not change any more.
class Faults {
 public:
  Faults(const Scenario& scenario, Micros length, Random random)
      : s_(scenario),
        nodes_(static_cast<int>(scenario.nodes.size())),
        length_(length),
        random_(random) {}

  std::vector<Fault> make() {
    static constexpr int kMost[] = {0, 3, 6, 14};
    const int most = kMost[static_cast<size_t>(s_.severity)];
    const auto choice = kinds(s_.severity, s_.views);
    std::vector<Fault> faults;
    const int64_t count = most == 0 ? 0 : random_.between(1, most);
    for (int64_t i = 0; i < count; ++i)
      faults.push_back(one(choice[static_cast<size_t>(
          random_.between(0, static_cast<int64_t>(choice.size()) - 1))]));
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault& a, const Fault& b) { return a.at < b.at; });
    return faults;
  }

 private:
  Fault one(FaultKind kind) {
    Fault f;
    f.kind = kind;
    f.at = static_cast<Micros>(random_.uniform(0.02, 0.8) * static_cast<double>(length_));
    f.lasts = lasting(kind);
    if (kind == FaultKind::slow) f.factor = std::round(random_.uniform(2, 12));
    if (kind == FaultKind::drift) f.factor = static_cast<double>(random_.between(-2000, 2000));
    const bool pair = kind == FaultKind::cut || kind == FaultKind::broken;
    const int side =
        kind == FaultKind::partition ? static_cast<int>(random_.between(1, nodes_ - 1)) : 1;
    f.nodes = some_nodes(nodes_, pair ? 2 : side, random_);
    for_good(f);
    return f;
  }

  // Short against what the rounds notice, about as long, or much longer.
  Micros lasting(FaultKind kind) {
    if (kind == FaultKind::finish || kind == FaultKind::leave) return 0;
    static constexpr double kScale[] = {0.1, 0.7, 1.2, 4};
    const double scale = kScale[static_cast<size_t>(random_.between(0, 3))];
    const double lasts = static_cast<double>(s_.policy.suspect_after) * scale;
    return std::max<Micros>(kMilli, static_cast<Micros>(lasts * random_.uniform(0.5, 1.5)));
  }

  void for_good(Fault& f) {
    const bool stays_away =
        (f.kind == FaultKind::crash || f.kind == FaultKind::power_off) && random_.chance(0.2);
    if (!stays_away && f.kind != FaultKind::leave) return;
    if (gone_ || f.nodes[0] == 0 || nodes_ < 3) {
      if (f.kind == FaultKind::leave) f.kind = FaultKind::finish;
      return;
    }
    f.lasts = 0;
    gone_ = true;
  }

  const Scenario& s_;
  int nodes_;
  Micros length_;
  Random random_;
  bool gone_ = false;
};

void set_rules(Scenario& s, const Config& config, Micros round_trip) {
  s.policy = make_policy(config, round_trip);
  s.schedule = make_schedule(config);
  s.outer = config.outer_tier().outer;
  s.codec = config.outer_tier().codec;
}

// How long a round takes at least: as long as it takes the slowest of those that it waits for.
double round_time(const Scenario& s) {
  std::vector<Micros> steps;
  for (const NodeProfile& node : s.nodes) steps.push_back(node.step);
  std::sort(steps.begin(), steps.end());
  const auto all = static_cast<int>(steps.size());
  const int awaited = s.policy.staleness == 0 ? all : s.policy.quorum_of(all);
  const Micros training = steps[static_cast<size_t>(awaited) - 1] * s.schedule.every;
  const Micros wire = 2 * s.link.delay;
  return static_cast<double>(s.policy.staleness == 0 ? training + wire : std::max(training, wire));
}

// How long training takes at least, in microseconds: a node runs ahead by s + 1 intervals at most.
double training_time(const Scenario& s, int64_t rounds) {
  const auto interval = static_cast<double>(s.schedule.every);
  const double most = (s.policy.staleness + 1) * interval / round_time(s);
  double steps = 0;  // of all nodes, in a microsecond
  for (const NodeProfile& node : s.nodes)
    steps += std::min(1 / static_cast<double>(node.step), most);
  return static_cast<double>(rounds) * interval * static_cast<double>(s.nodes.size()) / steps;
}

void set_length(Scenario& s, int64_t rounds, Random& random) {
  s.samples_per_step = random.between(1, 4);
  s.schedule.adaptation.steps = rounds * s.schedule.every;
  s.total_samples =
      s.schedule.adaptation.steps * static_cast<int64_t>(s.nodes.size()) * s.samples_per_step;
  s.faults = Faults(s, static_cast<Micros>(training_time(s, rounds)), random.fork(2)).make();
}

void set_clock(NodeProfile& node, Random& random) {
  node.unevenness = random.chance(0.5) ? random.uniform(0, 0.3) : 0;
  node.clock_start = random.between(0, 1'000'000'000);
  node.clock_parts = random.between(-1000, 1000);
}

TierConfig random_tier(Random& random, int nodes) {
  TierConfig tier;
  tier.name = "site";
  tier.size = nodes;
  tier.every = random.between(1, 5);
  tier.strategy = random.chance(0.1) ? Strategy::periodic : Strategy::delayed;
  if (tier.strategy == Strategy::periodic) return tier;
  tier.staleness = static_cast<int>(random.between(0, 3));
  if (tier.staleness > 0 && random.chance(0.8))
    tier.deadline = static_cast<double>(random.between(120, 600)) * 1e-3;
  if (random.chance(0.15)) tier.quorum = kQuorumAll;
  if (random.chance(0.15)) tier.quorum = static_cast<int>(random.between(1, nodes));
  tier.late = static_cast<Late>(random.between(0, 2));
  if (random.chance(0.2)) tier.outer = {0.7, 0.5, random.chance(0.5)};
  return tier;
}

template <class T, size_t n>
T one_of(const T (&choice)[n], Random& random) {
  return choice[random.between(0, n - 1)];
}

CodecOptions random_codec(CodecKind kind, Random random) {
  CodecOptions codec;
  codec.kind = kind;
  codec.levels = one_of({3, 5, 7}, random);
  codec.density = one_of({1.0 / 64, 0.05, 0.25}, random);
  codec.value_bits = one_of({16, 8, 4, 2, 1}, random);
  codec.selection = one_of({Selection::chunks, Selection::threshold}, random);
  codec.residual = one_of({Residual::automatic, Residual::local, Residual::buffer}, random);
  codec.gamma = random.chance(0.5) ? 1 : 0.9;
  codec.error_feedback = random.chance(0.7) ? 1 : 0.9;
  if (codec.residual != Residual::local && random.chance(0.15)) codec.error_feedback = 0;
  return codec;
}

// From numbers of their own, which disturb nothing else.
CodecKind random_kind(uint64_t seed) {
  Random random = Random(seed).fork(20);
  if (!random.chance(1.0 / 3)) return CodecKind::fp32;
  return static_cast<CodecKind>(random.between(1, static_cast<int64_t>(CodecKind::top_k)));
}

std::string in_words(const CodecOptions& c) {
  static constexpr std::string_view kKinds[] = {"fp32", "bf16", "fp16",   "int8", "int4",
                                                "int2", "sign", "levels", "top_k"};
  static constexpr std::string_view kPlaces[] = {"auto", "local", "buffer"};
  std::string text(kKinds[static_cast<size_t>(c.kind)]);
  if (c.kind == CodecKind::fp32) return text;
  if (c.kind == CodecKind::levels) (text += " ") += std::to_string(c.levels);
  if (c.kind == CodecKind::top_k) {
    (text += " ") += number_text(c.density) + " of " + std::to_string(c.value_bits) + " bits by ";
    text += c.selection == Selection::chunks ? "chunks" : "threshold";
  }
  (text += " (residual ") += kPlaces[static_cast<size_t>(c.residual)];
  (text += ", error_feedback ") += number_text(c.error_feedback);
  return (text += ", gamma ") += number_text(c.gamma) + ")";
}

// Of a third of the seeds; from numbers of its own.
Adaptation random_adaptation(uint64_t seed, int64_t every) {
  Random random = Random(seed).fork(23);
  Adaptation adaptation;
  if (!random.chance(1.0 / 3)) return adaptation;
  adaptation.rule = static_cast<Adapt>(random.between(1, static_cast<int64_t>(Adapt::adacomm)));
  adaptation.least = random.between(1, every);
  adaptation.most = every * random.between(1, 6);
  return adaptation;
}

std::string in_words(const Adaptation& a) {
  static constexpr std::string_view kRules[] = {"off",  "divergence", "loss",
                                                "grow", "qsr",        "adacomm"};
  if (a.rule == Adapt::off) return "";
  return " (" + std::string(kRules[static_cast<size_t>(a.rule)]) + ", " + std::to_string(a.least) +
         " to " + std::to_string(a.most) + ")";
}

Link random_link(Random& random) {
  static constexpr Micros kDelays[] = {50, 500, 5 * kMilli, 30 * kMilli};
  Link link;
  link.delay = kDelays[static_cast<size_t>(random.between(0, 3))];
  link.jitter = random.chance(0.7) ? random.between(0, link.delay) : 0;
  link.straggling = random.chance(0.3) ? random.uniform(0, 0.05) : 0;
  if (random.chance(0.3)) link.bytes_per_second = random.uniform(5e4, 1e6);
  return link;
}

void check_nodes(const Config& config) {
  const bool gradients =
      config.outer_tier().strategy == Strategy::every_step || config.start.every_step > 0;
  if (config.nodes() > 1 && gradients)
    throw ConfigError(config.source +
                      ": rounds of gradients are not simulated, only those of parameters; give "
                      "--set start.every_step=0, and a strategy other than \"every_step\"");
  if (config.nodes() > 1 && config.outer_tier().outer.lr == kAutoLr)
    throw ConfigError(config.source +
                      ": tier[1].outer.lr = \"auto\" is not simulated; give --set "
                      "tier.1.outer.lr=1");
  if (config.nodes() > 1) return;
  throw ConfigError(config.source +
                    ": joins one node only, so there is nothing between nodes to simulate; add a "
                    "[[tier]] with a size of 2 or more");
}

// Without views a node that is gone ends the run, as it should: nothing to find there.
void check_faults(const Config& config, const Scenario& s) {
  for (const Fault& f : s.faults) {
    const auto possible = kinds(Severity::wild, s.views);
    if (std::count(possible.begin(), possible.end(), f.kind)) continue;
    throw ConfigError(config.source +
                      ": tier[1].deadline = \"none\": nodes that go are not replaced "
                      "by a new view then, and " +
                      std::string(name(f.kind)) +
                      " ends the run; set a deadline, or leave that fault out");
  }
}

// Enough for every fault to happen while there is training, except those that are too far away: a
// million events at the most.
int64_t rounds_for(const Scenario& s, const std::vector<Fault>& faults) {
  constexpr int64_t kLeast = 20, kMostEvents = 1'000'000;
  const auto nodes = static_cast<int64_t>(s.nodes.size());
  const auto fragments = static_cast<int64_t>(s.table.fragments.size());
  const int64_t most = kMostEvents / (nodes * (2 * s.schedule.every + 8 * fragments));
  const double one = training_time(s, 1);
  int64_t rounds = kLeast;
  for (const Fault& f : faults) {
    for (const Micros until : {f.at, f.at + f.lasts}) {
      const double needed = kLeast + 2 * static_cast<double>(until) / one;
      if (needed <= static_cast<double>(most))
        rounds = std::max(rounds, static_cast<int64_t>(needed));
    }
  }
  return rounds;
}

Scenario configured(const Config& config, uint64_t seed, Random& random) {
  check_nodes(config);
  const TierConfig tier = config.outer_tier();
  Scenario s;
  s.seed = seed;
  const auto half = static_cast<Micros>(std::llround(tier.emulate.rtt * 5e5));
  s.link.delay = std::max<Micros>(50, half);
  s.link.jitter = s.link.delay / 10;
  s.link.bytes_per_second = tier.emulate.rate / 8;
  set_rules(s, config, 2 * half);
  if (const std::string why = unsuitable(config, s.policy); !why.empty()) throw ConfigError(why);
  s.views = tier.deadline > 0;
  for (int n = 0; n < config.nodes(); ++n) {
    NodeProfile node;
    const double seconds = tier.emulate.step > 0 ? tier.emulate.step_seconds(n) : 0;
    node.step = seconds > 0 ? std::max<Micros>(1, std::llround(seconds * 1e6)) : kUsualStep;
    set_clock(node, random);
    s.nodes.push_back(node);
  }
  s.problem = make_problem(config.nodes(), s.codec, random);
  const int fragments = std::min(std::max(config.nodes(), tier.parts), kMostFragments);
  s.table = cut(s.problem->parameters(), config.nodes(), fragments, tier.parts);
  return s;
}

}  // namespace

std::string Scenario::to_text() const {
  static constexpr std::string_view kLate[] = {"fold", "return", "drop"};
  const auto ms = [](Micros t) { return number_text(static_cast<double>(t) / 1000) + " ms"; };
  std::string text = std::to_string(nodes.size()) + " nodes, " +
                     std::to_string(table.fragments.size()) + " fragments, " +
                     std::to_string(table.parts()) + " parts, K " + std::to_string(schedule.every) +
                     in_words(schedule.adaptation) + ", staleness " +
                     std::to_string(policy.staleness) + ", deadline " +
                     (policy.deadline > 0 ? ms(policy.deadline) : "none") + ", quorum " +
                     std::to_string(policy.quorum_of(static_cast<int>(nodes.size()))) + ", late " +
                     std::string(kLate[static_cast<size_t>(policy.late)]) +
                     (views ? ", views" : ", no views") + ", delay " + ms(link.delay) + " + " +
                     ms(link.jitter) + ", codec " + in_words(codec) + "; steps";
  for (const NodeProfile& n : nodes) (text += " ") += ms(n.step);
  return text;
}

Scenario random_scenario(uint64_t seed) { return random_scenario(seed, random_kind(seed)); }

Scenario random_scenario(uint64_t seed, CodecKind codec) {
  Random random(seed);
  const int nodes = static_cast<int>(random.between(2, 6));
  Config config;
  config.tiers = {TierConfig{}, random_tier(random, nodes)};
  if (codec != CodecKind::fp32) config.tiers[1].codec = random_codec(codec, Random(seed).fork(21));
  Scenario s;
  s.seed = seed;
  s.link = random_link(random);
  set_rules(s, config, 2 * s.link.delay + s.link.jitter);
  const Micros step = random.between(1 * kMilli, 20 * kMilli);
  for (int n = 0; n < nodes; ++n) {
    NodeProfile node;
    node.step = random.chance(0.2) ? step * random.between(2, 6) : step;
    set_clock(node, random);
    s.nodes.push_back(node);
  }
  s.views = s.policy.deadline > 0 || random.chance(0.4);
  s.severity = severity(random);
  s.problem = make_problem(nodes, s.codec, random);
  Random other = Random(seed).fork(22);  // which disturbs nothing else
  const int64_t parts = other.chance(0.5) ? other.between(1, s.schedule.every) : 1;
  s.table = cut(s.problem->parameters(), nodes, static_cast<int>(random.between(1, kMostFragments)),
                parts);
  if (s.table.parts() == 1) s.schedule.adaptation = random_adaptation(seed, s.schedule.every);
  set_length(s, random.between(15, 60), random);
  return s;
}

Scenario random_scenario(const Config& config, uint64_t seed) {
  Random random(seed);
  Scenario s = configured(config, seed, random);
  s.severity = severity(random);
  set_length(s, random.between(40, 120), random);
  return s;
}

Scenario scripted_scenario(const Config& config, std::vector<Fault> faults, uint64_t seed) {
  Random random(seed);
  Scenario s = configured(config, seed, random);
  set_length(s, rounds_for(s, faults), random);
  s.faults = std::move(faults);
  check_faults(config, s);
  return s;
}

}  // namespace hybridsync
