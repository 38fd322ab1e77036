#include "hybridsync/observe/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "hybridsync/config/error.h"
#include "hybridsync/observe/assets.h"
#include "hybridsync/observe/curves.h"
#include "hybridsync/observe/html.h"
#include "hybridsync/observe/units.h"

namespace hybridsync {

namespace {

constexpr size_t kPoints = 2000;       // per curve
constexpr size_t kEvents = 200;        // shown per run
constexpr size_t kCardRows = 3;        // configurations with cards of their own
constexpr size_t kPaletteColours = 8;  // --run-0 ... in the style sheet

// A run with all that is drawn of it.
struct Shown {
  const RunData* data;
  std::string label;
  std::string colour;  // of its configuration, in CSS: a variable's name, or a colour
  int strength;        // per cent of that colour: paler from seed to seed
  Curves curves;
  TimeByPart time;
};

std::string colour_of(size_t index) {
  if (index < kPaletteColours) return "--run-" + std::to_string(index);
  return "hsl(" + std::to_string(index * 137 % 360) + " 55% 50%)";
}

std::string css_colour(const std::string& colour, int strength) {
  const std::string full = colour.starts_with("--") ? "var(" + colour + ")" : colour;
  if (strength == 100) return full;
  return "color-mix(in srgb, " + full + " " + std::to_string(strength) + "%, var(--card))";
}

std::string swatch(const std::string& colour, int strength = 100) {
  return "<i class=\"swatch\" style=\"--c:" + css_colour(colour, strength) + "\"></i>";
}

std::string swatch(const Shown& run) { return swatch(run.colour, run.strength); }

// The name, with the seed where several runs have that name.
std::string label_of(const RunData& run, const std::vector<RunData>& runs) {
  const auto same = [&](const RunData& r) { return r.summary.name == run.summary.name; };
  const std::string& name = run.summary.name;
  if (std::count_if(runs.begin(), runs.end(), same) < 2) return name;
  return name + ", seed " + std::to_string(run.summary.seed);
}

std::vector<Shown> shown_of(const std::vector<RunData>& runs) {
  std::vector<Shown> shown;
  std::vector<std::string> names;  // of configurations so far
  for (const RunData& run : runs) {
    const std::string& name = run.summary.name;
    const auto same = [&](const Shown& s) { return s.data->summary.name == name; };
    const auto earlier = std::count_if(shown.begin(), shown.end(), same);
    if (earlier == 0) names.push_back(name);
    const size_t index = std::find(names.begin(), names.end(), name) - names.begin();
    const int strength = std::max<int>(100 - 27 * static_cast<int>(earlier), 40);
    const std::vector<StepRecord> merged = merge_nodes(run.steps);
    shown.push_back({&run, label_of(run, runs), colour_of(index), strength,
                     curves_of(merged, run.evaluations, kPoints), time_by_part(merged)});
  }
  return shown;
}

// Seven digits are more than a screen shows, and half the bytes of seventeen.
Json numbers(const std::vector<double>& values) {
  Json array = Json::array();
  for (double value : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.7g", value);
    array.push_back(std::isfinite(value) ? Json(std::strtod(text, nullptr)) : Json(nullptr));
  }
  return array;
}

Json data_of(const std::vector<Shown>& shown) {
  Json runs = Json::array();
  for (const Shown& run : shown) {
    const Curves& c = run.curves;
    runs.push_back({{"label", run.label},
                    {"colour", run.colour},
                    {"strength", run.strength},
                    {"step", numbers(c.step)},
                    {"samples", numbers(c.samples)},
                    {"seconds", numbers(c.seconds)},
                    {"bytes", numbers(c.bytes)},
                    {"loss", numbers(c.loss)},
                    {"smooth_loss", numbers(c.smooth_loss)},
                    {"interval", numbers(c.interval)},
                    {"eval_step", numbers(c.eval_step)},
                    {"eval_samples", numbers(c.eval_samples)},
                    {"eval_seconds", numbers(c.eval_seconds)},
                    {"eval_bytes", numbers(c.eval_bytes)},
                    {"eval_loss", numbers(c.eval_loss)},
                    {"eval_accuracy", numbers(c.eval_accuracy)}});
  }
  return {{"runs", runs}};
}

std::vector<RunSummary> summaries_of(const std::vector<Shown>& shown) {
  std::vector<RunSummary> summaries;
  for (const Shown& run : shown) summaries.push_back(run.data->summary);
  return summaries;
}

std::string title_of(const std::vector<Comparison>& groups) {
  std::string title;
  const size_t named = std::min<size_t>(groups.size(), 4);
  for (size_t i = 0; i < named; ++i) title += (i > 0 ? " vs " : "") + groups[i].name;
  if (groups.size() > named) title += " and " + std::to_string(groups.size() - named) + " more";
  return title;
}

std::string lead_of(const std::vector<Shown>& shown, size_t configurations) {
  int64_t steps = 0, samples = 0;
  for (const Shown& run : shown) {
    steps += run.data->summary.steps;
    samples += run.data->summary.samples;
  }
  const auto many = [](size_t n, const std::string& noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
  };
  return many(shown.size(), "run") + " of " + many(configurations, "configuration") + ": " +
         std::to_string(steps) + " optimizer steps over " +
         human_count(static_cast<double>(samples)) + " samples.";
}

std::string notes_of(const std::vector<Shown>& shown) {
  std::string html;
  for (const Shown& run : shown) {
    for (const std::string& note : run.data->notes) {
      html += "<p class=\"note\"><b>" + escaped(run.label) + "</b>: " + escaped(note) + "</p>\n";
    }
  }
  return html;
}

std::string card(const std::string& value, const std::string& meaning) {
  return "<div class=\"card\"><b>" + value + "</b><span>" + escaped(meaning) + "</span></div>\n";
}

// "4.00x fewer bytes than sync", whichever way round.
std::string factor_card(double factor, const std::string& less, const std::string& equal,
                        const std::string& more, const std::string& first) {
  if (!std::isfinite(factor) || factor <= 0) return "";
  if (std::abs(factor - 1) < 0.005) return card(ratio(1), equal + " as " + first);
  return factor > 1 ? card(ratio(factor), less + " than " + first)
                    : card(ratio(1 / factor), more + " than " + first);
}

std::string accuracy_card(const Comparison& c, const Comparison& first) {
  if (!std::isfinite(c.accuracy_gain) || !c.equal_samples) return "";
  const std::string sign = c.accuracy_gain >= 0 ? "+" : "&minus;";
  return card(
      sign + fixed(std::abs(c.accuracy_gain) * 100, 2) + " <small>points</small>",
      "held-out accuracy: " + percent(c.accuracy, 2) + " against " + percent(first.accuracy, 2));
}

std::string cards_of(const std::vector<Comparison>& groups) {
  if (groups.size() > kCardRows + 1) return "";  // the table says it better
  std::string html;
  for (size_t i = 1; i < groups.size(); ++i) {
    const Comparison& c = groups[i];
    const Comparison& first = groups[0];
    html += "<p class=\"cards-title\">" + escaped(c.name) +
            (c.equal_samples ? " at equal samples" : " per sample") +
            "</p>\n<div class=\"cards\">\n";
    html += factor_card(c.speed_up, "faster", "as fast", "slower", first.name);
    html +=
        factor_card(1 / c.traffic, "fewer bytes on the slow link", "as many bytes on the slow link",
                    "more bytes on the slow link", first.name);
    html += accuracy_card(c, first);
    if (std::isfinite(c.utilisation)) {
      html += card(percent(c.utilisation, 1),
                   "of the time spent computing, against " + percent(first.utilisation, 1));
    }
    html += "</div>\n";
  }
  return html;
}

// Colour of a table's row: that of the first run of its configuration.
std::string row_swatch(const std::string& cell, const std::vector<Shown>& shown) {
  for (const Shown& run : shown) {
    const std::string& name = run.data->summary.name;
    if (cell == name || cell.starts_with(name + " (")) return swatch(run);
  }
  return "";
}

std::string table_html(const Table& table, const std::vector<Shown>& shown) {
  std::string html = "<table><thead><tr>";
  for (const std::string& cell : table.header)
    html += "<th scope=\"col\">" + escaped(cell) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const Table::Row& row : table.rows) {
    html += row.spread ? "<tr class=\"spread\">" : "<tr>";
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string text = escaped(row.cells[i]);
      html += i == 0 ? "<th scope=\"row\">" + row_swatch(row.cells[0], shown) + text + "</th>"
                     : "<td>" + text + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>";
}

std::string ratios_caption(const std::vector<Comparison>& groups) {
  if (groups.size() < 2) return "";
  return "<p class=\"caption\">Speed-up and traffic (bytes on the slow link) are per sample, "
         "against " +
         escaped(groups[0].name) + ".</p>";
}

std::string chips_of(const std::vector<Shown>& shown) {
  std::string html;
  for (size_t i = 0; i < shown.size(); ++i) {
    html += "<button type=\"button\" class=\"chip\" data-run=\"" + std::to_string(i) +
            "\" aria-pressed=\"true\">" + swatch(shown[i]) + escaped(shown[i].label) +
            "</button>\n";
  }
  return html;
}

std::string curves_caption(const std::vector<Shown>& shown) {
  double per_point = 1, smoothing = 1;
  for (const Shown& run : shown) {
    per_point = std::max(per_point, run.curves.steps_per_point);
    smoothing = std::max(smoothing, run.curves.smoothing_steps);
  }
  std::string text = "Training loss is the mean over the nodes, smoothed over about " +
                     fixed(smoothing, 0) + " steps.";
  if (per_point > 1) {
    text += " Long runs are thinned out to " + std::to_string(kPoints) +
            " points per curve, each the average of up to " + fixed(std::ceil(per_point), 0) +
            " steps.";
  }
  return text;
}

struct PartName {
  const char* colour;
  const char* title;
  double TimeByPart::*seconds;
};
constexpr PartName kParts[] = {
    {"--compute", "compute", &TimeByPart::compute},
    {"--reduce", "reduction waited", &TimeByPart::reduce_wait},
    {"--optimizer", "optimizer", &TimeByPart::optimizer},
    {"--exchange", "exchange", &TimeByPart::exchange},
    {"--agree", "agreement", &TimeByPart::agree},
    {"--other", "other", &TimeByPart::other},
};

std::string stack_row(const Shown& run, double longest) {
  std::string html = "<div class=\"part-row\"><span class=\"name\">" + swatch(run) +
                     escaped(run.label) + "</span><div class=\"stack\">";
  for (const PartName& part : kParts) {
    const double seconds = run.time.*part.seconds;
    if (!(seconds > 0)) continue;
    html += "<i style=\"--c:var(" + std::string(part.colour) +
            ");width:" + fixed(seconds / longest * 100, 3) + "%\" title=\"" + part.title + ": " +
            human_seconds(seconds) + "\"></i>";
  }
  return html + "</div><span class=\"total\">" + human_seconds(run.time.total()) +
         "</span></div>\n";
}

// Share of the in-node reduction that ran beside computation.
std::string hidden_share(const TimeByPart& time) {
  return time.reduce > 0 ? percent(std::max(0.0, 1 - time.reduce_wait / time.reduce), 0) : "-";
}

std::string parts_table(const std::vector<Shown>& shown) {
  std::string html = "<table><thead><tr><th scope=\"col\">run</th>";
  for (const PartName& part : kParts)
    html += "<th scope=\"col\">" + std::string(part.title) + "</th>";
  html +=
      "<th scope=\"col\">step</th><th scope=\"col\">reduction hidden</th></tr></thead><tbody>\n";
  for (const Shown& run : shown) {
    html += "<tr><th scope=\"row\">" + swatch(run) + escaped(run.label) + "</th>";
    for (const PartName& part : kParts) {
      html += "<td>" + human_seconds(run.time.*part.seconds) + "</td>";
    }
    html += "<td>" + human_seconds(run.time.total()) + "</td><td>" + hidden_share(run.time) +
            "</td></tr>\n";
  }
  return html + "</tbody></table>";
}

std::string parts_of(const std::vector<Shown>& shown) {
  double longest = 0;
  for (const Shown& run : shown) longest = std::max(longest, run.time.total());
  if (longest <= 0) return "<p class=\"caption\">No times are recorded.</p>";
  std::string html = "<div class=\"parts\">\n";
  for (const Shown& run : shown) html += stack_row(run, longest);
  html += "<div class=\"part-key\">";
  for (const PartName& part : kParts) {
    html += "<span>" + swatch(part.colour) + part.title + "</span>";
  }
  return html + "</div></div>\n<div class=\"scroll\">" + parts_table(shown) +
         "</div>\n<p class=\"caption\">Mean over all steps and nodes, as the training thread saw "
         "it.</p>";
}

// Of the age's colour, the darker the older.
int strength_of_age(size_t age, size_t oldest) {
  return oldest == 0 ? 25 : 25 + static_cast<int>(75 * age / oldest);
}

std::string ages_row(const Shown& run, size_t oldest) {
  const RunSummary& s = run.data->summary;
  const double applied = std::max(1.0, static_cast<double>(s.applied));
  std::string html = "<div class=\"part-row\"><span class=\"name\">" + swatch(run) +
                     escaped(run.label) + "</span><div class=\"stack\">";
  for (size_t age = 0; age < s.ages.size(); ++age) {
    const double part = static_cast<double>(s.ages[age]) / applied;
    if (part <= 0) continue;
    html += "<i style=\"--c:" + css_colour("--exchange", strength_of_age(age, oldest)) +
            ";width:" + fixed(part * 100, 3) + "%\" title=\"age " + std::to_string(age) + ": " +
            std::to_string(s.ages[age]) + " contributions\"></i>";
  }
  return html + "</div><span class=\"total\">" + std::to_string(s.applied) + "</span></div>\n";
}

std::string joined(const std::vector<int64_t>& counts) {
  std::string text;
  for (int64_t count : counts) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text.empty() ? "-" : text;
}

std::string ages_table(const std::vector<const Shown*>& runs, size_t oldest) {
  std::string html = "<table><thead><tr><th scope=\"col\">run</th>";
  const auto head = [&](const std::string& t) { html += "<th scope=\"col\">" + t + "</th>"; };
  for (size_t age = 0; age <= oldest; ++age) head("age " + std::to_string(age));
  for (const char* title : {"returned", "dropped", "lost", "skipped, by node"}) head(title);
  html += "</tr></thead><tbody>\n";
  for (const Shown* run : runs) {
    const RunSummary& s = run->data->summary;
    const auto cell = [&](const std::string& t) { html += "<td>" + t + "</td>"; };
    html += "<tr><th scope=\"row\">" + swatch(*run) + escaped(run->label) + "</th>";
    for (size_t age = 0; age <= oldest; ++age)
      cell(std::to_string(age < s.ages.size() ? s.ages[age] : 0));
    for (int64_t count : {s.returned, s.dropped, s.lost}) cell(std::to_string(count));
    cell(joined(ledger_of(run->data->steps).skipped_by_node));
    html += "</tr>\n";
  }
  return html + "</tbody></table>";
}

// A section of runs whose nodes did not wait for each other; nothing without any.
std::string ages_of(const std::vector<Shown>& shown) {
  std::vector<const Shown*> runs;
  size_t oldest = 0;
  for (const Shown& run : shown) {
    const RunSummary& s = run.data->summary;
    if (!s.lagged()) continue;
    runs.push_back(&run);
    oldest = std::max(oldest, s.ages.size() - std::min<size_t>(s.ages.size(), 1));
  }
  if (runs.empty()) return "";
  std::string html =
      "<section class=\"ages\">\n  <h2>Age of contributions</h2>\n  <div class=\"parts\">\n";
  for (const Shown* run : runs) html += ages_row(*run, oldest);
  html += "<div class=\"part-key\">";
  for (size_t age = 0; age <= oldest; ++age)
    html += "<span>" + swatch("--exchange", strength_of_age(age, oldest)) + "age " +
            std::to_string(age) + "</span>";
  return html + "</div></div>\n<div class=\"scroll\">" + ages_table(runs, oldest) +
         "</div>\n<p class=\"caption\">Contributions to all fragments, by the versions that came "
         "between what they were computed on and the result that holds them. Returned ones were "
         "contributed again; dropped and lost ones are in no result. Skipped: times that a round "
         "closed without the node, from node 0.</p>\n</section>\n";
}

std::string events_table(const std::vector<EventRecord>& events) {
  std::string html =
      "<div class=\"scroll\"><table class=\"events\"><thead><tr><th scope=\"col\">time</th><th "
      "scope=\"col\">step</th><th scope=\"col\">node</th><th scope=\"col\">kind</th><th "
      "scope=\"col\">what happened</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < std::min(events.size(), kEvents); ++i) {
    const EventRecord& e = events[i];
    html += "<tr><td>" + human_seconds(e.seconds) + "</td><td>" + std::to_string(e.step) +
            "</td><td>" + std::to_string(e.node) + "</td><td>" + escaped(e.kind) + "</td><td>" +
            escaped(e.sentence) + "</td></tr>\n";
  }
  return html + "</tbody></table></div>";
}

std::string events_of(const std::vector<Shown>& shown) {
  std::string html;
  for (const Shown& run : shown) {
    const size_t count = run.data->events.size();
    if (count == 0) continue;
    html += "<details" + std::string(count <= 8 ? " open" : "") + "><summary>" + swatch(run) +
            escaped(run.label) + " <small>" + std::to_string(count) +
            (count == 1 ? " event" : " events");
    if (count > kEvents) html += ", the first " + std::to_string(kEvents) + " shown";
    html += "</small></summary>" + events_table(run.data->events) + "</details>\n";
  }
  return html.empty() ? "<p class=\"caption\">Nothing happened that needed a sentence.</p>" : html;
}

std::string configs_of(const std::vector<Shown>& shown) {
  std::string html;
  for (const Shown& run : shown) {
    html += "<details><summary>" + swatch(run) + escaped(run.label) + " <small>" +
            escaped(run.data->folder) + "</small></summary>";
    if (!run.data->config.empty()) html += "<pre>" + escaped(run.data->config) + "</pre>";
    if (!run.data->environment.empty()) html += "<pre>" + escaped(run.data->environment) + "</pre>";
    html += "</details>\n";
  }
  return html;
}

}  // namespace

std::string report_html(const std::vector<RunData>& runs) {
  const std::vector<Shown> shown = shown_of(runs);
  const std::vector<RunSummary> summaries = summaries_of(shown);
  const std::vector<Comparison> groups = compare(summaries);
  return filled(assets::page_html,
                {{"title", escaped(title_of(groups))},
                 {"lead", escaped(lead_of(shown, groups.size()))},
                 {"notes", notes_of(shown)},
                 {"cards", cards_of(groups)},
                 {"summary", table_html(summary_table(summaries), shown)},
                 {"ratios_caption", ratios_caption(groups)},
                 {"chips", chips_of(shown)},
                 {"curves_caption", escaped(curves_caption(shown))},
                 {"parts", parts_of(shown)},
                 {"ages", ages_of(shown)},
                 {"events", events_of(shown)},
                 {"configs", configs_of(shown)},
                 {"footer", "Written by hybridsync. Charts: uPlot 1.6.32 (MIT), inside this file."},
                 {"data", script_json(data_of(shown))},
                 {"page_css", std::string(assets::page_css)},
                 {"page_js", std::string(assets::page_js)},
                 {"uplot_css", std::string(assets::uplot_css)},
                 {"uplot_js", std::string(assets::uplot_js)},
                 {"uplot_licence", std::string(assets::uplot_licence)}});
}

void write_report(const std::vector<std::string>& folders, const std::string& output) {
  if (folders.empty()) throw ConfigError("report: no run is given; name one or more run folders");
  std::vector<RunData> runs;
  for (const std::string& folder : folders) runs.push_back(read_run(folder));
  tell_apart(runs);
  std::ofstream file(output, std::ios::binary | std::ios::trunc);
  file << report_html(runs) << std::flush;
  if (!file) {
    throw ConfigError("report: cannot write " + output + ": " + std::strerror(errno) +
                      "; name another file");
  }
}

}  // namespace hybridsync
