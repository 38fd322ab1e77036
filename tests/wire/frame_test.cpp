// Frames and their fields: what goes in comes out, and nothing else gets through.
#include "hybridsync/wire/frame.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>

#include "frame_fuzz.h"

namespace hybridsync {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Envelope kEnvelope = {run_hash("run"), 3, 1, 4, 7, 5, 1'000'000'000'017};
const Expected kExpected = {run_hash("run"), 1};

Bytes some_bytes(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + 7);
  return bytes;
}

std::string why(ByteSpan header, ByteSpan body, const Expected& expected = kExpected) {
  const auto result = decode(header, body, expected);
  const auto* bad = std::get_if<BadFrame>(&result);
  return bad ? bad->why : "";
}

TEST(Reader, ReadsWhatAWriterWrote) {
  Writer writer;
  writer.u8(200).u32(4'000'000'000).u64(~uint64_t{0}).i64(-5).f64(-0.1).text("näme");
  writer.bytes(some_bytes(3)).list(std::vector<double>{1.5, -2.5}).list(std::vector<int64_t>{});
  writer.list(std::vector<uint64_t>{9}).raw(some_bytes(2));
  const Bytes written = writer.take();
  Reader reader(written);
  EXPECT_EQ(reader.u8(), 200);
  EXPECT_EQ(reader.u32(), 4'000'000'000);
  EXPECT_EQ(reader.u64(), ~uint64_t{0});
  EXPECT_EQ(reader.i64(), -5);
  EXPECT_EQ(reader.f64(), -0.1);
  EXPECT_EQ(reader.text(), "näme");
  const ByteSpan three = reader.bytes();
  EXPECT_EQ(Bytes(three.begin(), three.end()), some_bytes(3));
  EXPECT_THAT(reader.list<double>(), ElementsAre(1.5, -2.5));
  EXPECT_THAT(reader.list<int64_t>(), ElementsAre());
  EXPECT_THAT(reader.list<uint64_t>(), ElementsAre(9));
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.raw().size(), 2u);
  EXPECT_TRUE(reader.done());
}

TEST(Reader, IsLittleEndianOnTheWire) {
  const Bytes written = Writer().u32(0x01020304).take();
  EXPECT_THAT(written, ElementsAre(std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}));
}

TEST(Reader, FailsForGoodAtTheEnd) {
  const Bytes written = Writer().u32(1).take();
  Reader reader(written);
  EXPECT_EQ(reader.u64(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);  // although there were four bytes
  EXPECT_FALSE(reader.done());
}

TEST(Reader, BelievesNoLength) {
  const Bytes written = Writer().u32(std::numeric_limits<uint32_t>::max()).u64(1).take();
  EXPECT_TRUE(Reader(written).bytes().empty());
  EXPECT_TRUE(Reader(written).list<double>().empty());
  EXPECT_TRUE(Reader(written).text().empty());
  const Bytes uneven = Writer().bytes(some_bytes(9)).take();
  Reader reader(uneven);
  EXPECT_TRUE(reader.list<double>().empty());
  EXPECT_FALSE(reader.ok());
}

TEST(Frame, ComesBackAtAnyAlignment) {
  const Bytes fields = Writer().u32(12).f64(0.25).take();
  const Bytes body = some_bytes(1001);
  const Bytes header = encode(kEnvelope, fields, body);
  EXPECT_EQ(header.size(), kEnvelopeBytes + fields.size());
  for (size_t shift = 0; shift < 8; ++shift) {
    Bytes moved(shift);
    moved.insert(moved.end(), header.begin(), header.end());
    const auto result = decode(ByteSpan(moved).subspan(shift), body, kExpected);
    ASSERT_TRUE(std::holds_alternative<Frame>(result)) << std::get<BadFrame>(result).why;
    const Frame& frame = std::get<Frame>(result);
    EXPECT_EQ(frame.envelope, kEnvelope);
    Reader reader(frame.fields);
    EXPECT_EQ(reader.u32(), 12u);
    EXPECT_EQ(reader.f64(), 0.25);
    EXPECT_TRUE(reader.done());
  }
}

TEST(Frame, HasTheSameBytesEverywhere) {
  const Bytes header = encode(kEnvelope, some_bytes(4), some_bytes(9));
  Reader reader(header);
  EXPECT_EQ(reader.u32(), 0x000702b5u);  // magic, protocol, kind
  EXPECT_EQ(reader.u32(), 1u);
  EXPECT_EQ(reader.u32(), 4u);
  EXPECT_EQ(reader.u32(), 5u);
  EXPECT_EQ(reader.u64(), run_hash("run"));
  EXPECT_EQ(reader.u64(), 3u);
  EXPECT_EQ(reader.u64(), 1'000'000'000'017u);
  EXPECT_EQ(reader.u64(), 9u);
  reader.u64();
  EXPECT_EQ(reader.left(), 4u);
}

TEST(Frame, OfAnotherRunSenderOrLengthIsRefusedWithASentence) {
  const Bytes body = some_bytes(10);
  const Bytes header = encode(kEnvelope, {}, body);
  EXPECT_EQ(why(header, body), "");
  EXPECT_THAT(why(header, body, {run_hash("other"), 1}), HasSubstr("run"));
  EXPECT_THAT(why(header, body, {run_hash("run"), 2}), HasSubstr("sender 1 instead of 2"));
  EXPECT_THAT(why(header, some_bytes(9)), HasSubstr("a body of 9 instead of 10"));
  EXPECT_THAT(why(ByteSpan(header).first(kEnvelopeBytes - 1), body), HasSubstr("a header of 55"));
  EXPECT_THAT(why({}, {}), HasSubstr("a header of 0"));
  Bytes newer = header;
  newer[1] = std::byte{9};
  EXPECT_THAT(why(newer, body), HasSubstr("protocol version 9 instead of 2"));
}

TEST(Frame, EveryFlippedBitIsSeen) {
  const Bytes body = some_bytes(20);
  const Bytes header = encode(kEnvelope, some_bytes(12), body);
  for (size_t bit = 0; bit < 8 * (header.size() + body.size()); ++bit) {
    Bytes bad_header = header;
    Bytes bad_body = body;
    const size_t at = bit / 8;
    std::byte& target = at < header.size() ? bad_header[at] : bad_body[at - header.size()];
    target ^= std::byte{1} << (bit % 8);
    EXPECT_NE(why(bad_header, bad_body), "") << "bit " << bit;
  }
}

// Bytes exactly as long as what they hold, so that a sanitizer sees the first one read too far.
void try_mutation(const std::vector<uint8_t>& valid, std::mt19937& random) {
  std::vector<uint8_t> bytes = valid;
  const auto at_most = [&](size_t limit) { return random() % (limit + 1); };
  for (size_t changes = at_most(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = at_most(bytes.size() - 1);
    switch (random() % 4) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1u << (random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(random() % 2 ? 0xff : random());
        break;
      case 2:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), at_most(9), 0xff);
        break;
    }
  }
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

TEST(Frame, MutatedFramesDoNoHarm) {
  std::mt19937 random(20240229);
  Writer fields;
  for (int i = 0; i < 4; ++i) {
    fields.u8(6).list(std::vector<double>{1, 2}).u8(5).text("text").u8(0).u32(1);
  }
  const Bytes body = some_bytes(24);
  const Bytes header = encode(kEnvelope, fields.view(), body);
  std::vector<uint8_t> valid = {0};
  for (std::byte b : header) valid.push_back(static_cast<uint8_t>(b));
  for (std::byte b : body) valid.push_back(static_cast<uint8_t>(b));
  const size_t all = header.size() + body.size();
  for (valid[0] = 1; all * valid[0] / 255 < header.size();) ++valid[0];
  ASSERT_EQ(all * valid[0] / 255, header.size());
  for (int i = 0; i < 200'000; ++i) try_mutation(valid, random);
}

}  // namespace
}  // namespace hybridsync
