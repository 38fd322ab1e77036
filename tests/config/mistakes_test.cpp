// Every kind of mistake, with its exact message: file, line, key, value, remedy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "hybridsync/config/load.h"
#include "tests/config/message_of.h"

namespace hybridsync {
namespace {

std::string mistake_in(const std::string& text) {
  return message_of([&] { parse(text, "h.toml"); });
}

// Two good tiers; keys added to it belong to the outer one, in line 7.
constexpr const char* kTiers =
    "[[tier]]\nsize = 2\n[[tier]]\nsize = 2\nstrategy = \"periodic\"\n\n";

std::string mistake_in_outer(const std::string& line) { return mistake_in(kTiers + line); }

TEST(Mistakes, Syntax) {
  EXPECT_TRUE(mistake_in("[train]\nlr = \n").starts_with("h.toml:2: not TOML: "));
  EXPECT_TRUE(mistake_in("[train\n").starts_with("h.toml:1: not TOML: "));
  EXPECT_TRUE(mistake_in("[train]\n\xc3\xa9 = 1\n").starts_with("h.toml:2: not TOML: "));
  EXPECT_TRUE(mistake_in("[?train]\n").starts_with("h.toml:1: not TOML: "));
  EXPECT_NE(mistake_in("[train]\nlr = 1\nlr = 2\n").find("h.toml:3: not TOML: "),
            std::string::npos);
}

TEST(Mistakes, UnknownKeys) {
  EXPECT_EQ(mistake_in_outer("evry = 8"),
            "h.toml:7: tier[1].evry = 8: unknown key; did you mean tier.every?");
  EXPECT_EQ(mistake_in("[accumulate]\nlr = 0.1"),
            "h.toml:2: accumulate.lr = 0.1: unknown key; did you mean train.lr?");
  EXPECT_EQ(mistake_in("lr = 0.1"), "h.toml:1: lr = 0.1: unknown key; did you mean train.lr?");
  EXPECT_EQ(mistake_in("[start]\nbanana = \"x\""),
            "h.toml:2: start.banana = \"x\": unknown key; known here: every_step");
  EXPECT_EQ(mistake_in_outer("outer = { moment = 0.5, momentm = 0.5 }"),
            "h.toml:7: tier[1].outer.moment = 0.5: unknown key; did you mean tier.outer.momentum?");
  EXPECT_EQ(mistake_in("\"train.lr\" = 1"),
            "h.toml:1: train.lr = 1: unknown key; did you mean train.lr?");
}

TEST(Mistakes, UnknownTables) {
  EXPECT_EQ(mistake_in("\n[trian]\nlr = 1"),
            "h.toml:2: [trian]: unknown table; did you mean train?");
  EXPECT_EQ(mistake_in("[outer]\nlr = 1"),
            "h.toml:1: [outer]: unknown table; did you mean tier.outer?");
}

TEST(Mistakes, TheFirstInTheTextIsTold) {
  EXPECT_TRUE(mistake_in("[train]\nzz = 1\naa = 1").starts_with("h.toml:2: train.zz = 1: "));
}

TEST(Mistakes, WrongTypes) {
  EXPECT_EQ(mistake_in("[train]\nsteps = \"many\""),
            "h.toml:2: train.steps = \"many\": expected an integer, found a string");
  EXPECT_EQ(mistake_in("[train]\nsteps = 1.5"),
            "h.toml:2: train.steps = 1.5: expected an integer, found a number");
  EXPECT_EQ(mistake_in("[train]\nlr = \"0.1\""),
            "h.toml:2: train.lr = \"0.1\": expected a number, found a string");
  EXPECT_EQ(mistake_in("[train]\ndata = 2020-01-01"),
            "h.toml:2: train.data = (a date or time): expected a string, found a date or time");
  EXPECT_EQ(mistake_in("train = 3"), "h.toml:1: train = 3: expected a table, found an integer");
  EXPECT_EQ(mistake_in("[train.lr]\nx = 1"),
            "h.toml:1: [train.lr]: expected a number, found a table");
  EXPECT_EQ(
      mistake_in("[tier]\nsize = 2"),
      "h.toml:1: tier: expected a list of tables, found a table; write [[tier]] once per tier");
  EXPECT_EQ(mistake_in("tier = [1]"), "h.toml:1: tier[0] = 1: expected a table, found an integer");
  EXPECT_EQ(mistake_in_outer("outer.nesterov = 1"),
            "h.toml:7: tier[1].outer.nesterov = 1: expected true or false, found an integer");
  EXPECT_EQ(mistake_in("[[tier]]\nsize = \"big\""),
            "h.toml:2: tier[0].size = \"big\": expected an integer or \"auto\", found a string");
}

TEST(Mistakes, ImpossibleValues) {
  EXPECT_EQ(mistake_in("[accumulate]\nsteps = 0"),
            "h.toml:2: accumulate.steps = 0: must be at least 1");
  EXPECT_EQ(mistake_in("[train]\nmicro_batch = 0"),
            "h.toml:2: train.micro_batch = 0: must be at least 1");
  EXPECT_EQ(mistake_in("[train]\nclip = -1"), "h.toml:2: train.clip = -1: must be at least 0");
  EXPECT_EQ(mistake_in("[train]\nlr = nan"), "h.toml:2: train.lr = nan: must be a finite number");
  EXPECT_EQ(mistake_in("[train]\nlr = inf"), "h.toml:2: train.lr = inf: must be a finite number");
  EXPECT_EQ(mistake_in("[train]\nseed = -1"), "h.toml:2: train.seed = -1: must be at least 0");
  EXPECT_EQ(mistake_in("[train]\nthreads = 5000000000"),
            "h.toml:2: train.threads = 5000000000: must be at most 2147483647");
  EXPECT_EQ(mistake_in("[train]\nmomentum = 1"),
            "h.toml:2: train.momentum = 1: must be at least 0 and less than 1");
  EXPECT_EQ(mistake_in("[start]\nevery_step = -1"),
            "h.toml:2: start.every_step = -1: must be at least 0");
  EXPECT_EQ(mistake_in("[[tier]]\nsize = 0"), "h.toml:2: tier[0].size = 0: must be at least 1");
  EXPECT_EQ(mistake_in("[[tier]]\ntimeout = 0"),
            "h.toml:2: tier[0].timeout = 0: must be more than 0 and at most 31536000");
  EXPECT_EQ(mistake_in_outer("every = 0"), "h.toml:7: tier[1].every = 0: must be at least 1");
}

TEST(Mistakes, Texts) {
  EXPECT_EQ(mistake_in("train.device = \"cuda:x\""),
            "h.toml:1: train.device = \"cuda:x\": must be auto, cpu, cuda or cuda:N");
  EXPECT_EQ(mistake_in("record.name = \"a/b\""),
            "h.toml:1: record.name = \"a/b\": must be one folder's name; the folder above it is "
            "record.folder");
  EXPECT_EQ(mistake_in("train.data = \"\""), "h.toml:1: train.data = \"\": must not be empty");
  EXPECT_EQ(
      mistake_in("[[tier]]\nname = \"1\""),
      "h.toml:2: tier[0].name = \"1\": must be of letters, digits, _ and -, and not begin with "
      "a digit");
}

TEST(Mistakes, Choices) {
  EXPECT_EQ(
      mistake_in("train.optimizer = \"adm\""),
      "h.toml:1: train.optimizer = \"adm\": must be one of sgd, adam, adamw; did you mean adam?");
  EXPECT_EQ(mistake_in("learning_rate.scaling = \"cubic\""),
            "h.toml:1: learning_rate.scaling = \"cubic\": must be one of sqrt, linear, none");
  EXPECT_EQ(mistake_in("[[tier]]\noverlap = 0"),
            "h.toml:2: tier[0].overlap = 0: expected one of off, backward, next_window, found an "
            "integer");
}

TEST(Mistakes, Units) {
  EXPECT_EQ(
      mistake_in_outer("emulate = { rate = \"100 Mb/s\" }"),
      "h.toml:7: tier[1].emulate.rate = \"100 Mb/s\": expected a rate such as \"100 Mbit/s\"; "
      "the units are Gbit/s, Mbit/s, kbit/s, bit/s");
  EXPECT_EQ(mistake_in_outer("emulate = { rtt = \"fast\" }"),
            "h.toml:7: tier[1].emulate.rtt = \"fast\": expected a duration such as \"50 ms\"; the "
            "units are h, min, s, ms, us");
  EXPECT_EQ(mistake_in_outer("emulate = { rtt = \"-1 s\" }"),
            "h.toml:7: tier[1].emulate.rtt = \"-1 s\": must be at least 0 and at most 3600");
  EXPECT_EQ(mistake_in_outer("emulate = { rtt = true }"),
            "h.toml:7: tier[1].emulate.rtt = true: expected a duration such as \"50 ms\", found a "
            "truth value");
}

TEST(Mistakes, NotAvailableInThisVersion) {
  const std::string later = "is not available in this version; available: ";
  EXPECT_EQ(mistake_in("record.tensorboard = true"),
            "h.toml:1: record.tensorboard = true: " + later + "folder, name");
  for (const char* table : {"coordinator", "security", "checkpoint"}) {
    EXPECT_EQ(mistake_in(std::string("[").append(table) + "]\nx = 1"),
              std::string("h.toml:1: [").append(table) + "]: " + later +
                  "train, accumulate, batch_norm, learning_rate, start, tier, record");
  }
}

TEST(Mistakes, IntervalsThatAdapt) {
  EXPECT_EQ(mistake_in_outer("every_max = 8"),
            "h.toml:7: tier[1].every_max = 8: bounds an interval that adapts; set tier.adapt, or "
            "leave this key out");
  EXPECT_NE(mistake_in_outer("every_min = 2").find("bounds an interval"), std::string::npos);
  EXPECT_EQ(mistake_in("[[tier]]\n[[tier]]\nadapt = \"grow\""),
            "h.toml:3: tier[1].adapt = \"grow\": is for strategies that exchange deltas every few "
            "steps, such as \"periodic\"; set one, or leave this key out");
  EXPECT_EQ(mistake_in_outer("adapt = \"qsr\"\nevery = 4\nparts = 2"),
            "h.toml:7: tier[1].adapt = \"qsr\": needs tier.parts = 1 in this version: parts have "
            "their rounds at steps of their own, spread over an interval that stays; set that, or "
            "adapt = \"off\"");
  EXPECT_EQ(mistake_in_outer("adapt = \"loss\"\nevery = 4\nevery_max = 3"),
            "h.toml:9: tier[1].every_max = 3: is less than the 4 steps with which the interval "
            "begins (tier.every)");
  EXPECT_EQ(mistake_in_outer("adapt = \"loss\"\nevery = 4\nevery_min = 5"),
            "h.toml:9: tier[1].every_min = 5: is more than the 4 steps with which the interval "
            "begins (tier.every)");
  EXPECT_EQ(mistake_in_outer("adapt = \"drift\"")
                .find("h.toml:7: tier[1].adapt = \"drift\": must "
                      "be one of off, divergence, loss, grow, "
                      "qsr, adacomm"),
            0u);
  EXPECT_EQ(mistake_in_outer("adapt = \"divergence\"\nevery_min = 2\nevery_max = 9"), "");
}

TEST(Mistakes, ChoicesOfLaterVersions) {
  EXPECT_EQ(mistake_in("[[tier]]\n[[tier]]\nstrategy = \"replay\""),
            "h.toml:3: tier[1].strategy = \"replay\": is not available in this version; available: "
            "every_step, periodic, delayed, diloco, sparse_loco, sparse_sign, top_k");
  EXPECT_EQ(
      mistake_in("[[tier]]\ngroup = \"nccl\""),
      "h.toml:2: tier[0].group = \"nccl\": is not available in this version; available: auto, "
      "shm");
  EXPECT_EQ(
      mistake_in_outer("overlap = 2"),
      "h.toml:7: tier[1].overlap = 2: is not available yet: between nodes only overlap = 0 is; "
      "off, backward and next_window belong to the innermost tier");
  EXPECT_EQ(mistake_in("[[tier]]\n[[tier]]\n[[tier]]\nname = \"c\""),
            "h.toml:3: [tier[2]]: a third tier is not available in this version; one tier of ranks "
            "and one of nodes are");
}

TEST(Mistakes, Codecs) {
  EXPECT_EQ(mistake_in_outer("codec = \"int3\""),
            "h.toml:7: tier[1].codec = \"int3\": must be one of fp32, bf16, fp16, int8, int4, "
            "int2, sign, levels, top_k; did you mean int8?");
  EXPECT_EQ(mistake_in_outer("codec = \"int4\"\ndensity = 0.5"),
            "h.toml:8: tier[1].density = 0.5: is for codec = \"top_k\" only; set that, or leave "
            "this key out");
  EXPECT_EQ(mistake_in_outer("gamma = 0.5"),
            "h.toml:7: tier[1].gamma = 0.5: is for codec = \"bf16\" and shorter ones only; set "
            "that, or leave this key out");
  EXPECT_EQ(mistake_in_outer("levels = 4"), "h.toml:7: tier[1].levels = 4: must be 3, 5 or 7");
  EXPECT_EQ(mistake_in_outer("value_bits = 6"),
            "h.toml:7: tier[1].value_bits = 6: must be 16, 8, 4, 2 or 1");
  EXPECT_EQ(mistake_in_outer("density = 0"),
            "h.toml:7: tier[1].density = 0: must be more than 0 and at most 1");
  EXPECT_EQ(mistake_in_outer("error_feedback = 0\nresidual = \"local\"\ncodec = \"int4\""),
            "h.toml:7: tier[1].error_feedback = 0.0: drops what a code leaves out, which residual "
            "= \"local\" keeps; leave one of them out");
}

TEST(Mistakes, CodecsOfGradients) {
  const std::string tiers = "[[tier]]\n[[tier]]\n";
  EXPECT_EQ(mistake_in(tiers + "codec = \"int8\"\nresidual = \"local\""),
            "h.toml:4: tier[1].residual = \"local\": keeps what codes leave out in the parameters, "
            "where gradients are not yet; with strategy = \"every_step\" set \"buffer\", or leave "
            "this key out");
  EXPECT_EQ(
      mistake_in(tiers + "strategy = \"top_k\"\ngamma = 1"),
      "h.toml:4: tier[1].gamma = 1.0: is what a residual in the parameters keeps, and that of "
      "gradients is beside them; with strategy = \"every_step\" leave this key out");
  EXPECT_EQ(mistake_in(tiers + "strategy = \"top_k\"\nerror_feedback = 0"),
            "h.toml: tier[1].momentum_correction = true: sums up what was not sent yet, which "
            "error_feedback = 0 drops; leave one of them out");
  EXPECT_EQ(
      mistake_in(tiers + "codec = \"int8\"\nmomentum_correction = true"),
      "h.toml:4: tier[1].momentum_correction = true: is for codec = \"top_k\" only; set that, "
      "or leave this key out");
  EXPECT_EQ(mistake_in_outer("codec = \"top_k\"\nmomentum_correction = true"),
            "h.toml:8: tier[1].momentum_correction = true: is for gradients, of strategy = "
            "\"every_step\" or \"top_k\"; set one of them, or leave this key out");
  EXPECT_EQ(mistake_in_outer("codec = \"int4\"\ndensity_warmup = 5"),
            "h.toml:8: tier[1].density_warmup = 5: is for codec = \"top_k\" only; set that, or "
            "leave this key out");
  EXPECT_EQ(mistake_in_outer("density_warmup = -1"),
            "h.toml:7: tier[1].density_warmup = -1: must be at least 0");
}

TEST(Mistakes, Parts) {
  EXPECT_EQ(mistake_in_outer("every = 4\nparts = 5"),
            "h.toml:8: tier[1].parts = 5: is more than the 4 steps between two rounds of a part "
            "(tier.every)");
  EXPECT_EQ(mistake_in("[[tier]]\n[[tier]]\nparts = 2"),
            "h.toml:3: tier[1].parts = 2: is for strategies that exchange deltas, such as "
            "\"periodic\"; set one, or leave this key out");
  EXPECT_EQ(
      mistake_in("[[tier]]\n[[tier]]\nmomentum_pull = 0.5"),
      "h.toml:3: tier[1].momentum_pull = 0.5: is for strategies that exchange deltas, such as "
      "\"periodic\"; set one, or leave this key out");
  EXPECT_EQ(mistake_in("[[tier]]\n[[tier]]\nsize = 2\nstrategy = \"delayed\"\nstaleness = 1\n"
                       "momentum_pull = 0.5"),
            "h.toml:6: tier[1].momentum_pull = 0.5: needs rounds that wait for everybody; set "
            "staleness = 0, or leave it out");
  EXPECT_EQ(mistake_in_outer("parts = \"all\""),
            "h.toml:7: tier[1].parts = \"all\": expected an integer or \"auto\", found a string");
}

TEST(Mistakes, Gains) {
  EXPECT_EQ(
      mistake_in_outer("outer = { lr = \"auto\" }"),
      "h.toml:7: tier[1].outer.lr = \"auto\": makes up for what a codec leaves out, and there "
      "is none; set tier.codec, or a number");
  EXPECT_EQ(
      mistake_in_outer("outer = { lr = \"aut\" }"),
      "h.toml:7: tier[1].outer.lr = \"aut\": must be a number or \"auto\"; did you mean auto?");
  EXPECT_EQ(mistake_in_outer("outer = { lr = -1 }"),
            "h.toml:7: tier[1].outer.lr = -1: must be at least 0");
  EXPECT_EQ(mistake_in_outer("codec = \"bf16\"\nsmall_tensors = \"int8\""),
            "h.toml:8: tier[1].small_tensors = \"int8\": is for codec = \"int8\" and shorter ones "
            "only; set that, or leave this key out");
}

TEST(Mistakes, KeysOfTheOtherTier) {
  EXPECT_EQ(
      mistake_in("[[tier]]\nevery = 8"),
      "h.toml:2: tier[0].every = 8: applies between nodes only; move it to tier[1], the outer "
      "tier");
  EXPECT_EQ(
      mistake_in("[[tier]]\nemulate = { rtt = 1 }"),
      "h.toml:2: tier[0].emulate.rtt = 1: applies between nodes only; move it to tier[1], the "
      "outer tier");
  EXPECT_EQ(
      mistake_in_outer("group = \"shm\""),
      "h.toml:7: tier[1].group = \"shm\": applies inside a node only; move it to tier[0], the "
      "innermost tier");
  EXPECT_EQ(
      mistake_in("[[tier]]\nsize = 2\nstrategy = \"periodic\""),
      "h.toml:3: tier[0].strategy = \"periodic\": the innermost tier joins the ranks of a node in "
      "every step; set \"every_step\", or put a [[tier]] of size 1 before this one");
}

TEST(Mistakes, RanksAgainstSizes) {
  EXPECT_EQ(
      mistake_in("train.ranks = 7\n[[tier]]\nsize = 2\n[[tier]]\nsize = \"auto\""),
      "h.toml:3: tier[0].size = 2: 7 ranks (train.ranks) cannot be divided by it; change one of "
      "them");
  EXPECT_EQ(
      mistake_in("train.ranks = 8\n[[tier]]\nsize = 2\n[[tier]]\nsize = 3"),
      "h.toml:5: tier[1].size = 3: 8 ranks (train.ranks) cannot be divided by 2 x 3 = 6; change "
      "one of them");
  EXPECT_EQ(
      mistake_in("\ntrain.ranks = 8\n[[tier]]\nsize = 2\n[[tier]]\nsize = 2"),
      "h.toml:2: train.ranks = 8: the tiers join 2 x 2 = 4 ranks; change a tier's size, or leave "
      "train.ranks out");
  EXPECT_EQ(
      mistake_in("train.ranks = 4"),
      "h.toml:1: train.ranks = 4: there is no tier that joins them; add [[tier]] with size = 4");
  EXPECT_EQ(
      mistake_in("[[tier]]\nsize = \"auto\""),
      "h.toml:2: tier[0].size = \"auto\": needs train.ranks, the ranks in all; or give the size");
  EXPECT_EQ(mistake_in("train.ranks = 4\n[[tier]]\nsize = \"auto\"\n[[tier]]\nsize = \"auto\""),
            "h.toml:5: tier[1].size = \"auto\": only one tier's size can be \"auto\"");
  EXPECT_EQ(mistake_in("[[tier]]\nsize = 1048576\n[[tier]]\nsize = 1048576"),
            "h.toml:4: tier[1].size = 1048576: the tiers join more than 1048576 ranks");
}

TEST(Mistakes, ValuesThatNeedEachOther) {
  EXPECT_EQ(
      mistake_in("train.steps = 10\nlearning_rate.warmup = 11"),
      "h.toml:2: learning_rate.warmup = 11: is more than the 10 steps of the run (train.steps)");
  EXPECT_EQ(
      mistake_in("learning_rate.schedule = \"step\""),
      "h.toml:1: learning_rate.schedule = \"step\": needs learning_rate.decay_every, the steps "
      "between decays");
  EXPECT_EQ(mistake_in_outer("outer.nesterov = true"),
            "h.toml:7: tier[1].outer.nesterov = true: needs tier.outer.momentum of more than 0");
  EXPECT_EQ(mistake_in("[[tier]]\nname = \"a\"\n[[tier]]\nname = \"a\""),
            "h.toml:4: tier[1].name = \"a\": tier[0] has this name; names are unique");
  EXPECT_EQ(mistake_in("[[tier]]\nname = \"site\"\n[[tier]]\n"),
            "h.toml: tier[1].name = \"site\": tier[0] has this name; names are unique");
}

// Keys added to it belong to a delayed tier of three nodes, in line 7.
std::string mistake_in_delayed(const std::string& line) {
  return mistake_in("[[tier]]\nsize = 2\n[[tier]]\nsize = 3\nstrategy = \"delayed\"\n\n" + line);
}

TEST(Mistakes, ValuesOfDelayed) {
  EXPECT_EQ(mistake_in_delayed("staleness = -1"),
            "h.toml:7: tier[1].staleness = -1: must be at least 0");
  EXPECT_EQ(mistake_in_delayed("staleness = 65"),
            "h.toml:7: tier[1].staleness = 65: must be at most 64");
  EXPECT_EQ(mistake_in_delayed("deadline = 0"),
            "h.toml:7: tier[1].deadline = 0: must be more than 0 and at most 31536000");
  EXPECT_EQ(mistake_in_delayed("deadline = \"soon\""),
            "h.toml:7: tier[1].deadline = \"soon\": expected a duration such as \"50 ms\"; the "
            "units are h, min, s, ms, us");
  EXPECT_EQ(mistake_in_delayed("quorum = 0"), "h.toml:7: tier[1].quorum = 0: must be at least 1");
  EXPECT_EQ(mistake_in_delayed("quorum = 4"),
            "h.toml:7: tier[1].quorum = 4: is more than the 3 nodes of the tier (tier.size); "
            "\"all\" is every one of them");
  EXPECT_EQ(mistake_in_delayed("quorum = \"majorty\""),
            "h.toml:7: tier[1].quorum = \"majorty\": must be majority, all or an integer; did you "
            "mean majority?");
  EXPECT_EQ(mistake_in_delayed("quorum = 1.5"),
            "h.toml:7: tier[1].quorum = 1.5: expected an integer, \"majority\" or \"all\", found a "
            "number");
  EXPECT_EQ(mistake_in_delayed("late = \"retrun\""),
            "h.toml:7: tier[1].late = \"retrun\": must be one of fold, return, drop; did you mean "
            "return?");
}

TEST(Mistakes, DeadlineNeedsStaleness) {
  const std::string complaint =
      "needs tier.staleness of at least 1, the rounds that a skipped node may lag; set that, or "
      "deadline = \"none\"";
  EXPECT_EQ(mistake_in_delayed("deadline = \"2 s\""),
            "h.toml:7: tier[1].deadline = \"2 s\": " + complaint);
  EXPECT_EQ(mistake_in_delayed("deadline = \"2 s\"\nstaleness = 1"), "");
  EXPECT_EQ(mistake_in_delayed("staleness = 0\ndeadline = \"none\""), "");
}

TEST(Mistakes, KeysOfDelayedUnderAnotherStrategy) {
  const std::string complaint =
      ": only strategy = \"delayed\" goes on without all nodes; set that, or leave this key out";
  for (const char* strategy : {"every_step", "periodic"}) {
    const std::string tiers =
        "[[tier]]\n[[tier]]\nsize = 2\nstrategy = \"" + std::string(strategy) + "\"\n";
    for (const char* line : {"staleness = 1", "deadline = \"2 s\"", "quorum = 2",
                             "quorum = \"all\"", "late = \"return\"", "late = \"drop\""}) {
      EXPECT_EQ(mistake_in(tiers + line), "h.toml:5: tier[1]." + std::string(line) + complaint);
    }
    for (const char* line :
         {"staleness = 0", "deadline = \"none\"", "quorum = \"majority\"", "late = \"fold\""}) {
      EXPECT_EQ(mistake_in(tiers + line), "") << line;
    }
  }
  EXPECT_EQ(mistake_in("[[tier]]\nstaleness = 1"),
            "h.toml:2: tier[0].staleness = 1: applies between nodes only; move it to tier[1], the "
            "outer tier");
}

TEST(Mistakes, SpeedsOfNodes) {
  const std::string form =
      "must be numbers of more than 0 with blanks between them, such as \"1 1 0.25\"";
  for (const char* speeds :
       {" ", "1 fast 1", "1 0 1", "1 -1 1", "1,1,1", "1 nan 1", "1 inf 1", "1 1 0.25x"}) {
    EXPECT_EQ(
        mistake_in_delayed("emulate = { step = 1, speeds = \"" + std::string(speeds) + "\" }"),
        "h.toml:7: tier[1].emulate.speeds = \"" + std::string(speeds) + "\": " + form);
  }
  EXPECT_EQ(mistake_in_delayed("emulate.speeds = \"1 1 1\""),
            "h.toml:7: tier[1].emulate.speeds = \"1 1 1\": needs tier.emulate.step, the time of a "
            "step");
  EXPECT_EQ(mistake_in_delayed("emulate = { step = 1, speeds = \"1 1\" }"),
            "h.toml:7: tier[1].emulate.speeds = \"1 1\": has 2 numbers for 3 nodes (tier.size); "
            "give one per node");
  EXPECT_EQ(
      mistake_in_delayed("emulate = { step = 1, speeds = \"1 1 1e-4\" }"),
      "h.toml:7: tier[1].emulate.speeds = \"1 1 1e-4\": makes a step of node 2 longer than an "
      "hour");
  EXPECT_EQ(mistake_in_delayed("emulate.step = -1"),
            "h.toml:7: tier[1].emulate.step = -1: must be at least 0 and at most 3600");
}

// Whatever stands in a file, the answer is a configuration or a message.
TEST(Mistakes, DamagedTextNeverEscapes) {
  const std::string good = std::string("train.lr = 0.5\nrecord = { name = \"a\" }\n") + kTiers +
                           "outer = { lr = 0.7 }\nemulate = { rate = \"1 Mbit/s\", rtt = 1e-3 }\n";
  ASSERT_EQ(mistake_in(good), "");
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int n = 0; n < 3; ++n) {
      text[random() % text.size()] =
          i % 2 ? good[random() % good.size()] : static_cast<char>(random());
    }
    SCOPED_TRACE(text);
    const std::string mistake = mistake_in(text);  // any other exception fails the test
    if (mistake.empty()) continue;
    ++refused;
    ASSERT_TRUE(mistake.starts_with("h.toml:")) << mistake;
  }
  EXPECT_GT(refused, 1000);
}

std::string mistake_of(Config config) {
  return message_of([&] { validate(config); });
}

TEST(Validate, ChecksAConfigFilledInByHand) {
  Config c;
  EXPECT_EQ(mistake_of(c), "");
  c.accumulate.steps = 0;
  EXPECT_EQ(mistake_of(c), "defaults: accumulate.steps = 0: must be at least 1");
  c = {};
  c.train.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(mistake_of(c), "defaults: train.lr = nan: must be a finite number");
  c = {};
  c.train.model = "resnet";
  EXPECT_EQ(mistake_of(c),
            "defaults: train.model = \"resnet\": is not available in this version; available: cnn, "
            "char-gpt");
  c = {};
  c.train.seed = uint64_t{1} << 63;
  EXPECT_EQ(mistake_of(c),
            "defaults: train.seed = 9223372036854775808: must be at most 9223372036854775807");
}

TEST(Validate, ChecksTiersFilledInByHand) {
  Config c;
  c.tiers.resize(2);
  EXPECT_EQ(mistake_of(c),
            "defaults: tier[1].name = \"node\": tier[0] has this name; names are unique");
  c.tiers[1].name = "site";
  EXPECT_EQ(mistake_of(c), "");
  c.tiers[0].every = 2;
  EXPECT_EQ(
      mistake_of(c),
      "defaults: tier[0].every = 2: applies between nodes only; move it to tier[1], the outer "
      "tier");
  c.tiers[0].every = TierConfig{}.every;
  c.tiers[1].size = -1;
  EXPECT_EQ(mistake_of(c), "defaults: tier[1].size = -1: must be at least 0");
  c.tiers.resize(3);
  EXPECT_TRUE(mistake_of(c).starts_with("defaults: tier[2]: a third tier is not available"));
}

TEST(Validate, ChecksNodesOnceSizesAreKnown) {
  Config c;
  c.tiers.resize(2);
  c.tiers[1].name = "site";
  c.tiers[1].size = 0;
  c.tiers[1].strategy = Strategy::delayed;
  c.tiers[1].quorum = 3;
  c.train.ranks = 3;
  EXPECT_EQ(mistake_of(c), "");
  c.train.ranks = 2;
  EXPECT_EQ(mistake_of(c),
            "defaults: tier[1].quorum = 3: is more than the 2 nodes of the tier (tier.size); "
            "\"all\" is every one of them");
  c.tiers[1].quorum = -1;
  EXPECT_EQ(mistake_of(c), "defaults: tier[1].quorum = -1: must be at least 0");
  c.tiers[1].quorum = kQuorumAll;
  EXPECT_EQ(mistake_of(c), "");
}

TEST(Validate, FillsInSizes) {
  Config c;
  c.tiers.resize(2);
  c.tiers[0].size = 0;
  c.tiers[1].name = "site";
  c.tiers[1].size = 3;
  c.train.ranks = 6;
  validate(c);
  EXPECT_EQ(c.tiers[0].size, 2);
}

}  // namespace
}  // namespace hybridsync
