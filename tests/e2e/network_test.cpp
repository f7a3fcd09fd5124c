// Listeners for proxies alone, and certificates that workers are shown.
#include <stdexcept>

#include "native_support.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Proxies, SayWhomTheySpeakForWhereThatIsDemanded) {
    Comfyd comfyd(
        {.arguments = {"--set", "proxies.trusted=127.0.0.0/8", "--set", "proxies.protocol=true"}}
    );
    const auto ask = [&comfyd](const std::string& before) {
        RawSocket socket(comfyd.url());
        socket.send(before + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        return socket.read_until("\r\n\r\n");
    };
    EXPECT_THAT(ask("PROXY TCP4 203.0.113.7 127.0.0.1 4660 443\r\n"), StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(ask("PROXY UNKNOWN\r\n"), StartsWith("HTTP/1.1 200 "));
    EXPECT_EQ(ask(""), "");
}

TEST(WorkerCertificates, ThatCannotBeUsedAreToldAtTheStart) {
    const auto complaint = [](const std::string& yaml) -> std::string {
        const TempDir folder;
        try {
            const Comfyd comfyd({.arguments = {"--config", folder.write("comfyd.yaml", yaml)}});
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "it started";
    };
    const std::string worker = "workers: [{url: \"https://127.0.0.1:1\"";
    EXPECT_THAT(
        complaint(worker + "}]\nfleet: {certificate: /none.pem, key: /none.key}\n"),
        HasSubstr("/none.pem")
    );
    EXPECT_THAT(complaint(worker + ", ca_file: /none-ca.pem}]\n"), HasSubstr("/none-ca.pem"));
    EXPECT_THAT(
        complaint(worker + ", certificate: /none.pem}]\n"), HasSubstr("both or not at all")
    );
    EXPECT_EQ(complaint(worker + "}]\n"), "it started");
}

}  // namespace
}  // namespace comfyd::support
