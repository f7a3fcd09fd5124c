// Gateway and worker on one machine, without a port: the worker listens on a unix socket.
#include <gtest/gtest.h>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

TEST(UnixSocket, AWorkerOnOneIsAWorkerLikeAnyOther) {
    const TempDir folder;
    const std::string address = "unix:" + std::string(folder / "gpu.sock");
    Process worker({COMFYD_BINARY, "engine", "--listen", address, "--data", folder / "engine"});
    EXPECT_EQ(worker.wait_for_line("listening on "), address);
    Comfyd comfyd({.arguments = {"--no-engine", "--worker", address}});
    const json::value job = comfyd.wait_finished(comfyd.submit(small_picture()));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    const Reply workers = comfyd.http().get("/admin/v1/workers");
    EXPECT_EQ(workers.json_at("/workers/0/id"), "gpu");
    EXPECT_EQ(workers.json_at("/workers/0/url"), json::value(address));
    EXPECT_EQ(worker.stop(), 0);
}

}  // namespace
}  // namespace comfyd::support
