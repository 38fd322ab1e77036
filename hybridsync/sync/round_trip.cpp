#include "hybridsync/sync/round_trip.h"

#include <algorithm>
#include <vector>

namespace hybridsync {
namespace {

constexpr int kPings = 5;
enum Kind : uint8_t { kPing = 1, kPong = 2, kDone = 3 };

class Pinger {
 public:
  explicit Pinger(Exchange& exchange)
      : exchange_(exchange), peers_(static_cast<size_t>(exchange.nodes())) {
    Peer& self = peers_[static_cast<size_t>(exchange.node())];
    self.pongs = kPings;
    self.finished = true;
    for (int node = 0; node < exchange.nodes(); ++node)
      if (node != exchange.node()) ping(node);
  }

  bool done() const {
    return all([](const Peer& p) { return p.finished; }) && measured();
  }

  void on(const Received& message) {
    Reader reader(message.header);
    const uint8_t kind = reader.u8();
    Peer& peer = peers_[static_cast<size_t>(message.from)];
    if (kind == kPing) send(message.from, kPong);
    if (kind == kDone) peer.finished = true;
    if (kind != kPong) return;
    const auto took = static_cast<Micros>(1e6 * seconds_since(peer.sent));
    peer.least = peer.pongs == 0 ? took : std::min(peer.least, took);
    if (++peer.pongs < kPings) return ping(message.from);
    if (!measured()) return;
    for (int node = 0; node < exchange_.nodes(); ++node)
      if (node != exchange_.node()) send(node, kDone);
  }

  Micros round_trip() const {
    Micros largest = 0;
    for (const Peer& p : peers_) largest = std::max(largest, p.least);
    return largest;
  }

  // Who has not answered; once all have, who still measures others.
  std::vector<int> missing() const {
    const bool answered = measured();
    std::vector<int> nodes;
    for (size_t node = 0; node < peers_.size(); ++node)
      if (answered ? !peers_[node].finished : peers_[node].pongs < kPings)
        nodes.push_back(static_cast<int>(node));
    return nodes;
  }

 private:
  struct Peer {
    int pongs = 0;
    Micros least = 0;
    Clock::time_point sent{};
    bool finished = false;
  };

  bool all(bool (*holds)(const Peer&)) const {
    return std::all_of(peers_.begin(), peers_.end(), holds);
  }
  bool measured() const {
    return all([](const Peer& p) { return p.pongs >= kPings; });
  }
  void ping(int node) {
    peers_[static_cast<size_t>(node)].sent = Clock::now();
    send(node, kPing);
  }
  void send(int node, Kind kind) {
    Writer writer;
    writer.u8(kind);
    exchange_.send(node, Channel::control, writer.take(), nullptr);
  }

  Exchange& exchange_;
  std::vector<Peer> peers_;
};

}  // namespace

Outcome measure_round_trip(Exchange& exchange, const Patience& patience, Micros& round_trip) {
  Pinger pinger(exchange);
  Waiter waiter(patience);
  const auto describe = [&] { return Waiting{0, pinger.missing(), "measuring the round trip"}; };
  while (!pinger.done()) {
    const auto verdict = waiter.check(describe);
    if (verdict == Waiter::Verdict::timed_out)
      return {Outcome::Kind::timed_out, -1,
              counted("node", pinger.missing()) + " did not answer: measuring the round trip"};
    if (verdict != Waiter::Verdict::go_on)
      return {Outcome::Kind::interrupted, -1, "interrupted while measuring the round trip"};
    const auto event = exchange.poll(Clock::now() + waiter.slice());
    if (!event) continue;
    if (const auto* lost = std::get_if<PeerLost>(&*event))
      return {Outcome::Kind::peer_lost, lost->node,
              "node " + std::to_string(lost->node) + " is gone (" + lost->why +
                  "): measuring the round trip"};
    pinger.on(std::get<Received>(*event));
  }
  round_trip = pinger.round_trip();
  return {};
}

}  // namespace hybridsync
