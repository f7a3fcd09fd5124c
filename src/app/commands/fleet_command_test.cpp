#include "app/commands/fleet_command.hpp"

#include <gmock/gmock.h>

namespace comfyd::app {
namespace {

TEST(FleetCommand, PrintsPoolsMachinesAndEvents) {
    const auto fleet = json::parse_object(R"({"fleet": "main", "pools": [
        {"name": "gold", "size": 2, "ready": 1, "paused": true, "paused_why": "three failed",
         "instances": [
            {"id": "0123456789ab", "state": "ready", "provider": "cloud", "gpu_type": "RTX 4090",
             "region": "eu", "reason": "", "usd_per_hour": 0.35,
             "since": {"requested": "2026-11-18T11:00:00.000Z", "ready": "2026-11-18T11:57:55.900Z"}},
            {"id": "ba9876543210", "state": "requested", "provider": "", "reason": "no stock"}]}],
        "events": [{"at": "2026-11-18T12:00:00.000Z", "pool": "gold", "instance": "0123456789ab",
                    "what": "ready", "why": ""}]})");
    ASSERT_TRUE(fleet);
    const Time now = *parse_rfc3339("2026-11-18T12:00:00.000Z");
    EXPECT_EQ(
        print_fleet(*fleet, now),
        "pool gold: 1 of 2 ready, 0.35 $/h\n"
        "  PAUSED: three failed\n"
        "  mended? comfyd fleet resume gold\n"
        "  INSTANCE      STATE      FOR        WHERE                          WHY\n"
        "  0123456789ab  ready      2 min 4 s  cloud, RTX 4090, eu, 0.35 $/h\n"
        "  ba9876543210  requested  -          -                              no stock\n"
        "\n"
        "  2026-11-18T12:00:00.000Z  gold  0123456789ab  ready\n"
    );
    EXPECT_THAT(print_fleet({}, now), testing::HasSubstr("no pool"));
    EXPECT_EQ(print_fleet_events({}), "");
}

TEST(FleetCommand, PrintsWhatIsDecidedNowAndWasBefore) {
    const auto answer = json::parse_object(R"({
        "now": [{"pool": "gold", "machines": 2, "dry_run": true, "sentence": "start 2: 9 jobs wait"}],
        "decisions": [{"at": "2026-11-18T12:00:00.000Z", "pool": "gold", "were": 3, "machines": 0,
                       "sentence": "stop 3 of 3 machines"}]})");
    ASSERT_TRUE(answer);
    EXPECT_EQ(
        print_fleet_decisions(*answer),
        "pool gold: 2 (dry run)\n"
        "  start 2: 9 jobs wait\n"
        "\n"
        "  2026-11-18T12:00:00.000Z  gold  3 -> 0  stop 3 of 3 machines\n"
    );
    EXPECT_EQ(print_fleet_decisions({}), "no such pool is scaled\n");
}

}  // namespace
}  // namespace comfyd::app
