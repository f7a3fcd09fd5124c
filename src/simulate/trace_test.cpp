#include "simulate/trace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "simulate/synthetic.hpp"

namespace comfyd::simulate {
namespace {

std::string text_of(const Trace& trace) {
    std::ostringstream out;
    write_trace(trace, out);
    return out.str();
}

TEST(Trace, IsReadAsItWasWritten) {
    SyntheticOptions options;
    options.jobs = 300;
    options.batch = 0.1;
    options.repeats = 0.3;
    options.kept_part = 0.25;
    const std::string written = text_of(*make_synthetic(options));
    std::istringstream in(written);
    const auto read = read_trace(in);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->jobs.size(), 300U);
    EXPECT_EQ(text_of(*read), written);
    EXPECT_EQ(read->profiles[0].profile->models.size(), 1U);
}

TEST(Trace, LittleNeedsToBeSaid) {
    std::istringstream in(
        R"({"kind":"comfyd trace","version":1}
{"profile":"a","seconds":2}

{"at_ms":5000,"profile":"a"}
{"at_ms":1500,"profile":"a","tenant":"x","priority":9,"batch":true,"factor":2})"
    );
    const auto trace = read_trace(in);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->jobs.size(), 2U);
    EXPECT_EQ(trace->jobs[0].at_ms, 1'500) << "by time";
    EXPECT_EQ(trace->jobs[0].priority, 9);
    EXPECT_TRUE(trace->jobs[0].batch);
    EXPECT_EQ(trace->tenants[trace->jobs[1].tenant], "local");
    EXPECT_EQ(trace->profiles[0].profile->shape, "a");
}

TEST(Trace, WhatIsWrongIsSaidWithItsLine) {
    const std::string head = "{\"kind\":\"comfyd trace\",\"version\":1}\n";
    const std::string profile = "{\"profile\":\"a\",\"seconds\":1}\n";
    for (const std::string& bad : {
             std::string(""),
             std::string("{}"),
             std::string("{\"kind\":\"comfyd trace\",\"version\":2}"),
             head + "[1]",
             head + "{\"profile\":\"a\",\"seconds\":0}",
             head + "{\"profile\":\"a\",\"seconds\":-1}",
             head + "{\"profile\":\"a\",\"seconds\":\"x\"}",
             head + "{\"profile\":\"a\",\"models\":[3]}",
             head + profile + profile,
             head + profile + "{\"at_ms\":0,\"profile\":\"b\"}",
             head + profile + "{\"at_ms\":-1,\"profile\":\"a\"}",
             head + profile + "{\"at_ms\":0,\"profile\":\"a\",\"priority\":11}",
             head + profile + "{\"at_ms\":0,\"profile\":\"a\",\"factor\":0}",
             head + profile + "{\"at_ms\":0,\"profile\":\"a\",\"tenant\":4}",
         }) {
        std::istringstream in(bad);
        const auto trace = read_trace(in);
        ASSERT_FALSE(trace) << bad;
        EXPECT_EQ(trace.error().code, Code::invalid_argument);
    }
    std::istringstream in(head + "{\"at_ms\":0,\"profile\":\"b\"}");
    EXPECT_NE(read_trace(in).error().message.find("line 2"), std::string::npos);
}

TEST(Synthetic, IsTheSameForTheSameSeed) {
    SyntheticOptions options;
    options.jobs = 500;
    options.arrivals = Arrivals::bursty;
    EXPECT_EQ(text_of(*make_synthetic(options)), text_of(*make_synthetic(options)));
    SyntheticOptions other = options;
    other.seed = 2;
    EXPECT_NE(text_of(*make_synthetic(options)), text_of(*make_synthetic(other)));
}

TEST(Synthetic, HasTheRateAndTheLawThatWereAskedFor) {
    SyntheticOptions options;
    options.jobs = 40'000;
    options.rate = 10;
    options.sizes = 1;
    for (const Arrivals arrivals : {Arrivals::poisson, Arrivals::bursty}) {
        options.arrivals = arrivals;
        const Trace trace = *make_synthetic(options);
        EXPECT_NEAR(static_cast<double>(trace.jobs.back().at_ms) / 1000, 4'000, 400);
        std::map<std::uint32_t, double> counts;
        for (const TraceJob& job : trace.jobs) {
            counts[job.profile] += 1;
        }
        EXPECT_NEAR(counts[0] / counts[1], 2, 0.35) << "the first is used twice as often";
        EXPECT_NEAR(counts[0] / counts[3], 4, 0.9);
    }
    options.arrivals = Arrivals::at_once;
    EXPECT_EQ(make_synthetic(options)->jobs.back().at_ms, 0);
}

TEST(Synthetic, RunsHaveTheMeanThatWasAskedForWhateverTheSizes) {
    SyntheticOptions options;
    options.jobs = 30'000;
    options.seconds = 4;
    options.noise = 0;
    for (const std::size_t sizes : {1U, 3U, 5U}) {
        options.sizes = sizes;
        const Trace trace = *make_synthetic(options);
        double sum = 0;
        for (const TraceJob& job : trace.jobs) {
            sum += trace.profiles[job.profile].seconds;
        }
        EXPECT_NEAR(sum / 30'000, 4, 0.1);
    }
}

TEST(Synthetic, RefusesWhatMakesNoSense) {
    const auto refused = [](auto change) {
        SyntheticOptions options;
        change(options);
        return !make_synthetic(options);
    };
    EXPECT_TRUE(refused([](auto& options) { options.jobs = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.jobs = 100'000'000; }));
    EXPECT_TRUE(refused([](auto& options) { options.models = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.tenants = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.sizes = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.rate = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.rate = std::nan(""); }));
    EXPECT_TRUE(refused([](auto& options) { options.high = 0.9; }));
    EXPECT_FALSE(parse_arrivals("sometimes"));
}

}  // namespace
}  // namespace comfyd::simulate
