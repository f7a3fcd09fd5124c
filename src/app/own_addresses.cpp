#include "app/own_addresses.hpp"

#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <memory>

#include "app/config/own_hosts.hpp"
#include "net/address_guard.hpp"
#include "net/lookup.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kPause = std::chrono::minutes(1);
constexpr Millis kPatience{10'000};

bool is_address(const std::string& host) {
    boost::system::error_code error;
    boost::asio::ip::make_address(host, error);
    return !error;
}

// Of all interfaces.
std::vector<std::string> addresses_here() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return {};
    }
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(first, ::freeifaddrs);
    std::vector<std::string> addresses;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
        const socklen_t size = family == AF_INET    ? sizeof(sockaddr_in)
                               : family == AF_INET6 ? sizeof(sockaddr_in6)
                                                    : 0;
        std::array<char, NI_MAXHOST> text{};
        if (size != 0 && ::getnameinfo(
                             one->ifa_addr,
                             size,
                             text.data(),
                             static_cast<socklen_t>(text.size()),
                             nullptr,
                             0,
                             NI_NUMERICHOST
                         ) == 0) {
            addresses.emplace_back(text.data());
        }
    }
    return addresses;
}

}  // namespace

OwnAddresses::OwnAddresses(Executor executor, const Config& config)
    : executor_(executor), here_(addresses_here()), tasks_(executor) {
    for (const std::string& host : own_hosts(config)) {
        if (is_address(host)) {
            here_.push_back(host);
            continue;
        }
        names_.push_back(host);
        if (std::ranges::find(config.guard_shared_hosts, host) == config.guard_shared_hosts.end()) {
            looked_up_.push_back(host);
        }
    }
}

void OwnAddresses::start() {
    tell();
    if (!looked_up_.empty()) {
        tasks_.spawn("own addresses", keep_up());
    }
}

Task<> OwnAddresses::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> OwnAddresses::keep_up() {
    bool goes_on = true;
    while (goes_on) {
        co_await look_up_all();
        goes_on = co_await sleep_for(kPause);
    }
}

// What was heard of a name stays while it cannot be looked up.
Task<> OwnAddresses::look_up_all() {
    for (const std::string& name : looked_up_) {
        const net::LookedUp heard =
            co_await net::look_up(executor_, name, 0, Deadline::in(kPatience));
        const bool is_over = co_await is_cancelled();
        if (is_over) {
            co_return;
        }
        if (!heard.is_done || heard.error) {
            continue;
        }
        std::vector<std::string>& addresses = found_[name];
        addresses.clear();
        for (const auto& endpoint : heard.endpoints) {
            addresses.push_back(endpoint.address().to_string());
        }
        tell();
    }
}

void OwnAddresses::tell() const {
    std::vector<std::string> all = here_;
    for (const auto& [name, addresses] : found_) {
        all.insert(all.end(), addresses.begin(), addresses.end());
    }
    net::AddressGuard::of_process().set_own(names_, all);
}

}  // namespace comfyd::app
