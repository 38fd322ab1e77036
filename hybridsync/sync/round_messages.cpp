#include "hybridsync/sync/round_messages.h"

#include <cmath>

namespace hybridsync {
namespace {

bool is_weight(double w) { return std::isfinite(w) && w >= 0; }
bool is_mode(uint8_t m) { return m <= static_cast<uint8_t>(Mode::delta); }

void write_body(const BodyLayout& body, Writer& writer) {
  writer.u64(body.values_bytes).u64(body.side_bytes);
}

BodyLayout read_body(Reader& reader) {
  BodyLayout body;
  body.values_bytes = reader.u64();
  body.side_bytes = reader.u64();
  return body;
}

}  // namespace

void write(const ContributionFields& fields, Writer& w) {
  const Contribution& c = fields.contribution;
  w.u32(static_cast<uint32_t>(c.node)).u64(c.sequence).i64(c.base);
  w.u8(static_cast<uint8_t>(c.mode)).u8(c.finished);
  w.f64(c.weight).i64(c.samples).i64(c.steps).f64(c.loss_sum).f64(c.loss_weight);
  w.f64(c.squared_norm).u64(c.anchor_hash);
  write_body(fields.body, w);
}

std::optional<ContributionFields> read_contribution(Reader r) {
  ContributionFields fields;
  Contribution& c = fields.contribution;
  c.node = static_cast<int>(r.u32());
  c.sequence = r.u64();
  c.base = r.i64();
  const uint8_t mode = r.u8();
  c.mode = static_cast<Mode>(mode);
  c.finished = r.u8() != 0;
  c.weight = r.f64();
  c.samples = r.i64();
  c.steps = r.i64();
  c.loss_sum = r.f64();
  c.loss_weight = r.f64();
  c.squared_norm = r.f64();
  c.anchor_hash = r.u64();
  fields.body = read_body(r);
  if (!r.done() || !is_mode(mode) || !is_weight(c.weight) || c.samples < 0) return std::nullopt;
  return fields;
}

void write(const ResultFields& fields, Writer& w) {
  const Result& m = fields.result;
  w.i64(m.version).u8(static_cast<uint8_t>(m.mode)).u8(static_cast<uint8_t>(m.next_mode));
  w.u8(m.finished).f64(m.weight).i64(m.samples).f64(m.loss_sum).f64(m.loss_weight);
  w.u64(m.before).u64(m.after).i64(m.next_interval);
  write_body(fields.body, w);
  w.u32(static_cast<uint32_t>(m.roster.size()));
  for (const RosterEntry& e : m.roster)
    w.u32(static_cast<uint32_t>(e.node)).u64(e.sequence).i64(e.age).f64(e.weight);
}

std::optional<ResultFields> read_result(Reader r) {
  ResultFields fields;
  Result& m = fields.result;
  m.version = r.i64();
  const uint8_t mode = r.u8();
  const uint8_t next_mode = r.u8();
  m.mode = static_cast<Mode>(mode);
  m.next_mode = static_cast<Mode>(next_mode);
  m.finished = r.u8() != 0;
  m.weight = r.f64();
  m.samples = r.i64();
  m.loss_sum = r.f64();
  m.loss_weight = r.f64();
  m.before = r.u64();
  m.after = r.u64();
  m.next_interval = r.i64();
  fields.body = read_body(r);
  const uint32_t members = r.u32();
  for (uint32_t i = 0; i < members && r.ok(); ++i) {
    RosterEntry e;
    e.node = static_cast<int>(r.u32());
    e.sequence = r.u64();
    e.age = r.i64();
    e.weight = r.f64();
    m.roster.push_back(e);
  }
  const bool legal =
      is_mode(mode) && is_mode(next_mode) && is_weight(m.weight) && m.next_interval >= 1;
  if (!r.done() || !legal) return std::nullopt;
  return fields;
}

}  // namespace hybridsync
