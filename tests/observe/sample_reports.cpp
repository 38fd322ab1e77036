// Writes reports of sample runs for the browser test: sample_reports FOLDER (must not exist).
#include <iostream>

#include "hybridsync/observe/report.h"
#include "tests/observe/sample_run.h"

using hybridsync::SampleRun;
using hybridsync::write_report;
using hybridsync::write_sample_run;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: sample_reports FOLDER\n";
    return 2;
  }
  const std::string root = argv[1];
  const auto run = [&](const std::string& folder, const SampleRun& sample) {
    return write_sample_run(root + "/" + folder, sample);
  };
  const std::string sync = run("sync", {});
  const std::string hybrid = run("hybrid", {.name = "hybrid", .interval = 8});
  write_report({sync, hybrid}, root + "/two.html");

  std::vector<std::string> seeds;
  for (uint64_t seed : {1, 2, 3}) {
    std::string end = "-";
    end += std::to_string(seed);
    seeds.push_back(run("sync" + end, {.seed = seed}));
    seeds.push_back(run("hybrid" + end, {.name = "hybrid", .seed = seed, .interval = 8}));
  }
  write_report(seeds, root + "/seeds.html");

  const std::string hostile = "</script><img src=x onerror=alert(1)> & {{data}} \"quoted\"";
  write_report({run("hostile", {.name = hostile, .steps = 5000}),
                run("cut", {.steps = 90, .finished = false}),
                run("alone", {.name = "one node", .steps = 40, .nodes = 1})},
               root + "/hostile.html");

  write_report(
      {sync, run("delayed", {.name = "delayed", .interval = 8, .nodes = 3, .staleness = 2})},
      root + "/delayed.html");
  std::cout << root << "\n";
  return 0;
}
