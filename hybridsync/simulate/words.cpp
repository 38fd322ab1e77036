#include "hybridsync/simulate/words.h"

namespace hybridsync {
namespace {

std::string number(auto n) { return std::to_string(n); }

std::string text(const Process& p) {
  std::string name = number(p.node);
  if (p.incarnation > 0) name.append(".").append(number(p.incarnation));
  return name;
}

std::string chain_end(uint64_t chain) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "#";
  for (int shift = 0; shift < 16; shift += 4) name += kDigits[chain >> shift & 15];
  return chain == 0 ? "#0" : name;
}

std::string list(const auto& all, const auto& one) {
  std::string line;
  for (const auto& a : all) line += (line.empty() ? "{" : ", ") + one(a);
  return line.empty() ? "{}" : line + "}";
}

std::string text(const View& view) {
  return number(view.epoch) + " " + list(view.members, [](const Process& p) { return text(p); }) +
         ", owners " + list(view.owners, [](int node) { return number(node); });
}

struct Words {
  std::string operator()(const Contribution& c) const {
    return "CONTRIBUTE " + number(c.sequence) + " on " + number(c.at) +
           (c.weight > 0 ? "" : " (abstains)");
  }
  std::string operator()(const Remind& r) const {
    return "REMIND " + number(r.contribution.sequence);
  }
  std::string operator()(const Resend& r) const { return "RESEND " + number(r.sequence); }
  std::string operator()(const Call& c) const { return "CALL on " + number(c.version); }
  std::string operator()(const Result& r) const {
    const auto entry = [](const RosterEntry& e) {
      return text({e.node, e.incarnation}) + ":" + number(e.sequence);
    };
    return "RESULT " + number(r.version) + " " + list(r.roster, entry) + ", stable " +
           number(r.stable) + ", on " + chain_end(r.chain);
  }
  std::string operator()(const Return& r) const { return "RETURN " + number(r.sequence); }
  std::string operator()(const Fetch& f) const {
    return "FETCH " + std::string(f.state ? "state, has " : "after ") + number(f.have) + " " +
           chain_end(f.chain);
  }
  std::string operator()(const State& s) const {
    return "STATE " + number(s.lineage.version) + " " + chain_end(s.lineage.chain);
  }
  std::string operator()(const Last& l) const {
    return "LAST ready in " + number(l.ready_epoch) + ", version " + number(l.version) + " " +
           chain_end(l.chain);
  }
  std::string operator()(const Start& s) const {
    return "START " + number(s.version) + " " + chain_end(s.chain);
  }
  std::string operator()(const Establish&) const { return "ESTABLISH"; }
  std::string operator()(const Established& e) const {
    return e.refused ? "ESTABLISHED refused" : "ESTABLISHED";
  }
  std::string operator()(const Heartbeat& h) const {
    return "HEARTBEAT " + list(h.fragments, [](const FragmentStatus& s) {
             return "ready in " + number(s.ready_epoch) + ", version " + number(s.version);
           });
  }
  std::string operator()(const HeartbeatAnswer&) const { return "HEARTBEAT's answer"; }
  std::string operator()(const Suspect& s) const { return "SUSPECT " + number(s.node); }
  std::string operator()(const Join&) const { return "JOIN"; }
  std::string operator()(const Leave&) const { return "LEAVE"; }
  std::string operator()(const ViewMessage& v) const { return "VIEW " + text(v.view); }
};

}  // namespace

std::string in_words(const Message& m) {
  return std::visit(Words{}, m.body) +
         (m.from.node >= 0 ? " from node " + text(m.from) : " from the coordinator") + " (epoch " +
         number(m.epoch) + ")";
}

std::string in_words(const Seat& seat) {
  const auto open = [](const Contribution& c) {
    return number(c.sequence) + " on " + number(c.at);
  };
  const auto kept = [](const Member::Kept& k) {
    return number(k.contribution.sequence) + " in " + number(k.version);
  };
  const auto waiting = [](const Contribution& c) {
    return text({c.node, c.incarnation}) + ":" + number(c.sequence);
  };
  std::string line = "epoch " + number(seat.epoch()) +
                     (seat.ready() ? " ready" : ", was ready in " + number(seat.ready_epoch())) +
                     ", version " + number(seat.lineage().version) + " " +
                     chain_end(seat.lineage().chain);
  if (!seat.member().outbox().empty()) line += ", outbox " + list(seat.member().outbox(), open);
  if (!seat.member().kept().empty()) line += ", kept " + list(seat.member().kept(), kept);
  if (!seat.rounds().inbox().empty()) line += ", inbox " + list(seat.rounds().inbox(), waiting);
  return line;
}

}  // namespace hybridsync
