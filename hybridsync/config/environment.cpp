#include "hybridsync/config/environment.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// Nothing when the variable is unset or empty.
std::optional<int> number_of(const char* name) {
  const std::string text = text_of(name);
  if (text.empty()) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw ConfigError(std::string(name) + " is '" + text +
                      "', but must be an integer of at least 0");
  }
  return number;
}

int needed(const char* name, const std::string& because) {
  const auto number = number_of(name);
  if (!number) {
    throw ConfigError(std::string(name) + " is not set, but " + because +
                      "; start through a launcher that sets both, or unset all");
  }
  return *number;
}

std::string is(const char* name, int value) {
  return std::string(name) + " is " + std::to_string(value);
}

void require(bool good, const std::string& what) {
  if (!good) throw ConfigError(what);
}

void check_alone(const Environment& e) {
  require(e.world_size >= 1, "WORLD_SIZE is 0, but must be at least 1");
  require(e.local_world_size >= 1, "LOCAL_WORLD_SIZE is 0, but must be at least 1");
  require(e.rank < e.world_size, is("RANK", e.rank) + ", but " + is("WORLD_SIZE", e.world_size) +
                                     "; ranks are counted from 0");
  require(e.local_rank < e.local_world_size, is("LOCAL_RANK", e.local_rank) + ", but " +
                                                 is("LOCAL_WORLD_SIZE", e.local_world_size) +
                                                 "; ranks are counted from 0");
  require(e.local_world_size <= e.world_size, is("LOCAL_WORLD_SIZE", e.local_world_size) +
                                                  ", but " + is("WORLD_SIZE", e.world_size) +
                                                  "; a node has no more ranks than the run");
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]";
}

std::string rendezvous_of(const std::string& because) {
  std::string host = text_of("MASTER_ADDR");
  require(!host.empty(), "MASTER_ADDR is not set, but " + because + "; set it to 127.0.0.1");
  require(is_loopback(host),
          "MASTER_ADDR is " + host +
              ", but only ranks on this machine can join in this version; set it to 127.0.0.1");
  const int port = needed("MASTER_PORT", because);
  require(port >= 1 && port <= 65535, is("MASTER_PORT", port) + ", but must be from 1 to 65535");
  if (host == "::1") host = "[::1]";
  return host + ":" + std::to_string(port);
}

// The ranks of one node need no word about nodes; several nodes do.
void read_node(Environment& e, const std::string& because) {
  const bool has_local = number_of("LOCAL_WORLD_SIZE").has_value();
  if (e.world_size == 1 && !has_local) return;
  e.local_world_size = needed("LOCAL_WORLD_SIZE", because);
  e.local_rank = needed("LOCAL_RANK", is("LOCAL_WORLD_SIZE", e.local_world_size));
  const bool one_node = e.local_world_size >= e.world_size;
  e.node = one_node ? number_of("GROUP_RANK").value_or(0)
                    : needed("GROUP_RANK",
                             because + " and " + is("LOCAL_WORLD_SIZE", e.local_world_size));
}

}  // namespace

Environment from_environment() {
  Environment e;
  e.run_id = text_of("HYBRIDSYNC_RUN_ID");
  e.run_folder = text_of("HYBRIDSYNC_RUN_FOLDER");
  const auto rank = number_of("RANK");
  const auto world_size = number_of("WORLD_SIZE");
  if (!rank && world_size.value_or(1) == 1) return e;
  e.rank = rank ? *rank : needed("RANK", is("WORLD_SIZE", *world_size));
  e.world_size = needed("WORLD_SIZE", is("RANK", e.rank));
  const std::string because = is("WORLD_SIZE", e.world_size);
  read_node(e, because);
  check_alone(e);
  if (e.world_size == 1) return e;
  e.rendezvous = rendezvous_of(because);
  require(!e.run_id.empty(),
          "HYBRIDSYNC_RUN_ID is not set, but " + because +
              "; set it to one word, the same on all ranks and new for each run");
  return e;
}

void check(const Environment& e, const Config& config) {
  check_alone(e);
  const std::string sizes = std::to_string(config.nodes()) + " nodes of " +
                            std::to_string(config.ranks_per_node()) + " ranks";
  require(e.world_size == config.ranks(),
          is("WORLD_SIZE", e.world_size) + ", but " + config.source + " has " +
              std::to_string(config.ranks()) + " ranks (" + sizes +
              "); change the tiers' sizes or start " + std::to_string(config.ranks()));
  require(e.local_world_size == config.ranks_per_node(),
          is("LOCAL_WORLD_SIZE", e.local_world_size) + ", but " + config.source + " has " + sizes +
              "; change tier[0].size or start " + std::to_string(config.ranks_per_node()) +
              " per node");
  require(e.node < config.nodes(), is("GROUP_RANK", e.node) + ", but " + config.source + " has " +
                                       sizes + "; nodes are counted from 0");
}

}  // namespace hybridsync
