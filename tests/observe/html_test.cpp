#include "hybridsync/observe/html.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

TEST(Html, EscapesTextAndAttributes) {
  EXPECT_EQ(escaped("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
}

TEST(Html, JsonCannotLeaveItsScript) {
  const std::string safe = script_json({{"</script><!--", "</SCRIPT>"}});
  EXPECT_EQ(safe.find('<'), std::string::npos);
  EXPECT_EQ(Json::parse(safe).at("</script><!--"), "</SCRIPT>");
}

TEST(Html, FillsOnce) {
  EXPECT_EQ(filled("a{{x}}b{{y}}{{x}}", {{"x", "{{y}}"}, {"y", "2"}}), "a{{y}}b2{{y}}");
}

}  // namespace
}  // namespace hybridsync
