// Where the ranks of a run find each other.
#include "hybridsync/wire/rendezvous.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <list>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "hybridsync/config/error.h"
#include "hybridsync/wire/message_stream.h"

namespace hybridsync {
namespace {

constexpr uint32_t kMagic = 0x76736268;  // "hbsv"
constexpr uint8_t kProtocol = 1;
constexpr size_t kStrangerLimitBytes = 4096;  // before it said who it is
constexpr size_t kMemberLimitBytes = 64 << 20;
constexpr size_t kReplyLimitBytes = size_t{1} << 32;
constexpr size_t kStrangers = 64;  // connections beyond those of the ranks
constexpr auto kStrangerPatience = std::chrono::seconds(10);
constexpr auto kConnectAgain = std::chrono::milliseconds(20);

enum class Kind : uint8_t {
  hello,    // rank: magic, protocol, run id, rank, world size
  gather,   // rank: name, bytes
  welcome,  // host: nothing
  refused,  // host: why
  missing,  // host: ranks that a gather waits for
  all,      // host: every rank's bytes
  failed,   // host: why
};

Writer start(Kind kind) {
  Writer writer;
  writer.u8(static_cast<uint8_t>(kind));
  return writer;
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace

class RendezvousHost::Impl {
 public:
  Impl(int world_size, std::string run_id)
      : world_size_(world_size),
        run_id_(std::move(run_id)),
        listener_(listen_on_loopback()),
        stop_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { serve(); }) {}

  ~Impl() {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_of(listener_)); }

 private:
  struct Connection {
    MessageStream stream;
    Clock::time_point since = Clock::now();
    int rank = -1;  // none: a stranger
    bool closing = false;
    bool ended = false;
  };
  using Gather = std::map<int, Bytes>;  // by rank

  void serve() {
    while (wait()) {
      for (Connection& connection : connections_) read(connection);
      for (Connection& connection : connections_) write(connection);
      connections_.remove_if([](const Connection& c) { return c.ended; });
      accept_all();
    }
  }

  // False when the host is to stop.
  bool wait() {
    std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      const short events = connection.stream.flushed() ? POLLIN : POLLIN | POLLOUT;
      waits.push_back({connection.stream.descriptor(), events, 0});
    }
    ::poll(waits.data(), waits.size(), 1000);
    return waits[0].revents == 0;
  }

  void accept_all() {
    while (true) {
      FileDescriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted) return;
      if (connections_.size() < static_cast<size_t>(world_size_) + kStrangers) {
        connections_.push_back({MessageStream(std::move(accepted))});
      }
    }
  }

  void read(Connection& from) {
    const bool open = from.stream.fill();
    while (!from.closing) {
      const size_t limit = from.rank < 0 ? kStrangerLimitBytes : kMemberLimitBytes;
      const std::optional<Bytes> message = from.stream.next(limit);
      if (!message) break;
      handle(from, *message);
    }
    const bool silent = from.rank < 0 && Clock::now() - from.since > kStrangerPatience;
    if (!open || from.stream.malformed() || silent) end(from);
  }

  void write(Connection& to) {
    if (to.ended) return;
    if (!to.stream.flush() || (to.closing && to.stream.flushed())) end(to);
  }

  void handle(Connection& from, const Bytes& message) {
    Reader reader(message);
    const Kind kind{reader.u8()};
    if (from.rank < 0 && kind == Kind::hello) {
      meet(from, reader);
    } else if (from.rank >= 0 && kind == Kind::gather) {
      gather(from, reader);
    } else {
      from.closing = true;
    }
  }

  void meet(Connection& from, Reader& reader) {
    const bool ours = reader.u32() == kMagic && reader.u8() == kProtocol;
    const std::string run_id = reader.text();
    const auto rank = static_cast<int>(reader.u32());
    const auto world_size = static_cast<int>(reader.u32());
    if (!ours || !reader.done()) {
      from.closing = true;
      return;
    }
    const std::string why = objection(run_id, rank, world_size);
    from.closing = !why.empty();
    if (why.empty()) {
      from.rank = rank;
      ended_.erase(rank);
    }
    from.stream.send(why.empty() ? start(Kind::welcome).view()
                                 : start(Kind::refused).text(why).view());
  }

  // Why this rank cannot come in; empty when it can.
  std::string objection(const std::string& run_id, int rank, int world_size) const {
    if (run_id != run_id_) {
      return "the rendezvous serves run " + quoted(run_id_) + ", not run " + quoted(run_id) +
             ": a process of another run has its address";
    }
    if (world_size != world_size_) {
      return "rank " + std::to_string(rank) + " was started for " + std::to_string(world_size) +
             " ranks, but the run has " + std::to_string(world_size_);
    }
    if (rank < 0 || rank >= world_size_) {
      return "rank " + std::to_string(rank) + " is out of range: the run has ranks 0 to " +
             std::to_string(world_size_ - 1);
    }
    if (find(rank)) {
      return "rank " + std::to_string(rank) +
             " is taken by another process of this run: every process needs a rank of its own";
    }
    return "";
  }

  const Connection* find(int rank) const {
    for (const Connection& connection : connections_) {
      if (connection.rank == rank && !connection.ended) return &connection;
    }
    return nullptr;
  }

  void gather(Connection& from, Reader& reader) {
    const std::string name = reader.text();
    const ByteSpan bytes = reader.bytes();
    if (!reader.done() || gathers_[name].contains(from.rank)) {
      from.closing = true;
      return;
    }
    Gather& gather = gathers_[name];
    gather.emplace(from.rank, copy_of(bytes));
    advance(name, gather);
  }

  // Tells those who wait in this gather how it stands.
  void advance(const std::string& name, const Gather& gather) {
    const std::vector<int> absent = missing(gather);
    std::vector<int> ended;
    for (int rank : absent) {
      if (ended_.contains(rank)) ended.push_back(rank);
    }
    Writer news = start(Kind::missing);
    if (absent.empty()) {
      news = start(Kind::all);
      for (const auto& [rank, bytes] : gather) news.bytes(bytes);
    } else if (!ended.empty()) {
      news = start(Kind::failed);
      news.text(counted("rank", ended) + " ended before coming to " + quoted(name));
    } else {
      news.list(absent);
    }
    for (Connection& connection : connections_) {
      if (!connection.ended && gather.contains(connection.rank))
        connection.stream.send(news.view());
    }
    if (absent.empty() || !ended.empty()) gathers_.erase(name);
  }

  std::vector<int> missing(const Gather& gather) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < world_size_; ++rank) {
      if (!gather.contains(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

  void end(Connection& connection) {
    if (std::exchange(connection.ended, true) || connection.rank < 0) return;
    ended_.insert(connection.rank);
    const std::map<std::string, Gather> open = gathers_;
    for (const auto& [name, gather] : open) advance(name, gather);
  }

  const int world_size_;
  const std::string run_id_;
  const FileDescriptor listener_;
  const FileDescriptor stop_;
  std::list<Connection> connections_;
  std::map<std::string, Gather> gathers_;
  std::set<int> ended_;  // ranks that were here
  std::thread thread_;   // last: it uses the others
};

RendezvousHost::RendezvousHost(int world_size, std::string run_id)
    : impl_(std::make_unique<Impl>(world_size, std::move(run_id))) {}
RendezvousHost::~RendezvousHost() = default;
std::string RendezvousHost::address() const { return impl_->address(); }

class Rendezvous::Impl {
 public:
  Impl(const std::string& address, const std::string& run_id, int rank, int world_size,
       Patience patience)
      : address_(address), world_size_(world_size), patience_(std::move(patience)) {
    if (world_size_ == 1) return;
    missing_.clear();
    const Waiter waiter = connect();
    stream_->send(start(Kind::hello)
                      .u32(kMagic)
                      .u8(kProtocol)
                      .text(run_id)
                      .u32(static_cast<uint32_t>(rank))
                      .u32(static_cast<uint32_t>(world_size))
                      .view());
    await(Kind::welcome, waiter, "an answer of the rendezvous at " + address_);
  }

  std::vector<Bytes> all_gather(const std::string& name, Bytes mine) {
    if (world_size_ == 1) return {std::move(mine)};
    missing_.clear();
    stream_->send(start(Kind::gather).text(name).bytes(mine).view());
    const Bytes answer = await(Kind::all, Waiter(patience_), quoted(name));
    Reader reader(answer);
    reader.u8();
    std::vector<Bytes> all;
    for (int rank = 0; rank < world_size_; ++rank) all.push_back(copy_of(reader.bytes()));
    if (!reader.done()) throw RunEnded("the rendezvous gave a wrong answer to " + quoted(name));
    return all;
  }

 private:
  // Tries until somebody listens: the host may be started after us.
  Waiter connect() {
    Waiter waiter(patience_);
    while (true) {
      if (std::optional<FileDescriptor> socket = connect_to(address_)) {
        stream_.emplace(std::move(*socket));
        return waiter;
      }
      check(waiter, "an answer of the rendezvous at " + address_);
      std::this_thread::sleep_for(std::min(waiter.slice(), kConnectAgain));
    }
  }

  // The host's message of that kind.
  Bytes await(Kind wanted, Waiter waiter, const std::string& what) {
    while (true) {
      const bool open = stream_->flush() && stream_->fill();
      while (std::optional<Bytes> message = stream_->next(kReplyLimitBytes)) {
        if (take(*message) == wanted) return std::move(*message);
      }
      if (!open || stream_->malformed()) {
        throw RunEnded("the rendezvous at " + address_ + " ended while this rank waited for " +
                       what);
      }
      check(waiter, what);
      const short events = stream_->flushed() ? POLLIN : POLLIN | POLLOUT;
      pollfd wait{stream_->descriptor(), events, 0};
      ::poll(&wait, 1, static_cast<int>(waiter.slice().count()));
    }
  }

  Kind take(const Bytes& message) {
    Reader reader(message);
    const Kind kind{reader.u8()};
    if (kind == Kind::missing) missing_ = reader.list<int>();
    if (kind == Kind::refused) throw ConfigError(reader.text());
    if (kind == Kind::failed) throw RunEnded(reader.text());
    return kind;
  }

  void check(Waiter& waiter, const std::string& what) const {
    const Waiter::Verdict verdict = waiter.check([&] { return Waiting{0, missing_, what}; });
    if (verdict == Waiter::Verdict::interrupted) {
      throw Interrupted("interrupted while waiting for " + what);
    }
    if (verdict != Waiter::Verdict::timed_out) return;
    const std::string within = " within " + in_seconds(*patience_.limit);
    if (missing_.empty()) throw RunEnded(what + " did not come" + within);
    throw RunEnded(counted("rank", missing_) + " did not come to " + what + within);
  }

  const std::string address_;
  const int world_size_;
  const Patience patience_;
  std::optional<MessageStream> stream_;
  std::vector<int> missing_;  // as far as the host has said
};

Rendezvous::Rendezvous(const std::string& address, const std::string& run_id, int rank,
                       int world_size, Patience patience)
    : impl_(std::make_unique<Impl>(address, run_id, rank, world_size, std::move(patience))) {}
Rendezvous::~Rendezvous() = default;
std::vector<Bytes> Rendezvous::all_gather(const std::string& name, Bytes mine) {
  return impl_->all_gather(name, std::move(mine));
}

}  // namespace hybridsync
