#include "base/service_manager.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

namespace comfyd {
namespace {

class ServiceManager : public testing::Test {
protected:
    ServiceManager() {
        auto pattern = (std::filesystem::temp_directory_path() / "notify-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        const std::string path = folder_ / "socket";
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
        EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    }
    ~ServiceManager() override {
        ::unsetenv("NOTIFY_SOCKET");
        ::close(socket_);
        std::filesystem::remove_all(folder_);
    }
    std::string hear() const {
        char text[64] = {};
        const ssize_t count = ::recv(socket_, text, sizeof text, MSG_DONTWAIT);
        return count < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(count));
    }

    std::filesystem::path folder_;
    int socket_ = -1;
};

TEST_F(ServiceManager, HearsWhatItIsTold) {
    tell_service_manager("READY=1");
    EXPECT_EQ(hear(), "READY=1");
    EXPECT_EQ(hear(), "nothing");
}

TEST_F(ServiceManager, WhereThereIsNoneNothingHappens) {
    ::unsetenv("NOTIFY_SOCKET");
    tell_service_manager("READY=1");
    EXPECT_EQ(hear(), "nothing");
    ::setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    tell_service_manager("READY=1");
    ::setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
    tell_service_manager("READY=1");
}

}  // namespace
}  // namespace comfyd
