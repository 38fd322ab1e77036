#include "hybridsync/simulate/deeds.h"

namespace hybridsync {
namespace {

std::string number(auto n) { return std::to_string(n); }

std::string short_name(int node, uint32_t incarnation) {
  return incarnation > 0 ? number(node) + "." + number(incarnation) : number(node);
}

std::string about(const Result& r) {
  std::string text = number(r.version) + " of epoch " + number(r.epoch) + " {";
  for (const RosterEntry& e : r.roster) {
    if (&e != &r.roster.front()) text += ", ";
    text += short_name(e.node, e.incarnation) + ":" + number(e.sequence);
    if (e.age > 0) text += " age " + number(e.age);
  }
  return text + "}" + (r.finished ? ", finished" : "");
}

std::string own(const std::vector<Contribution>& contributions, const std::string& what) {
  std::string text;
  for (const Contribution& c : contributions) text += ", own " + number(c.sequence) + " " + what;
  return text;
}

std::string_view reason(ReturnReason r) {
  static constexpr std::string_view kReasons[] = {"too old",  "late",     "dropped",
                                                  "the mode", "mismatch", "not now"};
  return kReasons[static_cast<size_t>(r)];
}

struct ActionWords {
  std::string operator()(const Send&) const { return ""; }
  std::string operator()(const ApplyResult&) const { return ""; }
  std::string operator()(const AdoptState&) const { return ""; }
  std::string operator()(const CloseRound& a) const {
    return "closes the round to " + number(a.close.version) + ": " + a.close.why;
  }
  std::string operator()(const Advanced& a) const {
    return "moves on to " + about(a.result) + own(a.own, "is settled");
  }
  std::string operator()(const Adopted& a) const {
    return "takes STATE " + number(a.version) + own(a.change.applied, "is in it") +
           own(a.change.restored, "is progress again") +
           (a.change.lost ? ", and what it no longer kept is lost" : "");
  }
  std::string operator()(const Returned& a) const {
    return "own " + number(a.contribution.sequence) +
           " came back: " + std::string(reason(a.reason));
  }
  std::string operator()(const Report& a) const { return a.text; }
  std::string operator()(const Disagreement& a) const { return "cannot go on: " + a.why; }
};

}  // namespace

std::string words(const Process& p) {
  const std::string text = "node " + number(p.node);
  return p.incarnation == 0 ? text : text + " (process " + number(p.incarnation) + ")";
}

std::string words(const View& view) {
  std::string text = number(view.epoch) + " of";
  for (const Process& p : view.members) (text += " ") += short_name(p.node, p.incarnation);
  text += ", owners";
  for (int owner : view.owners) (text += " ") += number(owner);
  return text;
}

std::string words(const Action& action) { return std::visit(ActionWords{}, action); }

}  // namespace hybridsync
