#include "hybridsync/simulate/network.h"

#include <algorithm>
#include <cassert>

namespace hybridsync {

Network::Network(int nodes, const Link& link, Random random)
    : nodes_(nodes), link_(link), random_(random), lines_(static_cast<size_t>(nodes * nodes)) {
  for (auto* clocks : {&sends_[0], &sends_[1], &takes_[0], &takes_[1]})
    clocks->resize(static_cast<size_t>(nodes));
}

Micros Network::delay() {
  Micros delay = link_.delay;
  if (link_.jitter > 0) delay += random_.between(0, link_.jitter);
  if (link_.straggling > 0 && random_.chance(link_.straggling))
    delay += random_.between(0, 19 * link_.delay);
  return delay;
}

Micros Network::through(Micros& free, size_t bytes, Micros from) const {
  if (link_.bytes_per_second <= 0) return from;
  const double seconds = static_cast<double>(bytes) / link_.bytes_per_second;
  free = std::max(free, from) + static_cast<Micros>(seconds * 1e6);
  return free;
}

Network::Flight Network::send(int from, int to, Channel channel, size_t bytes, Micros now) {
  assert(from != to);
  const auto c = static_cast<size_t>(channel);
  Line& way = line(from, to);
  const Micros left = through(sends_[c][static_cast<size_t>(from)], bytes, now);
  const Micros there = through(takes_[c][static_cast<size_t>(to)], bytes, left + delay());
  way.arrived[c] = std::max(way.arrived[c], there);
  return {way.arrived[c], way.number, way.cuts > 0};
}

bool Network::arrives(int from, int to, const Flight& flight) const {
  return !flight.lost && line(from, to).number == flight.line;
}

void Network::cut(int a, int b) {
  for (Line* way : {&line(a, b), &line(b, a)}) {
    ++way->cuts;
    ++way->number;
  }
}

void Network::heal(int a, int b) {
  assert(is_cut(a, b));
  --line(a, b).cuts;
  --line(b, a).cuts;
}

void Network::lose_to(int node) {
  for (int other = 0; other < nodes_; ++other) ++line(other, node).number;
}

void Network::lose_from(int node) {
  for (int other = 0; other < nodes_; ++other) ++line(node, other).number;
}

Micros Network::quiet_after(int from, int to, Micros now) const {
  const Line& way = line(from, to);
  return std::max({now + link_.delay, way.arrived[0], way.arrived[1]});
}

}  // namespace hybridsync
