// What the exchange in memory adds: losing a node on request.
#include <gtest/gtest.h>

#include "exchange_ends.h"

namespace hybridsync {
namespace {

TEST(MemoryExchange, ALostNodeIsReportedOnceAndSilentAfterwards) {
  MemoryHub hub(3);
  Ends ends;
  for (int node = 0; node < 3; ++node) ends.push_back(hub.join(node));
  ends[1]->send(0, Channel::bulk, bytes_from("before"), nullptr);
  hub.lose(1, "node 1 crashed");
  hub.lose(1, "again");
  ends[1]->send(0, Channel::bulk, bytes_from("after"), nullptr);
  ends[0]->send(1, Channel::bulk, bytes_from("nobody hears it"), nullptr);
  EXPECT_EQ(text_of(std::get<Received>(*ends[0]->poll(Clock::now())).header), "before");
  EXPECT_EQ(std::get<PeerLost>(*ends[0]->poll(Clock::now())).why, "node 1 crashed");
  EXPECT_FALSE(ends[0]->poll(Clock::now()));
  EXPECT_EQ(std::get<PeerLost>(*ends[2]->poll(Clock::now())).node, 1);
  ends[1].reset();
  EXPECT_FALSE(ends[2]->poll(Clock::now()));
}

}  // namespace
}  // namespace hybridsync
