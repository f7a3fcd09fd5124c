#include "support/fault_proxy.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace comfyd::support {
namespace {

sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

struct Pair {
    int client = -1;
    int server = -1;
    bool is_mute = false;
};

int connect_to(int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(socket);
        return -1;
    }
    return socket;
}

// Nothing when the other side has ended.
std::string receive(int from) {
    std::string bytes(64 * 1024, '\0');
    const auto size = ::recv(from, bytes.data(), bytes.size(), 0);
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return bytes;
}

bool send_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

void close(Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
    pair = {};
}

}  // namespace

FaultProxy::FaultProxy(int target_port)
    : target_port_(target_port),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
    auto address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::runtime_error("the proxy cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
}

FaultProxy::~FaultProxy() {
    ends_ = true;
    cut();
    thread_.join();
    ::close(listener_);
    ::close(wake_);
}

void FaultProxy::cut() {
    cuts_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

void FaultProxy::lose_answers(const std::string& to) {
    const std::lock_guard lock(mutex_);
    awaited_ = to;
    loses_answers_ = to.empty();
}

void FaultProxy::hear(std::string_view said) {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty() && said.find(awaited_) != std::string_view::npos) {
        awaited_.clear();
        loses_answers_ = true;
    }
}

void FaultProxy::run() {
    std::vector<Pair> pairs;
    while (!ends_) {
        std::vector<pollfd> waits{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const Pair& pair : pairs) {
            waits.push_back({pair.client, POLLIN, 0});
            waits.push_back({pair.server, POLLIN, 0});
        }
        ::poll(waits.data(), waits.size(), -1);
        const bool becomes_mute = loses_of_old_.exchange(false);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            Pair& pair = pairs[i];
            pair.is_mute = pair.is_mute || becomes_mute;
            const bool has_asked = waits[2 + 2 * i].revents != 0;
            const bool has_answered = waits[3 + 2 * i].revents != 0;
            bool is_sound = true;
            if (has_asked) {
                const std::string said = receive(pair.client);
                hear(said);
                is_sound = !said.empty() && send_all(pair.server, said);
            }
            if (has_answered && is_sound) {
                const std::string said = receive(pair.server);
                const bool is_lost = loses_answers_ || pair.is_mute;
                is_sound = !said.empty() && (is_lost || send_all(pair.client, said));
            }
            if (!is_sound) {
                close(pair);
            }
        }
        if ((waits[0].revents & POLLIN) != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const auto read = ::read(wake_, &count, sizeof count);
        }
        if (cuts_.exchange(false)) {
            loses_answers_ = false;
            for (Pair& pair : pairs) {
                if (pair.client >= 0) {
                    close(pair);
                }
            }
        }
        std::erase_if(pairs, [](const Pair& pair) { return pair.client < 0; });
        if ((waits[1].revents & POLLIN) != 0) {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            const int server = connect_to(target_port_);
            if (client >= 0 && server >= 0) {
                pairs.push_back({client, server, false});
            } else {
                ::close(client);
                ::close(server);
            }
        }
    }
    for (Pair& pair : pairs) {
        close(pair);
    }
}

}  // namespace comfyd::support
