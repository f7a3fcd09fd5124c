#include "support/redis.hpp"

#include <unistd.h>

#include <random>
#include <stdexcept>
#include <utility>

#include "support/wait.hpp"

namespace comfyd::support {
namespace {

constexpr int kTriesMax = 50;

// Below those that the kernel gives to whoever asks for any: a server that is started again finds
// its port free.
std::uint16_t some_port() {
    static std::mt19937 random(std::random_device{}());
    return static_cast<std::uint16_t>(std::uniform_int_distribution<>(16'000, 31'000)(random));
}

// True when it serves; false when it ended, because its port was taken.
bool is_ready(Process& process, std::string_view sign) {
    return wait_until([&] {
               return process.output().find(sign) != std::string::npos || !process.running();
           }) &&
           process.running();
}

std::string credentials(const std::string& password) {
    return password.empty() ? "" : ":" + password + "@";
}

std::string run_client(std::vector<std::string> words) {
    Process process(std::move(words));
    if (process.wait() != 0) {
        throw std::runtime_error("redis-cli failed: " + process.output() + process.errors());
    }
    std::string said = process.output();
    while (said.ends_with('\n')) {
        said.pop_back();
    }
    return said;
}

}  // namespace

Redis::Redis(RedisOptions options) : options_(std::move(options)) {
    if (options_.tls) {
        certificate_ = make_certificate(folder_);
    }
    for (int tries = 0; tries < kTriesMax; ++tries) {
        port_ = some_port();
        if (try_start()) {
            return;
        }
    }
    throw std::runtime_error("no redis-server comes up: " + process_->output());
}

bool Redis::try_start() {
    const std::string port = std::to_string(port_);
    std::vector<std::string> arguments{
        "redis-server",
        "--bind",
        "127.0.0.1",
        "--dir",
        folder_.path(),
        "--appendonly",
        "no",
        "--save",
        ""
    };
    const auto add = [&arguments](std::vector<std::string> more) {
        arguments.insert(arguments.end(), more.begin(), more.end());
    };
    if (options_.tls) {
        add({"--port", "0", "--tls-port", port, "--tls-auth-clients", "no"});
        add({"--tls-cert-file", certificate_.certificate, "--tls-key-file", certificate_.key});
        add({"--tls-ca-cert-file", certificate_.certificate});
    } else {
        add({"--port", port});
    }
    if (!options_.password.empty()) {
        add({"--requirepass", options_.password, "--masterauth", options_.password});
    }
    if (options_.replica_of != 0) {
        add({"--replicaof", "127.0.0.1", std::to_string(options_.replica_of)});
    }
    add(options_.arguments);
    process_ = std::make_unique<Process>(std::move(arguments));
    return is_ready(*process_, "Ready to accept connections");
}

std::string Redis::url() const {
    const std::string port = std::to_string(port_);
    if (options_.tls) {
        return "rediss://localhost:" + port + "?ca=" + certificate_.certificate;
    }
    return "redis://" + credentials(options_.password) + "127.0.0.1:" + port;
}

void Redis::kill() {
    process_->kill(SIGKILL);
    process_->wait();
}

void Redis::start() {
    if (process_->running()) {
        throw std::runtime_error("redis-server runs still");
    }
    if (!wait_until([this] { return try_start(); })) {
        throw std::runtime_error("redis-server does not come up again: " + process_->output());
    }
}

std::string Redis::command(std::vector<std::string> words) const {
    std::vector<std::string> line{"redis-cli", "-h", "localhost", "-p", std::to_string(port_)};
    if (options_.tls) {
        line.insert(line.end(), {"--tls", "--cacert", certificate_.certificate});
    }
    if (!options_.password.empty()) {
        line.insert(line.end(), {"--no-auth-warning", "-a", options_.password});
    }
    line.insert(line.end(), words.begin(), words.end());
    return run_client(std::move(line));
}

RedisWithSentinel::RedisWithSentinel(std::string password)
    : password_(std::move(password)),
      master_(std::make_unique<Redis>(RedisOptions{.password = password_})),
      replica_(std::make_unique<Redis>(
          RedisOptions{.password = password_, .replica_of = master_->port()}
      )) {
    for (int tries = 0; tries < kTriesMax; ++tries) {
        port_ = some_port();
        sentinel_ = std::make_unique<Process>(std::vector<std::string>{
            "redis-server", folder_.write("sentinel.conf", settings()), "--sentinel"
        });
        if (is_ready(*sentinel_, "+monitor master")) {
            break;
        }
    }
    // Nobody is made a master of whom the sentinel has not heard, or who has not heard all.
    const bool is_known = wait_until([this] {
        return master_->command({"INFO", "replication"}).find("state=online") !=
                   std::string::npos &&
               ask({"SENTINEL", "replicas", kService}).find(std::to_string(replica_->port())) !=
                   std::string::npos;
    });
    if (!is_known) {
        throw std::runtime_error("the sentinel does not see the replica: " + sentinel_->output());
    }
}

std::string RedisWithSentinel::settings() const {
    const std::string service = kService;
    std::string text = "port " + std::to_string(port_) + "\nbind 127.0.0.1\ndir " +
                       folder_.path().string() + "\nsentinel monitor " + service + " 127.0.0.1 " +
                       std::to_string(master_->port()) + " 1\nsentinel down-after-milliseconds " +
                       service + " 500\nsentinel failover-timeout " + service + " 3000\n";
    if (!password_.empty()) {
        text +=
            "requirepass " + password_ + "\nsentinel auth-pass " + service + " " + password_ + "\n";
    }
    return text;
}

std::string RedisWithSentinel::url() const {
    return "redis+sentinel://" + credentials(password_) + "127.0.0.1:" + std::to_string(port_) +
           "/" + kService;
}

std::string RedisWithSentinel::ask(std::vector<std::string> words) const {
    std::vector<std::string> line{"redis-cli", "-p", std::to_string(port_)};
    if (!password_.empty()) {
        line.insert(line.end(), {"--no-auth-warning", "-a", password_});
    }
    line.insert(line.end(), words.begin(), words.end());
    return run_client(std::move(line));
}

std::uint16_t RedisWithSentinel::master_port() const {
    const std::string said = ask({"SENTINEL", "get-master-addr-by-name", kService});
    return static_cast<std::uint16_t>(std::stoi(said.substr(said.find('\n') + 1)));
}

void RedisWithSentinel::hand_over() {
    // It refuses while it does not know yet that the replica is a good one.
    const bool has_begun =
        wait_until([this] { return ask({"SENTINEL", "failover", kService}) == "OK"; });
    if (!has_begun || !wait_until([this] { return master_port() == replica_->port(); })) {
        throw std::runtime_error("the sentinel does not hand over: " + sentinel_->output());
    }
}

}  // namespace comfyd::support
