#include "hybridsync/simulate/virtual_node.h"

namespace hybridsync {
namespace {

Lane::Options lane_options(const Scenario& scenario, const Process& self) {
  Lane::Options options;
  options.run_id = "simulated";
  options.self = self;
  options.table = scenario.table;
  options.schedule = scenario.schedule;
  options.policy = scenario.policy;
  options.outer = scenario.outer;
  options.codec = scenario.codec;
  options.heartbeats = has_coordinator(scenario);
  options.views = scenario.views;
  return options;
}

}  // namespace

VirtualProcess::VirtualProcess(const Scenario& scenario, const Process& self, Oracle& oracle,
                               Random random, Lane::SendFunction send)
    : desk(scenario.table, scenario.table.of_lane(0)),
      lane(lane_options(scenario, self), desk, std::move(send)),
      training(scenario, self, desk, oracle, random) {
  desk.on_work([this] { work = true; });
}

bool has_coordinator(const Scenario& scenario) {
  return scenario.views || scenario.policy.staleness > 0;
}

}  // namespace hybridsync
