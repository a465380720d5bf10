// SPDX-License-Identifier: Apache-2.0
// The text of metrics, by the examples of the OpenMetrics specification. tests/house/prometheus_test.py reads the whole
// with the parser of Prometheus' Python client.
#include "stoker/io/loggers/open_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stoker::io {
namespace {

TEST(OpenMetrics, IsEmptyWithAnEnd) { EXPECT_EQ(OpenMetrics().text(), "# EOF\n"); }

TEST(OpenMetrics, WritesFamiliesWithTheirSamples) {
  OpenMetrics metrics;
  metrics.set("b_bytes", "Held.", {}, 0.1);
  metrics.set("b_bytes", "Held.", {}, 1e9);  // replaces
  metrics.add("a", "Seen.", {{"kind", "x"}}, 2);
  metrics.add("a", "Seen.", {{"kind", "x"}}, 3);
  metrics.add("a", "Seen.", {{"kind", "y"}, {"more", "z"}}, 0);
  metrics.inform("run", "Facts.", {{"title", "t"}});
  EXPECT_EQ(metrics.text(),
            "# TYPE a counter\n# HELP a Seen.\na_total{kind=\"x\"} 5\na_total{kind=\"y\",more=\"z\"} 0\n"
            "# TYPE b_bytes gauge\n# HELP b_bytes Held.\nb_bytes 1000000000\n"
            "# TYPE run info\n# HELP run Facts.\nrun_info{title=\"t\"} 1\n# EOF\n");
}

TEST(OpenMetrics, EscapesLabels) {
  OpenMetrics metrics;
  metrics.set("a", "", {{"l", "q\" b\\ n\n \xff größe"}}, 1);
  EXPECT_NE(metrics.text().find(R"(a{l="q\" b\\ n\\x0a \\xff größe"} 1)"), std::string::npos) << metrics.text();
}

TEST(OpenMetrics, WritesWhatIsNotFinite) {
  OpenMetrics metrics;
  metrics.set("a", "", {{"l", "1"}}, std::nan(""));
  metrics.set("a", "", {{"l", "2"}}, std::numeric_limits<double>::infinity());
  metrics.set("a", "", {{"l", "3"}}, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(metrics.text(), "# TYPE a gauge\n# HELP a \na{l=\"1\"} NaN\na{l=\"2\"} +Inf\na{l=\"3\"} -Inf\n# EOF\n");
}

TEST(OpenMetrics, SumsNeverFall) {
  OpenMetrics metrics;
  metrics.add("a", "", {}, 2);
  metrics.add("a", "", {}, -1);
  metrics.add("a", "", {}, std::nan(""));
  EXPECT_NE(metrics.text().find("a_total 2\n"), std::string::npos) << metrics.text();
}

TEST(OpenMetrics, TakesSamplesOut) {
  OpenMetrics metrics;
  metrics.set("a", "", {{"l", "1"}}, 1);
  metrics.set("a", "", {{"l", "2"}}, 2);
  metrics.remove("a", {{"l", "1"}});
  metrics.remove("a", {{"l", "3"}});  // there is none
  metrics.remove("b", {});
  EXPECT_EQ(metrics.text(), "# TYPE a gauge\n# HELP a \na{l=\"2\"} 2\n# EOF\n");
  metrics.remove("a", {{"l", "2"}});
  EXPECT_EQ(metrics.text(), "# EOF\n");
}

TEST(OpenMetrics, NamesHaveOnlyTheirCharacters) {
  EXPECT_EQ(metric_name("loader (1).cpu-seconds"), "loader__1__cpu_seconds");
  EXPECT_EQ(metric_name("ß"), "__");
}

}  // namespace
}  // namespace stoker::io
