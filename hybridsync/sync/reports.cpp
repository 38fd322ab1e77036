#include "hybridsync/sync/reports.h"

#include <algorithm>
#include <cassert>

#include "hybridsync/sync/fields.h"

namespace hybridsync {

void write(const Window& w, Writer& writer) {
  writer.i64(w.micro_steps).f64(w.weight).f64(w.loss_sum).f64(w.samples).i64(w.epochs_ended);
  writer.u8(w.finished).u8(w.interrupted);
  writer.i64(w.bytes_fast);
  put(writer, w.lane);
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
  get(r, w.lane);
  w.side = read_side_data(r).value_or(SideData{});
  assert(r.done());
  return w;
}

Window merge(const std::vector<Window>& by_rank) {
  Window node = by_rank.front();
  std::vector<SideData> sides;
  std::vector<LaneReport> lanes;
  for (const Window& w : by_rank) {
    sides.push_back(w.side);
    lanes.push_back(w.lane);
  }
  node.lane = merge(lanes);
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

LaneReport merge(const std::vector<LaneReport>& by_rank) {
  LaneReport node;
  node.finished = true;
  for (const LaneReport& lane : by_rank) {
    if (node.why.empty()) {
      node.why = lane.why;
      node.interrupted = lane.interrupted;
    }
    node.wait = node.wait || lane.wait;
    node.finished = node.finished && lane.finished;
    node.moved.insert(node.moved.end(), lane.moved.begin(), lane.moved.end());
    node.bytes_sent += lane.bytes_sent;
    node.bytes_received += lane.bytes_received;
    node.ledger += lane.ledger;
    node.coding += lane.coding;
  }
  return node;
}

size_t lane_report_bytes(size_t fragments, int nodes, int staleness) {
  const size_t counts = fragments + static_cast<size_t>(nodes) + static_cast<size_t>(staleness) + 1;
  return 256 + kWhyBytes + 8 * counts;
}

size_t round_report_bytes(size_t lane_bytes, size_t side_bytes) {
  return lane_bytes + 128 + side_bytes;
}

void write(const RoundReport& report, Writer& w) {
  put(w, report.lane);
  put(w, report.summary);
  w.u8(report.has_side);
  write(report.side, w);
}

RoundReport read_round_report(Reader& r) {
  RoundReport report;
  get(r, report.lane);
  get(r, report.summary);
  report.has_side = r.u8() != 0;
  report.side = read_side_data(r).value_or(SideData{});
  assert(r.done());
  return report;
}

}  // namespace hybridsync
