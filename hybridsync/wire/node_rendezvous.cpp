// The meeting at the abstract socket, as seen by rank 0 (Host) and by the others (join).
//
// One line of text per message. To rank 0: "join SIZE RANK RUN_ID", then nothing, or why this rank
// gave up. From rank 0: "absent R R ..." while ranks are missing, "refuse WHY", "fail WHY", and at
// the end "go PID PID ..." with one pidfd per rank.
#include "hybridsync/wire/node_rendezvous.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "hybridsync/config/error.h"
#include "hybridsync/wire/pidfd.h"

namespace hybridsync {
namespace {

using std::chrono::milliseconds;

constexpr char kWhat[] = "the node's memory";
constexpr milliseconds kRetry{
    20};  // between two looks for a listener, or for a name to become free
constexpr size_t kMaxRunId = 64;

std::string socket_name(const NodeSeat& seat) {
  return "hybridsync/" + seat.run_id + "/" + std::to_string(seat.node);
}

NodePeer peer_of(int pid) {
  NodePeer peer{open_pidfd(pid), pid};
  if (!peer.pidfd) {
    throw RunEnded("process " + std::to_string(pid) +
                   " of this node cannot be watched: it is gone, or the kernel is older than 5.3");
  }
  return peer;
}

// Ends the meeting of this rank unless it may go on.
void check(Waiter& waiter, const Patience& patience, const NodeSeat& seat,
           const std::vector<int>& absent) {
  switch (waiter.check([&] { return Waiting{0, absent, kWhat}; })) {
    case Waiter::Verdict::go_on:
      return;
    case Waiter::Verdict::timed_out:
      throw RunEnded(late_sentence(seat.node, absent, kWhat, patience));
    case Waiter::Verdict::left:
    case Waiter::Verdict::interrupted:
      throw Interrupted("interrupted while " + rank_name(seat.node, seat.rank) + " waited for " +
                        counted("rank", absent) + " at " + kWhat);
  }
}

// Rank 0's side.
class Host {
 public:
  Host(const NodeSeat& seat, const Patience& patience)
      : seat_(seat), patience_(patience), waiter_(patience) {
    links_.peers.resize(seat.size);
    links_.connections.resize(seat.size);
    links_.peers[0] = peer_of(::getpid());
  }

  NodeLinks meet() {
    try {
      listen();
      while (!absent().empty()) gather();
    } catch (const std::exception& error) {
      tell_all("fail " + std::string(error.what()));
      throw;
    }
    listener_ = LocalListener();  // before "go": the name is free for the next meeting
    say_go();
    return std::move(links_);
  }

 private:
  void listen() {
    while (!(listener_ = LocalListener::open(socket_name(seat_)))) {
      check(waiter_, patience_, seat_, absent());
      std::this_thread::sleep_for(std::min(kRetry, waiter_.slice()));
    }
  }

  void gather() {
    check(waiter_, patience_, seat_, absent());
    std::vector<pollfd> watched{{listener_.fd(), POLLIN, 0}};
    for (const auto& socket : arriving_) watched.push_back({socket.fd(), POLLIN, 0});
    for (const auto& socket : links_.connections) watched.push_back({socket.fd(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), static_cast<int>(waiter_.slice().count()));
    while (LocalSocket socket = listener_.accept()) arriving_.push_back(std::move(socket));
    std::erase_if(arriving_, [this](LocalSocket& socket) { return seat_or_refuse(socket); });
    check_seated();
  }

  // True when this arrival needs no more attention here.
  bool seat_or_refuse(LocalSocket& socket) {
    LocalSocket::Message message;
    const auto state = socket.receive(&message);
    if (state == LocalSocket::State::nothing) return false;
    if (state == LocalSocket::State::closed) return true;
    std::istringstream in(message.text);
    std::string verb, run_id;
    int size = 0, rank = -1;
    in >> verb >> size >> rank >> std::ws;
    std::getline(in, run_id);
    const std::string why = objection(verb, run_id, size, rank);
    if (!why.empty()) {
      socket.send("refuse " + why);
      return true;
    }
    links_.peers[rank] = peer_of(socket.peer_pid());
    links_.connections[rank] = std::move(socket);
    tell_absent();
    return true;
  }

  std::string objection(const std::string& verb, const std::string& run_id, int size,
                        int rank) const {
    if (verb != "join" || run_id != seat_.run_id) return "this is run " + seat_.run_id;
    if (size != seat_.size) {
      return rank_name(seat_.node, rank) + " was started for " + std::to_string(size) +
             " ranks per node, rank 0 for " + std::to_string(seat_.size);
    }
    if (rank < 1 || rank >= size) return rank_name(seat_.node, rank) + " is out of range";
    if (links_.peers[rank].pid == 0) return "";
    return rank_name(seat_.node, rank) + " is taken by process " +
           std::to_string(links_.peers[rank].pid);
  }

  void check_seated() {
    for (int r = 1; r < seat_.size; ++r) {
      if (!links_.connections[r]) continue;
      const bool lives = process_lives(links_.peers[r].pidfd);
      LocalSocket::Message last_words;
      const auto state = links_.connections[r].receive(&last_words);
      if (state == LocalSocket::State::message) throw RunEnded(last_words.text);
      if (state == LocalSocket::State::closed || !lives) {
        throw RunEnded(gone_sentence(seat_.node, r, links_.peers[r].pid, kWhat));
      }
    }
  }

  std::vector<int> absent() const {
    std::vector<int> ranks;
    for (int r = 1; r < seat_.size; ++r) {
      if (!links_.connections[r]) ranks.push_back(r);
    }
    return ranks;
  }

  void tell_all(const std::string& text, std::span<const int> descriptors = {}) {
    for (auto& connection : links_.connections) {
      if (connection) connection.send(text, descriptors);
    }
  }

  void tell_absent() {
    std::string text = "absent";
    for (int r : absent()) text.append(" ").append(std::to_string(r));
    tell_all(text);
  }

  void say_go() {
    std::string text = "go";
    std::vector<int> pidfds;
    for (const auto& peer : links_.peers) {
      text.append(" ").append(std::to_string(peer.pid));
      pidfds.push_back(peer.pidfd.get());
    }
    tell_all(text, pidfds);
  }

  const NodeSeat& seat_;
  const Patience& patience_;
  Waiter waiter_;
  LocalListener listener_;
  std::vector<LocalSocket> arriving_;  // connected, not yet introduced
  NodeLinks links_;
};

// The side of every other rank.
class Guest {
 public:
  Guest(const NodeSeat& seat, const Patience& patience)
      : seat_(seat), patience_(patience), waiter_(patience), absent_{0} {}

  NodeLinks meet() {
    try {
      return look_for_host();
    } catch (const std::exception& error) {
      if (host_) host_.send(error.what());
      throw;
    }
  }

 private:
  NodeLinks look_for_host() {
    for (;;) {
      check(waiter_, patience_, seat_, absent_);
      if (!host_ && !connect()) {
        std::this_thread::sleep_for(std::min(kRetry, waiter_.slice()));
        continue;
      }
      pollfd watched{host_.fd(), POLLIN, 0};
      ::poll(&watched, 1, static_cast<int>(waiter_.slice().count()));
      if (listen_to_host()) return std::move(links_);
    }
  }

  bool connect() {
    host_ = LocalSocket::connect(socket_name(seat_));
    if (!host_) return false;
    host_pid_ = host_.peer_pid();
    if (!host_.send("join " + std::to_string(seat_.size) + " " + std::to_string(seat_.rank) + " " +
                    seat_.run_id)) {
      host_ = LocalSocket();
    }
    return static_cast<bool>(host_);
  }

  bool listen_to_host() {
    LocalSocket::Message message;
    switch (host_.receive(&message)) {
      case LocalSocket::State::nothing:
        return false;
      case LocalSocket::State::closed:
        if (seated_) throw RunEnded(gone_sentence(seat_.node, 0, host_pid_, kWhat));
        host_ = LocalSocket();  // the listener of a meeting that is over: look for the next one
        return false;
      case LocalSocket::State::message:
        return obey(message);
    }
    return false;
  }

  bool obey(LocalSocket::Message& message) {
    std::istringstream in(message.text);
    std::string verb, rest;
    in >> verb >> std::ws;
    if (verb == "absent") {
      seated_ = true;
      absent_.clear();
      for (int r; in >> r;) absent_.push_back(r);
      return false;
    }
    if (verb == "go") return take_seats(in, message.descriptors);
    std::getline(in, rest);
    if (verb == "refuse") throw ConfigError(rest);
    throw RunEnded(rest);
  }

  bool take_seats(std::istream& pids, std::vector<FileDescriptor>& pidfds) {
    for (auto& pidfd : pidfds) {
      NodePeer peer{std::move(pidfd), 0};
      pids >> peer.pid;
      links_.peers.push_back(std::move(peer));
    }
    if (static_cast<int>(links_.peers.size()) != seat_.size || !pids) {
      throw RunEnded(rank_name(seat_.node, 0) + " sent a malformed list of ranks");
    }
    links_.connections.resize(seat_.size);
    links_.connections[0] = std::move(host_);
    return true;
  }

  const NodeSeat& seat_;
  const Patience& patience_;
  Waiter waiter_;
  std::vector<int> absent_;
  LocalSocket host_;
  int host_pid_ = 0;
  bool seated_ = false;
  NodeLinks links_;
};

void validate(const NodeSeat& seat) {
  if (seat.size < 1) {
    throw ConfigError("a node of " + std::to_string(seat.size) + " ranks: at least 1 is needed");
  }
  if (seat.rank < 0 || seat.rank >= seat.size) {
    throw ConfigError(rank_name(seat.node, seat.rank) + " is out of range: the node has " +
                      std::to_string(seat.size) + " ranks");
  }
  if (seat.run_id.size() > kMaxRunId) {
    throw ConfigError("the run id \"" + seat.run_id + "\" has " +
                      std::to_string(seat.run_id.size()) + " bytes: shorten it to " +
                      std::to_string(kMaxRunId));
  }
}

}  // namespace

NodeLinks meet_in_node(const NodeSeat& seat, const Patience& patience) {
  validate(seat);
  if (seat.size == 1) {
    NodeLinks alone;
    alone.peers.push_back(peer_of(::getpid()));
    alone.connections.resize(1);
    return alone;
  }
  return seat.rank == 0 ? Host(seat, patience).meet() : Guest(seat, patience).meet();
}

std::string rank_name(int node, int rank) {
  return "rank " + std::to_string(rank) + " of node " + std::to_string(node);
}

std::string gone_sentence(int node, int rank, int pid, const std::string& what) {
  return rank_name(node, rank) + " is gone (pid " + std::to_string(pid) + "): " + what;
}

std::string late_sentence(int node, const std::vector<int>& ranks, const std::string& what,
                          const Patience& patience) {
  return counted("rank", ranks) + " of node " + std::to_string(node) + " did not come to " + what +
         " within " + in_seconds(patience.limit.value_or(milliseconds(0)));
}

}  // namespace hybridsync
