#include "hybridsync/sync/round_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "hybridsync/sync/fields.h"

namespace hybridsync {
namespace {

// --- what members send

bool legal(Mode m) { return m <= Mode::delta; }
bool legal_weight(double w) { return std::isfinite(w) && w >= 0; }
bool legal(const Contribution& c) {
  return legal(c.mode) && legal_weight(c.weight) && legal_weight(c.loss_weight) &&
         legal_weight(c.lr) && std::isfinite(c.loss_sum) && c.samples >= 0 && c.steps >= 0 &&
         c.base >= 0 && c.at >= c.base && c.has >= c.at && c.settled <= c.sequence;
}
bool legal(const Remind& m) { return legal(m.contribution); }
bool legal(const Result& r) {
  const auto good = [](const RosterEntry& e) { return legal_weight(e.weight) && e.age >= 0; };
  return legal(r.mode) && legal(r.next_mode) && legal_weight(r.weight) && r.next_interval >= 1 &&
         legal_weight(r.drift) && r.version >= 1 &&
         std::all_of(r.roster.begin(), r.roster.end(), good);
}
bool legal(const Return& m) { return m.reason < ReturnReason::not_now; }
bool legal(const State& s) {
  return legal(s.lineage.mode) && s.lineage.version >= 0 && s.lineage.interval >= 1;
}
bool legal(const ViewMessage& m) { return !m.view.members.empty(); }
template <class Other>
bool legal(const Other&) {
  return true;
}

uint64_t version_of(const MessageBody& body) {
  return std::visit(
      [](const auto& b) -> uint64_t {
        if constexpr (requires { b.version; })
          return static_cast<uint64_t>(b.version);
        else if constexpr (requires { b.at; })
          return static_cast<uint64_t>(b.at);
        else
          return 0;
      },
      body);
}

// A reader for each kind of message, by its place in the variant.
using ReadBody = bool (*)(PackedReader&, MessageBody&);

template <size_t I>
bool read_body(PackedReader& reader, MessageBody& body) {
  auto& value = body.emplace<I>();
  get(reader, value);
  return reader.done() && legal(value);
}

template <size_t... I>
constexpr auto make_readers(std::index_sequence<I...>) {
  return std::array<ReadBody, sizeof...(I)>{&read_body<I>...};
}
constexpr auto kReaders =
    make_readers(std::make_index_sequence<std::variant_size_v<MessageBody>>());

}  // namespace

Bytes encode(const WireMessage& wire, uint64_t run, ByteSpan body) {
  const Message& m = wire.message;
  Envelope envelope;
  envelope.run = run;
  envelope.epoch = m.epoch;
  envelope.node = static_cast<uint32_t>(m.from.node);
  envelope.incarnation = m.from.incarnation;
  envelope.kind = static_cast<uint8_t>(m.body.index() + 1);
  envelope.fragment = static_cast<uint32_t>(m.fragment);
  envelope.version = version_of(m.body);
  PackedWriter fields;
  put(fields, wire.layout);
  std::visit([&](const auto& b) { put(fields, b); }, m.body);
  return encode(envelope, fields.view(), body);
}

std::optional<WireMessage> read_message(const Frame& frame) {
  const Envelope& e = frame.envelope;
  if (e.kind == 0 || e.kind > kReaders.size()) return std::nullopt;
  WireMessage wire;
  wire.message.from = {static_cast<int>(e.node), e.incarnation};
  wire.message.epoch = e.epoch;
  wire.message.fragment = static_cast<int>(e.fragment);
  PackedReader reader(frame.fields);
  get(reader, wire.layout);
  if (!kReaders[e.kind - 1u](reader, wire.message.body)) return std::nullopt;
  return wire;
}

}  // namespace hybridsync
