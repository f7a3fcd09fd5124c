// A TCP proxy on loopback that loses what it is told to lose. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace comfyd::support {

class FaultProxy {
public:
    // Throws std::runtime_error.
    explicit FaultProxy(int target_port);
    ~FaultProxy();
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;

    int port() const { return port_; }
    // Once a client says this, what the server says is lost, while it hears everything; empty: from
    // now on.
    void lose_answers(const std::string& to = "");
    // The same, of the connections that there are now; new ones are sound.
    void lose_answers_of_old() { loses_of_old_ = true; }
    // Ends all connections; new ones are sound.
    void cut();

private:
    void run();
    void hear(std::string_view said);

    int target_port_;
    int listener_ = -1;
    int wake_ = -1;
    int port_ = 0;
    std::atomic<bool> loses_answers_ = false;
    std::mutex mutex_;
    std::string awaited_;  // guarded by mutex_
    std::atomic<bool> loses_of_old_ = false;
    std::atomic<bool> cuts_ = false;
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

}  // namespace comfyd::support
