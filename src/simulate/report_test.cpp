#include "simulate/report.hpp"

#include <gmock/gmock.h>

#include "simulate/synthetic.hpp"

namespace comfyd::simulate {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(GpuTypes, AFleetIsReadAndDescribed) {
    const GpuTable table;
    const auto fleet = parse_fleet("2xH200,L40S,3xl40s", table);
    ASSERT_TRUE(fleet);
    EXPECT_EQ(fleet->size(), 6U);
    EXPECT_EQ(describe_fleet(*fleet), "2xH200,4xL40S");
    for (const char* bad : {"", ",", "0xL40S", "8xUnknown", "x", "-1xL40S", "999999999xL40S"}) {
        const auto refused = parse_fleet(bad, table);
        ASSERT_FALSE(refused) << bad;
        EXPECT_EQ(refused.error().code, Code::invalid_argument);
    }
    EXPECT_THAT(parse_fleet("8xUnknown", table).error().message, HasSubstr("L40S"));
}

TEST(GpuTypes, AFileChangesAndAddsTypes) {
    GpuTable table;
    ASSERT_TRUE(table.read(*json::parse_object(
        R"({"l40s": {"usd_per_hour": 2},
            "Mine": {"speed": 3, "vram_gb": 10, "load_mb_per_s": 100}})"
    )));
    EXPECT_EQ(table.find("L40S")->usd_per_hour, 2);
    EXPECT_EQ(table.find("L40S")->speed, 1) << "what is left out stays";
    EXPECT_EQ(table.find("mine")->vram_bytes, 10'000'000'000U);
    EXPECT_FALSE(table.read(*json::parse_object(R"({"New": {"speed": 1}})"))) << "no load rate";
    EXPECT_FALSE(table.read(*json::parse_object(R"({"L40S": {"speed": 0}})")));
    EXPECT_FALSE(table.read(*json::parse_object(R"({"L40S": {"speed": "fast"}})")));
    EXPECT_FALSE(table.read(*json::parse_object(R"({"L40S": 5})")));
}

TEST(Percentile, LeavesOutWhatNeverRan) {
    EXPECT_EQ(percentile({}, 0.5), 0);
    EXPECT_EQ(percentile({-1, -1}, 0.5), 0);
    EXPECT_EQ(percentile({3, 1, 2, -1}, 0.5), 2);
    EXPECT_EQ(percentile({3, 1, 2}, 1), 3);
    EXPECT_EQ(percentile({3, 1, 2}, 0), 1);
}

class Report : public testing::Test {
protected:
    Report() {
        SyntheticOptions options;
        options.jobs = 300;
        options.tenants = 7;
        trace_ = *make_synthetic(options);
        trace_.tenants[0] = "<script>&\"";
        for (const char* policy : {"finish-time", "fifo"}) {
            const Fleet fleet = *parse_fleet("2xL40S", GpuTable());
            columns_.push_back(
                {policy, *simulate(trace_, fleet, policy, Settings()), makespan_bound(trace_, fleet)
                }
            );
        }
    }

    Trace trace_;
    std::vector<Column> columns_;
};

TEST_F(Report, TheTableHasAColumnForEach) {
    const Table table = make_table(trace_, columns_);
    EXPECT_THAT(table.titles, testing::ElementsAre("finish-time", "fifo"));
    for (const Table::Row& row : table.rows) {
        EXPECT_EQ(row.cells.size(), 2U) << row.label;
    }
    const std::string text = to_text(table);
    for (const char* row :
         {"makespan",
          "times the bound",
          "high p50",
          "low p50",
          "tenant-2",
          "model loads",
          "GPU-seconds",
          "images a GPU-second",
          "cost of the fleet",
          "workers running"}) {
        EXPECT_THAT(text, HasSubstr(row));
    }
    EXPECT_THAT(text, Not(HasSubstr("tenant-7"))) << "only the largest";
    EXPECT_THAT(text, Not(HasSubstr("failed"))) << "nothing failed";
}

TEST_F(Report, PagesAreSelfContainedAndEscaped) {
    const std::string html = to_html("<b>", trace_, columns_);
    EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
    EXPECT_THAT(html, HasSubstr("&lt;script&gt;&amp;&quot;"));
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
    const std::string svg = to_svg(columns_);
    EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0U);
    for (const std::string& text : {html, svg}) {
        EXPECT_THAT(text, Not(HasSubstr("href=")));
        EXPECT_THAT(text, Not(HasSubstr("src=")));
        EXPECT_THAT(text, Not(HasSubstr("nan,")));
        EXPECT_THAT(text, Not(HasSubstr("inf,")));
    }
}

}  // namespace
}  // namespace comfyd::simulate
