// Real Redis servers of a test: alone, with TLS, or a master with a replica and a sentinel. Each
// has a folder and a port of its own, keeps nothing on disk and ends with its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/certificate.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

struct RedisOptions {
    std::string password{};
    bool tls = false;
    std::uint16_t replica_of = 0;          // a port; 0: it is a master
    std::vector<std::string> arguments{};  // further ones
};

class Redis {
public:
    // Throws std::runtime_error when no server comes up.
    explicit Redis(RedisOptions options = {});

    std::uint16_t port() const { return port_; }
    // "redis://127.0.0.1:PORT", with the password, or "rediss://localhost:PORT?ca=FILE".
    std::string url() const;

    void kill();   // -9
    void start();  // again, on the same port and empty
    // Stops and continues its process.
    void freeze() { process_->kill(SIGSTOP); }
    void thaw() { process_->kill(SIGCONT); }
    // What redis-cli says to a command.
    std::string command(std::vector<std::string> words) const;

private:
    bool try_start();

    RedisOptions options_;
    TempDir folder_;
    Certificate certificate_;
    std::uint16_t port_ = 0;
    std::unique_ptr<Process> process_;
};

// A master, its replica and a sentinel that decides alone.
class RedisWithSentinel {
public:
    static constexpr const char* kService = "comfyd";

    // All three ask for the password.
    explicit RedisWithSentinel(std::string password = {});

    // "redis+sentinel://127.0.0.1:PORT/SERVICE", with the password.
    std::string url() const;
    Redis& master() { return *master_; }
    Redis& replica() { return *replica_; }
    // The port of whom the sentinel calls the master now.
    std::uint16_t master_port() const;
    // The replica becomes the master while both live.
    void hand_over();

private:
    std::string ask(std::vector<std::string> words) const;
    std::string settings() const;

    const std::string password_;
    std::unique_ptr<Redis> master_;
    std::unique_ptr<Redis> replica_;
    TempDir folder_;
    std::uint16_t port_ = 0;
    std::unique_ptr<Process> sentinel_;
};

}  // namespace comfyd::support
