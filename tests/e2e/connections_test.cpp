// Many connections must not take what jobs need.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/comfyd.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

TEST(Connections, AreRefusedBeforeJobsLackFiles) {
    Comfyd comfyd(ComfydOptions{.open_files_max = 400});
    ASSERT_EQ(comfyd.http().get("/healthz").status, 200);  // this connection stays
    std::vector<std::unique_ptr<RawSocket>> idle;
    for (int i = 0; i < 500; ++i) {
        idle.push_back(std::make_unique<RawSocket>(comfyd.url()));
    }
    for (int color = 0; color < 5; ++color) {
        const std::string id = comfyd.submit(small_picture(color));
        const json::value job = comfyd.wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    }
    const std::string metrics = comfyd.http().get("/metrics").body;
    EXPECT_EQ(metrics.find("comfyd_http_connections_refused 0\n"), std::string::npos);
}

TEST(Connections, OfOneAddressWithoutAKeyAreLimited) {
    ComfydOptions options{.arguments = {"--set", "limits.connections_per_address=3"}};
    options.environment["COMFYD_AUTH_KEYS"] = "app=app-0123456789abcdef";
    Comfyd comfyd(options);
    comfyd.http().set_header("Authorization", "Bearer app-0123456789abcdef");
    ASSERT_EQ(comfyd.http().get("/queue").status, 200);
    const std::string request = "GET /queue HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::vector<std::unique_ptr<RawSocket>> strangers;
    for (int i = 0; i < 4; ++i) {
        strangers.push_back(std::make_unique<RawSocket>(comfyd.url()));
        strangers.back()->send(request);
        EXPECT_TRUE(strangers.back()
                        ->read_until("\r\n\r\n")
                        .starts_with(i < 3 ? "HTTP/1.1 401" : "HTTP/1.1 503")
        ) << i;
    }
    EXPECT_EQ(comfyd.http().get("/queue").status, 200);
}

}  // namespace
}  // namespace comfyd::support
