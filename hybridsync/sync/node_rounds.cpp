#include "hybridsync/sync/node_rounds.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "hybridsync/config/error.h"
#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/sync/round_trip.h"
#include "hybridsync/wire/zmq_exchange.h"

namespace hybridsync {
namespace {

constexpr size_t kHeaderBytes = 4096;  // the largest header of a message, roster included
constexpr size_t kLinkBytes = 128;
constexpr size_t kStandingBytes = 64;  // of a fragment in a heartbeat or a view

FragmentTable make_table(const Config& config, const Layout& layout) {
  const TierConfig tier = config.outer_tier();
  return plan_parts(layout.count_f32, layout.count_f64, config.nodes(), config.ranks_per_node(),
                    tier.fragment_bytes, tier.parts, config.train.seed);
}

// The flat ranges of each fragment, as fragments of their own.
std::vector<std::vector<Fragment>> find_pieces(const FragmentTable& table) {
  std::vector<std::vector<Fragment>> pieces;
  for (const Fragment& f : table.fragments) {
    pieces.emplace_back();
    for (const Piece& piece : table.pieces(f))
      pieces.back().push_back({f.id, f.type, piece.offset, piece.count, f.part});
  }
  return pieces;
}

std::vector<Values> place(const FragmentTable& table, NodeMemory& memory) {
  size_t bytes = 0;
  for (const Fragment& f : table.fragments) bytes += (f.bytes() + 63) / 64 * 64;
  const auto common = memory.allocate_common(std::max<size_t>(bytes, 64));
  std::vector<Values> places;
  size_t at = 0;
  for (const Fragment& f : table.fragments) {
    places.push_back(values_at(common.data() + at, f.type, f.count));
    at += (f.bytes() + 63) / 64 * 64;
  }
  return places;
}

ZmqOptions zmq_options(const Config& config, const Environment& environment,
                       const FragmentTable& table, size_t side_bytes, Wires& wires) {
  const auto roster = static_cast<size_t>(config.nodes() * (config.outer_tier().staleness + 2));
  ZmqOptions options;
  options.run_id = environment.run_id;
  options.node = environment.node;
  options.nodes = config.nodes();
  options.lane = environment.local_rank;
  options.ranks_per_node = config.ranks_per_node();
  options.max_message_bytes = 2 * static_cast<size_t>(table.largest_bytes()) + side_bytes +
                              kHeaderBytes + 2 * sizeof(RosterEntry) * roster +
                              kStandingBytes * table.fragments.size();
  options.emulate = config.outer_tier().emulate;
  options.link = wires.memory->allocate_common(kLinkBytes);
  return options;
}

// The policy that follows from the slowest round trip between any two nodes.
Policy agreed_policy(const Config& config, Exchange& exchange, Wires& wires,
                     const Patience& patience) {
  if (config.outer_tier().staleness == 0) return make_policy(config, 0);
  Micros mine = 0;
  require(measure_round_trip(exchange, patience, mine));
  Writer writer;
  writer.i64(mine);
  Micros slowest = 0;
  for (const Bytes& bytes : wires.rendezvous->all_gather("round trip", writer.take()))
    slowest = std::max<Micros>(slowest, Reader(bytes).i64());
  const Policy policy = make_policy(config, slowest);
  if (const std::string why = unsuitable(config, policy); !why.empty()) throw ConfigError(why);
  return policy;
}

// Whether some parameters of single precision in here hold less than that.
bool narrower(const FragmentTable& table, const Replica& replica) {
  return std::any_of(table.fragments.begin(), table.fragments.end(), [&](const Fragment& f) {
    if (f.type != Real::f32) return false;
    const std::vector<float> whole(static_cast<size_t>(f.count),
                                   1.0f + std::numeric_limits<float>::epsilon());
    std::vector<float> held = whole;
    replica.round(f, std::span<float>(held));
    return held != whole;
  });
}

// The codec as configured, where this model's parameters can be coded so.
CodecOptions suitable_codec(const Config& config, const FragmentTable& table,
                            const Replica& replica) {
  CodecOptions codec = config.outer_tier().codec;
  if (config.nodes() == 1) return {};  // nothing travels
  if (codec.kind == CodecKind::fp32) return codec;
  for (const Fragment& f : table.fragments)
    if (f.type == Real::f64 && f.count > 0)
      throw ConfigError(config.source +
                        ": tier[1].codec is for parameters in single precision, and this model "
                        "has some in double; set codec = \"fp32\", which leaves them as they are");
  if (config.outer_tier().strategy != Strategy::every_step && !narrower(table, replica))
    return codec;
  if (codec.residual == Residual::local)
    throw ConfigError(config.source +
                      ": tier[1].residual = \"local\" needs parameters in single precision, and "
                      "this model has some in half; set residual = \"buffer\"");
  codec.residual = Residual::buffer;
  return codec;
}

}  // namespace

NodeRounds::NodeRounds(const Config& config, const Environment& environment, const Layout& layout,
                       size_t side_bytes, Wires& wires, Replica& replica, Patience patience)
    : statistics_(config.batch_norm.at_sync),
      wires_(wires),
      replica_(replica),
      patience_(std::move(patience)),
      table_(make_table(config, layout)),
      schedule_(make_schedule(config)),
      lane_(environment.local_rank),
      node_number_(environment.node),
      side_bytes_(side_bytes),
      pieces_(find_pieces(table_)),
      shared_(place(table_, *wires.memory)),
      pull_(config.nodes() > 1 ? config.outer_tier().momentum_pull : 0),
      loss_(std::numeric_limits<double>::quiet_NaN()) {
  CodecOptions codec = suitable_codec(config, table_, replica);
  codec.small_tensors = small_tensor_code(codec, layout);
  momentum_at_sender_ = codec.momentum_correction;
  const SenderMomentum momentum = momentum_at_sender_ ? replica.take_momentum() : SenderMomentum{};
  if (pull_ > 0) {
    means_ = place(table_, *wires.memory);
    has_mean_ = wires.memory->allocate_common(table_.fragments.size());
  }
  mode_ = schedule_.mode(0);
  interval_ = interval_before_ = schedule_.interval(0);
  const size_t lanes = static_cast<size_t>(table_.lanes);
  const size_t of_a_lane = (table_.fragments.size() + lanes - 1) / lanes;
  lane_bytes_ = lane_report_bytes(of_a_lane, config.nodes(), config.outer_tier().staleness);
  board_ = wires.memory->allocate_common(8 + round_report_bytes(lane_bytes_, side_bytes_));
  Patience start = patience_;
  start.limit = std::chrono::milliseconds(static_cast<int64_t>(1e3 * config.node_tier().timeout));
  auto exchange = make_zmq_exchange(zmq_options(config, environment, table_, side_bytes, wires),
                                    *wires.rendezvous, start);
  policy_ = agreed_policy(config, *exchange, wires, start);
  Lane::Options options;
  options.run_id = environment.run_id;
  options.self = {node_number_, 0};
  options.lane = lane_;
  options.table = table_;
  options.schedule = schedule_;
  options.policy = policy_;
  options.outer = config.outer_tier().outer;
  options.codec = codec;
  options.small = small_tensors(layout, table_, codec);
  options.tells_means = pull_ > 0;
  std::erase_if(options.small, [&](const auto& s) { return table_.lane(s.first) != lane_; });
  coders_ = Coders(codec, options.small);
  options.statistics = statistics_;
  options.heartbeats = policy_.staleness > 0;
  rounds_ = std::make_unique<Rounds>(std::move(options), std::move(exchange));
  for (int f : rounds_->fragments()) {
    const Fragment& fragment = table_.fragments[f];
    const Schedule schedule = schedule_.of_part(fragment.part, table_.parts());
    const auto round = [this, f](Values values) { round_in_place(f, values); };
    accounts_.emplace(f, Account(fragment, node_number_, policy_.staleness, schedule,
                                 rounds_->desk(), round, coders_.of(f), momentum));
  }
  set_anchor_if_due();
}

// The first anchor is the parameters that all nodes share at this moment; the first round checks
// the hash.
void NodeRounds::set_anchor_if_due() {
  if (mode_ != Mode::delta || anchored_) return;
  for (auto& [f, account] : accounts_)
    account.set_anchor(as_const(parameters(account.fragment(), memory_)));
  if (pull_ > 0) replica_.begin_momentum_pull();
  anchored_ = true;
}

Account* NodeRounds::account(int fragment) {
  const auto found = accounts_.find(fragment);
  return found == accounts_.end() ? nullptr : &found->second;
}

// --- gradient mode

bool NodeRounds::carries_over() const {
  const bool codes = coders_.options().kind != CodecKind::fp32 && schedule_.coded(gradient_rounds_);
  return mode_ == Mode::gradient && (codes || momentum_at_sender_);
}

RoundOutcome NodeRounds::gradient_round(const Contribution& draft, const Gradients& flat,
                                        const SideData& side) {
  for (auto& [f, account] : accounts_) {
    Contribution c = draft;
    c.anchor_hash = hash_of(as_const(parameters(account.fragment(), memory_)));
    const bool with_side = f == 0 && draft.weight > 0;
    account.contribute_gradient(c, as_const(flat.of(account.fragment())),
                                with_side ? &side : nullptr);
  }
  const Outcome waited = wait_until([](const Account& a) { return a.has_news(); }, Calls::ignore);
  if (waited.ok())
    for (auto& [f, account] : accounts_) take(f);
  agree(waited);
  ++gradient_rounds_;
  if (newest_.weight > 0)
    for (const Fragment& f : table_.fragments) copy(as_const(shared_[f.id]), flat.of(f));
  everybody_has_read();
  return {newest_.weight, newest_.samples, std::exchange(side_, std::nullopt)};
}

// --- delta mode

LaneReport NodeRounds::report() const {
  if (!may_lag() || mode_ != Mode::delta) return {};
  LaneReport report = lane_report();
  report.moved = with_news();
  const Outcome failure = rounds_->desk().failure();
  report.why = failure.why.substr(0, kWhyBytes);
  for (const auto& [f, account] : accounts_) report.wait = report.wait || account.will_wait(1);
  return report;
}

std::vector<int> NodeRounds::with_news() const {
  std::vector<int> fragments;
  for (const auto& [f, account] : accounts_)
    if (account.has_news()) fragments.push_back(f);
  return fragments;
}

void NodeRounds::boundary(const Learned& learned, const LaneReport& node, bool finished) {
  assert(anchored_);
  throw_if_over(node);
  for (auto& [f, account] : accounts_) account.step(learned);
  ++steps_;
  ++steps_since_result_;
  if (may_lag()) node_ = node;
  if (!node.moved.empty()) apply(node.moved);
  contribute(false, finished);
  // Where every round makes training wait, all ranks know by counting.
  const bool waits = may_lag() ? node.wait : is_due();
  if (waits) wait_while_stuck();
}

// Is a part, where all rounds make training wait?
bool NodeRounds::is_due() const {
  if (schedule_.adapts()) return steps_since_result_ >= interval_;
  const int parts = table_.parts();
  for (int part = 0; part < parts; ++part)
    if (schedule_.of_part(part, parts).due(steps_)) return true;
  return false;
}

void NodeRounds::leave_round() {
  assert(anchored_);
  if (may_lag()) return leave_alone();
  contribute(true, true);
  exchange_news([](const Account& a) { return a.has_news() || a.finished(); });
}

// Every lane stays for the other nodes by itself until its fragments are finished; then the ranks
// agree once. A lane that waited for its node's other ranks meanwhile could only abstain.
void NodeRounds::leave_alone() {
  Outcome waited;
  while (waited.ok() && !lane_finished()) {
    contribute(true, true);
    // What is left is offered here, and nothing is offered in answer to a call.
    waited = wait_until(
        [](const Account& a) {
          return a.has_news() || a.finished() ||
                 (a.position().unresolved() == 0 && a.may_contribute());
        },
        Calls::ignore);
    if (!waited.ok()) break;
    for (int f : with_news()) {
      take(f);
      write_back(f);
    }
  }
  agree(waited);
  take_over(node_.moved);
}

bool NodeRounds::lane_finished() const {
  return std::all_of(accounts_.begin(), accounts_.end(),
                     [](const auto& a) { return a.second.finished(); });
}

// News of these fragments is there, and every rank knows: their endpoints put the parameters into
// the node's memory.
void NodeRounds::apply(const std::vector<int>& fragments) {
  for (int f : fragments)
    if (account(f)) take(f);
  if (lane_ == 0) {
    Writer writer;
    write(fresh_, writer);
    const uint64_t length = writer.view().size();
    std::memcpy(board_.data(), &length, sizeof length);
    std::memcpy(board_.data() + sizeof length, writer.view().data(), length);
  }
  require(wires_.group->barrier());
  uint64_t length = 0;
  std::memcpy(&length, board_.data(), sizeof length);
  Reader reader(ByteSpan(board_.data() + sizeof length, length));
  take_summary(read_round_report(reader));
  take_over(fragments);
}

// An endpoint's part. What no news moved is what the parameters are.
void NodeRounds::take(int f) {
  Account& one = *account(f);
  const Values theta =
      mode_ == Mode::delta ? parameters(one.fragment(), memory_) : scratch(one.fragment(), memory_);
  const Account::Change change = one.apply(as_const(theta), shared_[f]);
  if (pull_ > 0) {
    if (change.mean) copy(*change.mean, means_[f]);
    has_mean_[f] = std::byte{change.mean.has_value()};
  }
  if (mode_ == Mode::delta && !change.moved) copy(as_const(theta), shared_[f]);
  if (std::find(moved_.begin(), moved_.end(), f) == moved_.end()) moved_.push_back(f);
  if (f != 0) return;
  fresh_.summary.own_dropped += change.dropped_samples;
  if (!change.advanced) return;
  const Result& r = change.newest;
  RoundSummary& summary = fresh_.summary;
  summary.weight = r.weight;
  summary.samples += change.samples;
  summary.total_samples = r.total_samples;
  summary.own_samples += change.own_samples;
  summary.rounds += change.rounds;
  summary.contributors = static_cast<int64_t>(r.roster.size());
  summary.age = change.age;
  summary.loss_sum = r.loss_sum;
  summary.loss_weight = r.loss_weight;
  summary.advanced = true;
  summary.next_mode = r.next_mode;
  summary.next_interval = r.next_interval;
  summary.drift = r.drift;
  if (!change.side) return;
  fresh_.has_side = true;
  fresh_.side = *change.side;
}

void NodeRounds::take_over(const std::vector<int>& moved) {
  for (int f : moved) {
    write_back(f);
    if (pull_ > 0) pull_momentum(f);
  }
  everybody_has_read();
  if (side_) replica_.set_running_statistics(*side_);
  side_.reset();
}

// Only then may a lane write there again.
void NodeRounds::everybody_has_read() {
  require(wires_.group->barrier());
  moved_.clear();
  fresh_ = {};
}

// All fragments or those that are due.
void NodeRounds::contribute(bool all, bool finished) {
  for (auto& [f, account] : accounts_) {
    const bool settled = account.position().unresolved() == 0;
    const bool last = finished && settled;
    // Nothing is offered only while nothing is open: otherwise there would always be something,
    // and nobody would ever have finished.
    const bool due =
        all ? settled || account.position().steps() > 0 : account.wants_to_contribute();
    if (due && !account.finished()) offer(account, last);
  }
}

// A round of one fragment may wait for this node while it waits for another's: two nodes could wait
// for each other for ever.
void NodeRounds::answer_calls() {
  for (auto& [f, account] : accounts_)
    if (account.should_answer() && !account.finished()) offer(account, false);
}

void NodeRounds::offer(Account& account, bool last) {
  const double weight = account.position().since().weight;
  const bool with_side =
      account.fragment().id == 0 && weight > 0 && statistics_ != StatsAtSync::none;
  SideData statistics;
  if (with_side) statistics = replica_.running_statistics(weight);
  account.contribute(as_const(parameters(account.fragment(), memory_)), last,
                     with_side ? &statistics : nullptr);
}

bool NodeRounds::stuck() const {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [](const auto& a) { return a.second.will_wait(0); });
}

// Until no rank's lane keeps training from going on.
void NodeRounds::wait_while_stuck() {
  do {
    exchange_news([](const Account& a) { return a.has_news() || !a.must_wait(); });
    contribute(false, false);
  } while (node_.wait);
}

// Waits until this is so for all of the lane's fragments, and applies together with the other ranks
// what has come.
void NodeRounds::exchange_news(bool (*enough)(const Account&)) {
  const Outcome waited = wait_until(enough, Calls::answer);
  if (waited.ok())
    for (int f : with_news()) take(f);
  agree(waited);
  take_over(node_.moved);
}

Outcome NodeRounds::wait_until(bool (*enough)(const Account&), Calls calls) {
  const auto all = [&] {
    if (may_lag() && anchored_) {
      if (calls == Calls::answer) answer_calls();
      // What has come back may have to be offered again before another fragment can go on.
      if (!with_news().empty()) return true;
    }
    return std::all_of(accounts_.begin(), accounts_.end(),
                       [&](const auto& a) { return enough(a.second); });
  };
  return rounds_->desk().wait(all, patience_, [this] { return node_alive(); });
}

// --- what the ranks tell each other

LaneReport NodeRounds::lane_report() const {
  LaneReport report;
  const auto counters = rounds_->counters();
  report.bytes_sent = counters.bytes_sent;
  report.bytes_received = counters.bytes_received;
  report.finished = lane_finished();
  report.ledger = rounds_->desk().ledger();
  report.coding = coders_.costs();
  report.coding += rounds_->desk().coding();
  return report;
}

RoundReport NodeRounds::round_report(const Outcome& waited) const {
  RoundReport report = fresh_;
  report.lane = lane_report();
  report.lane.why = waited.why.substr(0, kWhyBytes);
  report.lane.interrupted = waited.kind == Outcome::Kind::interrupted;
  report.lane.moved = moved_;
  report.lane.wait = waited.ok() && stuck();
  return report;
}

void NodeRounds::throw_if_over(const LaneReport& node) const {
  if (node.why.empty()) return;
  if (node.interrupted) throw Interrupted(node.why);
  throw RunEnded(node.why);
}

void NodeRounds::agree(const Outcome& waited) {
  Writer writer;
  write(round_report(waited), writer);
  // A rank that still waits for another node is not silent, however long that takes.
  wires_.group->set_phase("which still takes part in a round with other nodes", false);
  if (may_lag()) set_busy(true);  // calls are answered by the comm thread meanwhile
  const auto gathered =
      gather(*wires_.group, writer.view(), round_report_bytes(lane_bytes_, side_bytes_));
  wires_.group->set_phase("", true);
  if (may_lag()) set_busy(false);
  std::vector<LaneReport> lanes;
  for (size_t rank = 0; rank < gathered.size(); ++rank) {
    Reader reader(gathered[rank]);
    RoundReport report = read_round_report(reader);
    lanes.push_back(report.lane);
    if (rank == 0) take_summary(report);
  }
  node_ = merge(lanes);
  throw_if_over(node_);
}

void NodeRounds::take_summary(const RoundReport& report) {
  const RoundSummary& s = report.summary;
  own_dropped_ += s.own_dropped;
  if (!s.advanced) return;
  newest_ = s;
  steps_since_result_ = 0;
  mode_ = s.next_mode;
  interval_before_ = std::exchange(interval_, s.next_interval);
  if (schedule_.adapts())
    for (auto& [f, account] : accounts_) account.set_interval(interval_);
  samples_ = s.total_samples;
  own_samples_ += s.own_samples;
  rounds_count_ += s.rounds;
  if (s.loss_weight > 0) loss_ = s.loss_sum / s.loss_weight;
  if (report.has_side) side_ = report.side;
}

double NodeRounds::samples_of_others() const {
  const double rounds = std::max<double>(1, static_cast<double>(newest_.rounds));
  const double others = static_cast<double>(newest_.samples - newest_.own_samples) / rounds;
  const auto steps = static_cast<double>(std::min(steps_since_result_, interval_));
  return others * steps / static_cast<double>(interval_before_);
}

Values NodeRounds::scratch(const Fragment& fragment, std::vector<std::byte>& memory) const {
  if (memory.size() < static_cast<size_t>(fragment.bytes())) memory.resize(fragment.bytes());
  return values_at(memory.data(), fragment.type, fragment.count);
}

Values NodeRounds::parameters(const Fragment& fragment, std::vector<std::byte>& memory) const {
  const Values values = scratch(fragment, memory);
  each_piece(fragment.id, [&](const Fragment& piece, size_t at) {
    replica_.read(piece, subspan(values, at, piece.count));
  });
  return values;
}

// What the node's ranks agreed on becomes parameters.
void NodeRounds::write_back(int f) {
  each_piece(f, [&](const Fragment& piece, size_t at) {
    replica_.write(piece, as_const(subspan(shared_[f], at, piece.count)));
  });
}

void NodeRounds::pull_momentum(int f) {
  if (has_mean_[f] != std::byte{0})
    replica_.pull_momentum(pieces_[static_cast<size_t>(f)], as_const(means_[f]), pull_);
}

void NodeRounds::round_in_place(int f, Values values) const {
  each_piece(f, [&](const Fragment& piece, size_t at) {
    replica_.round(piece, subspan(values, at, piece.count));
  });
}

Outcome NodeRounds::node_alive() const {
  for (int r = 0; r < wires_.memory->size(); ++r)
    if (!wires_.memory->alive(r))
      return {Outcome::Kind::peer_lost, r,
              "rank " + std::to_string(r) + " of node " + std::to_string(node_number_) +
                  " is gone: its node waited for a round"};
  return {};
}

}  // namespace hybridsync
