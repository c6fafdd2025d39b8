// SPDX-License-Identifier: Apache-2.0
#include "tools/chart/chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace chart {
namespace {

using testing::HasSubstr;
using testing::Not;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Chart, LogarithmicAxesAreLabelledAtEachXAndAtRoundNumbers) {
  const std::string svg = to_svg({{.title = "Copies",
                                   .x = {.name = "bytes", .logarithmic = true},
                                   .y = {.name = "us", .logarithmic = true},
                                   .series = {{.name = "put", .points = {{8, 2}, {64, 20}, {512, 200}}},
                                              {.name = "get", .points = {{8, 3}, {64, 30}}, .dashed = true}}}});
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  for (const char* label :
       {">8<", ">64<", ">512<", ">2<", ">5<", ">10<", ">20<", ">50<", ">100<", ">200<", ">put<", ">get<", ">bytes<"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">1<"))) << "nothing is as small";
  EXPECT_THAT(svg, Not(HasSubstr(">500<")));
  EXPECT_EQ(count(svg, "<polyline"), 2);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 2) << "the line, and its sample in the legend";
  EXPECT_EQ(count(svg, "<circle"), 5 + 2);
  // Equal factors are equal distances: 64 is in the middle between 8 and 512.
  EXPECT_THAT(svg, HasSubstr("points=\"80.0,"));
  EXPECT_THAT(svg, HasSubstr(" 355.0,"));
  EXPECT_THAT(svg, HasSubstr(" 630.0,"));
}

TEST(Chart, LargeRangesHaveLabelsAtPowersOfTen) {
  const std::string svg = to_svg({{.x = {.name = "bytes", .logarithmic = true, .bytes = true},
                                   .y = {.name = "us", .logarithmic = true},
                                   .series = {{.name = "put", .points = {{512, 0.2}, {2048, 30}, {1 << 20, 5000}}}}}});
  for (const char* label : {">512<", ">2 KiB<", ">1 MiB<", ">0.1<", ">1<", ">10<", ">100<", ">1000<", ">10000<"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">20<")));
}

TEST(Chart, BarsStandOnTheAxisSideBySide) {
  const std::string svg = to_svg({{.y = {.name = "tokens", .unit = " %"},
                                   .series = {{.name = "before", .points = {{0, 10}, {1, 30}}, .bars = true},
                                              {.name = "after", .points = {{0, 20}, {1, 20}}, .bars = true},
                                              {.name = "mean", .points = {{-0.5, 20}, {1.5, 20}}, .dashed = true}}}});
  // The background, the legend's entries of bars, and the bars: 1 + 2 + 4.
  EXPECT_EQ(count(svg, "<rect"), 7);
  EXPECT_EQ(count(svg, "<polyline"), 1);
  EXPECT_THAT(svg, HasSubstr(">0 %<"));
  EXPECT_THAT(svg, HasSubstr(">30 %<"));
  EXPECT_THAT(svg, Not(HasSubstr(">-0.5<")));
  // 275 units for each x, four fifths of them for two bars.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"107.5\" y=\"336.7\" width=\"110.0\" height=\"143.3\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"217.5\" "));
}

TEST(Chart, ValuesWithoutExtentDrawNoNan) {
  for (const Series& series : {Series{.name = "none"}, Series{.name = "one", .points = {{1, 0}}},
                               Series{.name = "bar", .points = {{3, 0}}, .bars = true}}) {
    const std::string svg = to_svg({{.series = {series}}});
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
}

TEST(Chart, TextIsEscapedAndWrapped) {
  const std::string svg = to_svg({}, {"PASS", "a <trace> & " + std::string(100, 'x') + " \n more"});
  EXPECT_THAT(svg, HasSubstr("font-size=\"18\""));
  EXPECT_THAT(svg, HasSubstr(">a &lt;trace&gt; &amp;<"));
  EXPECT_THAT(svg, HasSubstr("x ? more<"));
}

}  // namespace
}  // namespace chart
