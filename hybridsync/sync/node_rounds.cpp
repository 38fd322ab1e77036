#include "hybridsync/sync/node_rounds.h"

#include <cassert>
#include <cmath>
#include <limits>

#include "hybridsync/config/error.h"
#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/wire/zmq_exchange.h"

namespace hybridsync {
namespace {

constexpr size_t kReportBytes = 256 + kWhyBytes;  // without side data
constexpr size_t kHeaderBytes = 4096;  // the largest header of a message, roster included
constexpr size_t kLinkBytes = 128;

FragmentTable make_table(const Config& config, const Layout& layout) {
  return plan_fragments(layout.count_f32, layout.count_f64, config.nodes(), config.ranks_per_node(),
                        config.outer_tier().fragment_bytes);
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

}  // namespace

NodeRounds::NodeRounds(const Config& config, const Environment& environment, const Layout& layout,
                       size_t side_bytes, Wires& wires, Replica& replica, Patience patience)
    : statistics_(config.batch_norm.at_sync),
      wires_(wires),
      replica_(replica),
      patience_(std::move(patience)),
      table_(make_table(config, layout)),
      lane_(environment.local_rank),
      node_(environment.node),
      report_bytes_(kReportBytes + side_bytes),
      agreed_(place(table_, *wires.memory)),
      loss_(std::numeric_limits<double>::quiet_NaN()) {
  const Schedule schedule = make_schedule(config);
  mode_ = schedule.mode(0);
  interval_ = schedule.interval(0);
  ZmqOptions options;
  options.run_id = environment.run_id;
  options.node = node_;
  options.nodes = config.nodes();
  options.lane = lane_;
  options.ranks_per_node = config.ranks_per_node();
  options.max_message_bytes = table_.largest_bytes() + side_bytes + kHeaderBytes +
                              sizeof(RosterEntry) * static_cast<size_t>(config.nodes());
  options.emulate = config.outer_tier().emulate;
  options.link = wires.memory->allocate_common(kLinkBytes);
  Patience start = patience_;
  start.limit = std::chrono::milliseconds(static_cast<int64_t>(1e3 * config.node_tier().timeout));
  rounds_ =
      std::make_unique<Rounds>(Rounds::Options{environment.run_id, node_, lane_, table_, schedule,
                                               config.outer_tier().outer, statistics_},
                               make_zmq_exchange(options, *wires.rendezvous, start), agreed_);
  set_anchor_if_due();
}

// The first anchor is the parameters that all nodes share at this moment; the first round checks
// the hash.
void NodeRounds::set_anchor_if_due() {
  if (mode_ != Mode::delta || anchored_) return;
  for (int f : rounds_->fragments()) replica_.read(table_.fragments[f], agreed_[f]);
  require(wires_.group->barrier());
  anchored_ = true;
}

RoundOutcome NodeRounds::gradient_round(const Contribution& draft, const Gradients& flat,
                                        const SideData& side) {
  for (int f : rounds_->fragments()) {
    const Fragment& fragment = table_.fragments[f];
    Contribution c = draft;
    c.anchor_hash = hash_of(as_const(parameters(fragment, memory_a_)));
    const bool with_side = f == 0 && draft.weight > 0;
    rounds_->contribute(f, c, as_const(flat.of(fragment)), with_side ? &side : nullptr);
  }
  RoundOutcome outcome = agree(rounds_->wait(patience_, [this] { return node_alive(); }));
  if (outcome.weight > 0)
    for (const Fragment& f : table_.fragments) copy(as_const(agreed_[f.id]), flat.of(f));
  everybody_has_read();
  return outcome;
}

RoundOutcome NodeRounds::delta_round(const Contribution& draft) {
  assert(anchored_);
  const SideData statistics = replica_.running_statistics(draft.weight);
  for (int f : rounds_->fragments()) {
    const Fragment& fragment = table_.fragments[f];
    const Values anchor = scratch(fragment, memory_a_);
    copy(as_const(agreed_[f]), anchor);
    Contribution c = draft;
    c.anchor_hash = hash_of(as_const(anchor));
    replica_.round(fragment, anchor);
    const Values delta = parameters(fragment, memory_b_);
    subtract(as_const(anchor), as_const(delta), delta);
    c.squared_norm = squared_norm(as_const(delta));
    if (!std::isfinite(c.squared_norm)) c.weight = 0;
    const bool with_side = f == 0 && draft.weight > 0 && statistics_ != StatsAtSync::none;
    rounds_->contribute(f, c, as_const(delta), with_side ? &statistics : nullptr);
  }
  RoundOutcome outcome = agree(rounds_->wait(patience_, [this] { return node_alive(); }));
  for (const Fragment& f : table_.fragments) replica_.write(f, as_const(agreed_[f.id]));
  everybody_has_read();
  if (outcome.side) replica_.set_running_statistics(*outcome.side);
  return outcome;
}

// Only then may a lane write into what is agreed on, in its next round or as the first anchor.
void NodeRounds::everybody_has_read() { require(wires_.group->barrier()); }

RoundReport NodeRounds::report(const Outcome& waited) const {
  RoundReport report;
  report.why = waited.why;
  report.interrupted = waited.kind == Outcome::Kind::interrupted;
  const auto counters = rounds_->counters();
  report.bytes_sent_slow = counters.bytes_sent;
  report.bytes_received_slow = counters.bytes_received;
  if (lane_ != 0 || !waited.ok()) return report;
  const Result& r = rounds_->result(0);
  report.weight = r.weight;
  report.samples = r.samples;
  report.loss_sum = r.loss_sum;
  report.loss_weight = r.loss_weight;
  report.finished = r.finished;
  report.next_mode = r.next_mode;
  report.next_interval = r.next_interval;
  if (const auto& side = rounds_->side(0)) {
    report.has_side = true;
    report.side = *side;
  }
  return report;
}

RoundOutcome NodeRounds::agree(const Outcome& waited) {
  Writer writer;
  write(report(waited), writer);
  std::vector<RoundReport> reports;
  // A rank that still waits for another node is not silent, however long that takes.
  wires_.group->set_phase("which still takes part in a round with other nodes", false);
  const auto gathered = gather(*wires_.group, writer.view(), report_bytes_);
  wires_.group->set_phase("", true);
  for (const Bytes& bytes : gathered) {
    Reader reader(bytes);
    reports.push_back(read_round_report(reader));
  }
  for (const RoundReport& r : reports) {
    if (r.interrupted) throw Interrupted(r.why);
    if (!r.why.empty()) throw RunEnded(r.why);
  }
  const RoundReport& first = reports.front();
  take(first, reports);
  RoundOutcome outcome{first.weight, first.samples, loss_, first.finished, {}};
  if (first.has_side) outcome.side = first.side;
  return outcome;
}

void NodeRounds::take(const RoundReport& first, const std::vector<RoundReport>& all) {
  mode_ = first.next_mode;
  interval_ = first.next_interval;
  if (first.weight > 0) ++rounds_count_;
  samples_ += first.samples;
  if (first.loss_weight > 0) loss_ = first.loss_sum / first.loss_weight;
  finished_ = first.finished;
  bytes_sent_ = bytes_received_ = 0;
  for (const RoundReport& r : all) {
    bytes_sent_ += r.bytes_sent_slow;
    bytes_received_ += r.bytes_received_slow;
  }
}

Values NodeRounds::scratch(const Fragment& fragment, std::vector<std::byte>& memory) const {
  if (memory.size() < static_cast<size_t>(fragment.bytes())) memory.resize(fragment.bytes());
  return values_at(memory.data(), fragment.type, fragment.count);
}

Values NodeRounds::parameters(const Fragment& fragment, std::vector<std::byte>& memory) const {
  const Values values = scratch(fragment, memory);
  replica_.read(fragment, values);
  return values;
}

Outcome NodeRounds::node_alive() const {
  for (int r = 0; r < wires_.memory->size(); ++r)
    if (!wires_.memory->alive(r))
      return {Outcome::Kind::peer_lost, r,
              "rank " + std::to_string(r) + " of node " + std::to_string(node_) +
                  " is gone: its node waited for a round"};
  return {};
}

}  // namespace hybridsync
