#include "hybridsync/config/reference.h"

#include "hybridsync/config/keys.h"

namespace hybridsync {
namespace {

constexpr const char* kIntroduction = R"(# Configuration

This document is made from the table that the program reads configurations with (`hybridsync/config/keys.cpp`);
a test compares the two.

A configuration is a TOML file. Every key has a default, and an empty file trains in one process. Keys that do not
exist, values of the wrong type or out of range, and values that contradict each other are errors that name the file,
the line, the key, the value and the remedy:

```
hybrid.toml:12: tier[1].evry = 8: unknown key; did you mean tier.every?
```

- **Units.** Durations are texts such as `"50 ms"` (us, ms, s, min, h) or plain numbers in seconds; rates are texts
  such as `"100 Mbit/s"` (bit/s, kbit/s, Mbit/s, Gbit/s; decimal) or plain numbers in bits per second.
- **Tiers** are counted from 0, innermost first: `tier[0]` joins ranks, `tier[1]` joins nodes.
- **On the command line** `--set KEY=VALUE` overrides the file, as often as needed and in order:
  `--set train.lr=0.1`, `--set tier.1.every=8`, `--set tier.site.every=8` (by the tier's name). The value is TOML; what
  is not TOML is taken as a string. Tables that the file lacks are added, also the next tier.

```toml
[train]
model = "cnn"
data = "fashion-mnist"
steps = 1000

[accumulate]
steps = 4

[start]
every_step = 200

[[tier]]
name = "node"
size = 2

[[tier]]
name = "site"
size = 2
strategy = "periodic"
every = 4
emulate = { rate = "100 Mbit/s", rtt = "50 ms" }
```
)";

std::string heading(const Section& section) {
  if (section.scope == Scope::run) return std::string("[").append(section.table).append("]");
  if (section.table == "tier.outer") return "`outer` of the outer [[tier]]";
  if (section.table == "tier.emulate") return "`emulate` of the outer [[tier]]";
  if (section.scope == Scope::every_tier) return "[[tier]]";
  return section.scope == Scope::innermost_tier ? "[[tier]], the innermost" : "[[tier]], the outer";
}

std::string row(const Key& key, Config& defaults) {
  const size_t tier = key.scope == Scope::outer_tier ? 1 : 0;
  return "| `" + key.name + "` | " + key.description + " | `" + key.print(defaults, tier) + "` | " +
         key.documentation + " |\n";
}

}  // namespace

std::string reference_markdown() {
  Config defaults;
  defaults.tiers = {default_tier(0), default_tier(1)};
  std::string text = kIntroduction;
  for (const auto& section : sections()) {
    text += "\n## " + heading(section) + "\n\n" + section.text + "\n\n";
    text += "| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const auto& key : section.keys) text += row(key, defaults);
  }
  return text;
}

}  // namespace hybridsync
