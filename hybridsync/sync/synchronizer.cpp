#include "hybridsync/sync/synchronizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <thread>

#include "hybridsync/config/error.h"
#include "hybridsync/decide/codec_worth.h"
#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/learning_rate.h"

namespace hybridsync {
namespace {

size_t side_bytes(const SideData& shape) {
  Writer writer;
  write(shape, writer);
  return writer.view().size();
}

std::vector<Gradients> place(const Layout& layout, int sets, NodeMemory& memory) {
  const size_t f64_bytes = layout.count_f64 * sizeof(double);
  const size_t f32_bytes = layout.count_f32 * sizeof(float);
  std::vector<Gradients> placed;
  for (int s = 0; s < sets; ++s) {
    const auto slots = memory.allocate_slots(std::max<size_t>(f64_bytes + f32_bytes, 64));
    std::byte* mine = slots.slot(memory.rank()).data();
    placed.push_back({values_at(mine + f64_bytes, Real::f32, layout.count_f32),
                      values_at(mine, Real::f64, layout.count_f64)});
  }
  return placed;
}

LedgerRecord ledger_record(const Ledger& l) {
  LedgerRecord r;
  r.contributed = l.contributed.contributions;
  r.applied = l.applied.contributions;
  r.returned = l.returned.contributions;
  r.dropped = l.dropped.contributions;
  r.restored = l.restored.contributions;
  r.lost = l.lost.contributions;
  r.lost_norm = std::sqrt(l.lost_squared_norm);
  r.decayed_norm = std::sqrt(l.decayed_squared_norm);
  r.skipped = std::accumulate(l.skipped.begin(), l.skipped.end(), int64_t{0});
  r.mismatches = l.mismatches;
  r.ages = l.ages;
  r.skipped_by_node = l.skipped;
  r.samples_contributed = l.contributed.samples;
  r.samples_applied = l.applied.samples;
  r.samples_returned = l.returned.samples + l.restored.samples;
  return r;
}

void require_equal_rates(const std::vector<Window>& by_rank) {
  const Window* first = nullptr;
  for (const Window& w : by_rank) {
    if (w.micro_steps == 0) continue;
    if (!first) first = &w;
    if (w.side.rates != first->side.rates)
      throw RunEnded("rank " + std::to_string(&w - by_rank.data()) +
                     " of the node has other base learning rates "
                     "than rank " +
                     std::to_string(first - by_rank.data()) +
                     ": step a scheduler of your own equally often on all ranks");
  }
}

}  // namespace

Synchronizer::Synchronizer(Options options, Wires& wires, Replica& replica)
    : config_(options.config),
      nodes_(options.config.nodes()),
      layout_(std::move(options.layout)),
      wires_(wires),
      replica_(replica),
      window_bytes_(256 + side_bytes(options.side_shape)),
      sets_(place(layout_, options.sets, *wires.memory)),
      reducer_(*wires.group, layout_, config_.node_tier().overlap != Overlap::off),
      padded_seconds_(config_.outer_tier().emulate.step_seconds(options.environment.node)),
      interrupt_(options.patience.interrupt) {
  if (config_.tiers.size() > 1) {
    rounds_ = std::make_unique<NodeRounds>(config_, options.environment, layout_,
                                           side_bytes(options.side_shape), wires, replica,
                                           options.patience);
    window_bytes_ += rounds_->report_bytes();
  }
}

void Synchronizer::open(int set) {
  set_ = set;
  reducer_.begin(sets_[static_cast<size_t>(set)]);
}

Values Synchronizer::flat(Real type) const { return sets_[static_cast<size_t>(set_)].all(type); }

std::optional<StepRecord> Synchronizer::close(Window mine) {
  require(reducer_.join());
  StepRecord record = begin_record();
  const auto start = Clock::now();
  agree(mine);
  record.agree_seconds = seconds_since(start);
  if (node_.interrupted) throw Interrupted("interrupted at step " + std::to_string(step_));
  if (node_.micro_steps == 0) return std::nullopt;
  const bool together = gradient_mode();
  const bool stepped = together ? step_together(record) : step_alone(record);
  count_step(stepped);
  record.skipped = !stepped;
  if (rounds_ && !together) boundary(stepped, record);
  if (rounds_) rounds_->set_anchor_if_due();
  finish_record(record);
  // What rounds took is no part of the step that is padded.
  step_began_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(record.exchange_seconds));
  return record;
}

void Synchronizer::pad() {
  constexpr double kSlice = 0.05;  // between looks at the interrupt
  while (!(interrupt_ && *interrupt_)) {
    const double left = padded_seconds_ - seconds_since(step_began_);
    if (left <= 0) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }
  step_began_ = Clock::now();
}

void Synchronizer::agree(const Window& mine) {
  Window window = mine;
  window.bytes_fast = wires_.group->counters().bytes;
  if (rounds_) window.lane = rounds_->report();
  Writer writer;
  write(window, writer);
  std::vector<Window> by_rank;
  for (const Bytes& bytes : gather(*wires_.group, writer.view(), window_bytes_)) {
    Reader reader(bytes);
    by_rank.push_back(read_window(reader));
  }
  require_equal_rates(by_rank);
  node_ = merge(by_rank);
}

// Sums become means; the norm of the means tells whether all of them are finite.
double Synchronizer::normalise(double weight) {
  if (weight > 0)
    for (Real type : {Real::f32, Real::f64}) scale(flat(type), 1 / weight);
  return norm();
}

double Synchronizer::norm() const {
  return std::sqrt(squared_norm(as_const(flat(Real::f32))) +
                   squared_norm(as_const(flat(Real::f64))));
}

bool Synchronizer::step_alone(StepRecord& record) {
  const double gradient_norm = normalise(node_.weight);
  return apply({node_.weight, node_.samples * nodes_, &node_.side}, gradient_norm, record);
}

bool Synchronizer::step_together(StepRecord& record) {
  const double own_norm = normalise(node_.weight);
  const bool finite = std::isfinite(own_norm);
  const bool carries_over = rounds_->carries_over();
  if (carries_over && finite) clip(own_norm, config_.train.clip / std::sqrt(nodes_));
  const auto start = Clock::now();
  const RoundOutcome outcome = rounds_->gradient_round(
      draft(finite ? node_.weight : 0), sets_[static_cast<size_t>(set_)], node_.side);
  record.exchange_seconds += seconds_since(start);
  SideData side = outcome.side ? *outcome.side : node_.side;
  if (carries_over) side.used = moved(std::move(side.used));
  return apply({outcome.weight, double(outcome.samples), &side, carries_over}, norm(), record);
}

// Also what got no gradient in this step is used where earlier ones arrive.
std::vector<uint8_t> Synchronizer::moved(std::vector<uint8_t> used) const {
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const Slice& slice = layout_.slices[i];
    const auto part = subspan(flat(slice.type), static_cast<size_t>(slice.offset),
                              static_cast<size_t>(slice.count));
    used[i] = squared_norm(as_const(part)) > 0;
  }
  return used;
}

void Synchronizer::clip(double norm, double most) {
  if (most > 0 && norm + 1e-6 > most)
    for (Real type : {Real::f32, Real::f64}) scale(flat(type), most / (norm + 1e-6));
}

bool Synchronizer::apply(const StepInputs& inputs, double gradient_norm, StepRecord& record) {
  record.grad_norm = gradient_norm;
  if (inputs.weight <= 0 || !std::isfinite(gradient_norm)) return false;
  const auto start = Clock::now();
  if (!inputs.clipped) clip(gradient_norm, config_.train.clip);
  const double factor = lr_scale(config_.learning_rate, inputs.samples) *
                        lr_schedule(config_.learning_rate, schedule_step(), config_.train.steps);
  record.lr = replica_.optimizer_step(set_, factor, *inputs.side);
  replica_.advance_statistics(inputs.side->batch_norm);
  record.optimizer_seconds = seconds_since(start);
  return true;
}

void Synchronizer::count_step(bool stepped) {
  ++step_;
  if (!stepped) ++skipped_;
  samples_ += node_.samples;
}

Contribution Synchronizer::draft(double weight) const {
  Contribution c;
  c.finished = node_.finished;
  c.weight = weight;
  c.samples = std::llround(node_.samples);
  c.steps = 1;
  if (std::isfinite(node_.loss_sum)) {
    c.loss_sum = node_.loss_sum;
    c.loss_weight = node_.weight;
  }
  return c;
}

void Synchronizer::boundary(bool stepped, StepRecord& record) {
  const auto start = Clock::now();
  Learned learned;
  learned.samples = std::llround(node_.samples);
  if (stepped) learned.weight = node_.samples;
  if (stepped) learned.lr = record.lr;
  if (stepped && std::isfinite(node_.loss_sum)) {
    learned.loss_sum = node_.loss_sum;
    learned.loss_weight = node_.weight;
  }
  rounds_->boundary(learned, node_.lane, node_.finished);
  record.exchange_seconds += seconds_since(start);
}

void Synchronizer::leave(const std::function<void(const StepRecord&)>& record) {
  assert(node_.finished);
  while (rounds_ && !rounds_->finished()) leave_round(record);
}

// Nothing of its own to give any more, but for what it learned since the newest round.
void Synchronizer::leave_round(const std::function<void(const StepRecord&)>& record) {
  StepRecord step = begin_record();
  step.reduce_seconds = step.reduce_wait_seconds = 0;
  node_.micro_steps = 0;
  node_.weight = node_.loss_sum = node_.samples = 0;
  if (gradient_mode()) {
    // A result that is not the last one belongs to a step of another node, taken or not.
    const bool stepped = step_together(step);
    if (stepped || !rounds_->finished()) count_step(stepped);
    rounds_->set_anchor_if_due();
  } else {
    const auto start = Clock::now();
    rounds_->leave_round();
    step.exchange_seconds += seconds_since(start);
  }
  finish_record(step);
  if (std::isnan(step.loss)) step.loss = step.global_loss;
  if (step.lr == 0) step.lr = step.grad_norm = std::numeric_limits<double>::quiet_NaN();  // no step
  record(step);
}

int64_t Synchronizer::samples() const {
  if (rounds_ && rounds_->finished()) return rounds_->samples();
  return std::max(most_samples_, estimated_samples());
}

int64_t Synchronizer::estimated_samples() const {
  if (!rounds_) return std::llround(samples_);
  const double own = static_cast<double>(rounds_->own_samples());
  const double all = static_cast<double>(rounds_->samples());
  const double open = samples_ - own - static_cast<double>(rounds_->own_dropped());
  if (!rounds_->may_lag() || rounds_->rounds() == 0) return std::llround(all + open * nodes_);
  return std::llround(all + open + rounds_->samples_of_others());
}

// Where nodes go at speeds of their own, the schedule follows the samples of all of them.
int64_t Synchronizer::schedule_step() const {
  if (!rounds_ || !rounds_->may_lag() || gradient_mode() || node_.samples <= 0) return step_;
  return std::llround(static_cast<double>(samples()) / (node_.samples * nodes_));
}

void Synchronizer::record_coding(StepRecord& record) {
  const CodingCosts& now = rounds_->coding();
  record.codec_bytes_before = now.bytes_before - coding_before_.bytes_before;
  record.codec_bytes_after = now.bytes_after - coding_before_.bytes_after;
  record.codec_plain = now.plain - coding_before_.plain;
  record.encode_seconds = now.encode_seconds - coding_before_.encode_seconds;
  record.decode_seconds = now.decode_seconds - coding_before_.decode_seconds;
  coding_before_ = now;
  waited_ += record.exchange_seconds;
  if (!judged_ && !rounds_->may_lag()) judge_codec(now);
}

// Once, when there are rounds enough to tell.
void Synchronizer::judge_codec(const CodingCosts& coding) {
  const double ranks = config_.ranks_per_node();
  const CodecTimes times{rounds(), coding.bytes_before, coding.bytes_after,
                         (coding.encode_seconds + coding.decode_seconds) / ranks, waited_};
  const std::string sentence = codec_complaint(times);
  judged_ = times.rounds >= kRoundsToJudgeCodec;
  if (!sentence.empty() && wires_.memory->rank() == 0)
    codec_report_ = Report{Report::Kind::codec, -1, sentence};
}

std::vector<Report> Synchronizer::reports() {
  auto all = rounds_ ? rounds_->reports() : std::vector<Report>{};
  if (codec_report_) all.push_back(*std::exchange(codec_report_, std::nullopt));
  return all;
}

StepRecord Synchronizer::begin_record() const {
  StepRecord record;
  record.mode = !rounds_             ? "alone"
                : gradient_mode()    ? "every_step"
                : rounds_->may_lag() ? "delayed"
                                     : "periodic";
  record.interval = interval();
  record.reduce_seconds = reducer_.times().reduce_seconds;
  record.reduce_wait_seconds = reducer_.times().wait_seconds;
  return record;
}

void Synchronizer::finish_record(StepRecord& record) {
  record.step = step_;
  record.samples = most_samples_ = samples();
  record.rounds = rounds();
  record.loss =
      node_.weight > 0 ? node_.loss_sum / node_.weight : std::numeric_limits<double>::quiet_NaN();
  record.global_loss = rounds_ ? rounds_->loss() : record.loss;
  record.bytes_fast = node_.bytes_fast - fast_before_;
  record.bytes_sent_slow = bytes_sent_slow() - sent_before_;
  record.bytes_received_slow = bytes_received_slow() - received_before_;
  if (rounds_) {
    record.contributors = rounds_->newest().contributors;
    record.age = rounds_->newest().age;
    record.drift = rounds_->newest().drift;
    record.ledger = ledger_record(rounds_->ledger());
    record_coding(record);
  }
  fast_before_ = node_.bytes_fast;
  sent_before_ = bytes_sent_slow();
  received_before_ = bytes_received_slow();
}

}  // namespace hybridsync
