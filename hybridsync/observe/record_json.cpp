#include "hybridsync/observe/record_json.h"

#include <limits>

namespace hybridsync {

namespace {

// Every field of a StepRecord with its key, in the order of the line: writing and reading both walk
// this list, so they cannot differ.
template <class Record, class Field>
void each_field(Record& r, Field field) {
  field("step", r.step);
  field("node", r.node);
  field("samples", r.samples);
  field("seconds", r.seconds);
  field("loss", r.loss);
  field("loss_metrics/global_avg_loss", r.global_loss);
  field("lr", r.lr);
  field("grad_norm", r.grad_norm);
  field("skipped", r.skipped);
  field("K", r.interval);
  field("sync/rounds", r.rounds);
  field("sync/mode", r.mode);
  field("sync/contributors", r.contributors);
  field("sync/age", r.age);
  field("sync/drift", r.drift);
  field("time_metrics/compute(s)", r.compute_seconds);
  field("time_metrics/reduce(s)", r.reduce_seconds);
  field("time_metrics/reduce_wait(s)", r.reduce_wait_seconds);
  field("time_metrics/optimizer(s)", r.optimizer_seconds);
  field("time_metrics/exchange(s)", r.exchange_seconds);
  field("time_metrics/agree(s)", r.agree_seconds);
  field("time_metrics/other(s)", r.other_seconds);
  field("comm/fast_bytes", r.bytes_fast);
  field("comm/slow_sent_bytes", r.bytes_sent_slow);
  field("comm/slow_received_bytes", r.bytes_received_slow);
}

template <class Record, class Field>
void each_codec_field(Record& r, Field field) {
  field("codec/bytes_before", r.codec_bytes_before);
  field("codec/bytes_after", r.codec_bytes_after);
  field("codec/plain", r.codec_plain);
  field("codec/encode(s)", r.encode_seconds);
  field("codec/decode(s)", r.decode_seconds);
}

template <class Record, class Field>
void each_ledger_field(Record& l, Field field) {
  field("ledger/contributed", l.contributed);
  field("ledger/applied", l.applied);
  field("ledger/returned", l.returned);
  field("ledger/dropped", l.dropped);
  field("ledger/restored", l.restored);
  field("ledger/lost", l.lost);
  field("ledger/lost_norm", l.lost_norm);
  field("ledger/decayed_norm", l.decayed_norm);
  field("ledger/skipped", l.skipped);
  field("ledger/mismatches", l.mismatches);
  field("ledger/ages", l.ages);
  field("ledger/skipped_by_node", l.skipped_by_node);
  field("ledger/samples_contributed", l.samples_contributed);
  field("ledger/samples_applied", l.samples_applied);
  field("ledger/samples_returned", l.samples_returned);
}

double end_to_end_seconds(const StepRecord& r) {
  return r.compute_seconds + r.reduce_wait_seconds + r.optimizer_seconds + r.exchange_seconds +
         r.agree_seconds + r.other_seconds;
}

struct Reader {
  const Json& line;
  void operator()(const char* key, double& value) const { value = number_at(line, key); }
  template <class T>
  void operator()(const char* key, T& value) const {
    if (line.contains(key)) value = line.at(key).get<T>();
  }
};

}  // namespace

Json to_json(const StepRecord& record, double samples_per_second) {
  Json line = Json::object();
  const auto put = [&](const char* key, const auto& value) { line[key] = value; };
  each_field(record, put);
  if (record.codec_bytes_before > 0) each_codec_field(record, put);
  if (record.ledger != LedgerRecord{}) each_ledger_field(record.ledger, put);
  line["time_metrics/end_to_end(s)"] = end_to_end_seconds(record);
  line["throughput(tps)"] = samples_per_second;
  return line;
}

Json to_json(const EvaluationRecord& r) {
  return {{"step", r.step},
          {"samples", r.samples},
          {"seconds", r.seconds},
          {"loss", r.loss},
          {"accuracy", r.accuracy}};
}

Json to_json(const EventRecord& r) {
  Json line = {{"kind", r.kind},
               {"sentence", r.sentence},
               {"node", r.node},
               {"step", r.step},
               {"seconds", r.seconds}};
  for (const auto& [key, value] : r.fields.items()) {
    if (!line.contains(key)) line[key] = value;
  }
  return line;
}

StepRecord step_from_json(const Json& line) {
  line.at("step");
  StepRecord record;
  each_field(record, Reader{line});
  if (line.contains("codec/bytes_before")) each_codec_field(record, Reader{line});
  if (line.contains("ledger/contributed")) each_ledger_field(record.ledger, Reader{line});
  return record;
}

EvaluationRecord evaluation_from_json(const Json& line) {
  EvaluationRecord r;
  r.step = line.at("step").get<int64_t>();
  r.samples = line.value("samples", int64_t{0});
  r.seconds = number_at(line, "seconds");
  r.loss = number_at(line, "loss");
  r.accuracy = number_at(line, "accuracy");
  return r;
}

EventRecord event_from_json(const Json& line) {
  EventRecord r;
  r.kind = line.at("kind").get<std::string>();
  r.sentence = line.value("sentence", "");
  r.node = line.value("node", 0);
  r.step = line.value("step", int64_t{0});
  r.seconds = number_at(line, "seconds");
  r.fields = line;
  for (const char* key : {"kind", "sentence", "node", "step", "seconds"}) r.fields.erase(key);
  return r;
}

double number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hybridsync
