#include "hybridsync/sync/reports.h"

#include <algorithm>
#include <cassert>

namespace hybridsync {

void write(const Window& w, Writer& writer) {
  writer.i64(w.micro_steps).f64(w.weight).f64(w.loss_sum).f64(w.samples).i64(w.epochs_ended);
  writer.u8(w.finished).u8(w.interrupted);
  writer.i64(w.bytes_fast);
  write(w.side, writer);
}

Window read_window(Reader& r) {
  Window w;
  w.micro_steps = r.i64();
  w.weight = r.f64();
  w.loss_sum = r.f64();
  w.samples = r.f64();
  w.epochs_ended = r.i64();
  w.finished = r.u8() != 0;
  w.interrupted = r.u8() != 0;
  w.bytes_fast = r.i64();
  w.side = read_side_data(r).value_or(SideData{});
  assert(r.done());
  return w;
}

Window merge(const std::vector<Window>& by_rank) {
  Window node = by_rank.front();
  std::vector<SideData> sides;
  for (const Window& w : by_rank) sides.push_back(w.side);
  for (auto w = by_rank.begin() + 1; w != by_rank.end(); ++w) {
    node.micro_steps += w->micro_steps;
    node.weight += w->weight;
    node.loss_sum += w->loss_sum;
    node.samples += w->samples;
    node.epochs_ended = std::min(node.epochs_ended, w->epochs_ended);
    node.finished = node.finished && w->finished;
    node.interrupted = node.interrupted || w->interrupted;
    node.bytes_fast += w->bytes_fast;
  }
  auto side = merge(sides, StatsAtSync::merge);
  assert(side);
  node.side = std::move(*side);
  return node;
}

void write(const RoundReport& report, Writer& w) {
  w.text(std::string_view(report.why).substr(0, kWhyBytes))
      .u8(report.interrupted)
      .f64(report.weight);
  w.i64(report.samples).f64(report.loss_sum).f64(report.loss_weight);
  w.u8(report.finished).u8(static_cast<uint8_t>(report.next_mode)).i64(report.next_interval);
  w.i64(report.bytes_sent_slow).i64(report.bytes_received_slow).u8(report.has_side);
  write(report.side, w);
}

RoundReport read_round_report(Reader& r) {
  RoundReport report;
  report.why = r.text();
  report.interrupted = r.u8() != 0;
  report.weight = r.f64();
  report.samples = r.i64();
  report.loss_sum = r.f64();
  report.loss_weight = r.f64();
  report.finished = r.u8() != 0;
  report.next_mode = static_cast<Mode>(r.u8());
  report.next_interval = r.i64();
  report.bytes_sent_slow = r.i64();
  report.bytes_received_slow = r.i64();
  report.has_side = r.u8() != 0;
  report.side = read_side_data(r).value_or(SideData{});
  assert(r.done());
  return report;
}

}  // namespace hybridsync
