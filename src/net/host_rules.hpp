// By which names clients may address a server. A page of any site can make its own name resolve to
// 127.0.0.1 and then talk to whatever listens there as if it were that site (DNS rebinding); the
// Host header still has the site's name, and gives it away. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace comfyd::net {

class HostRules {
public:
    // Any name is good.
    HostRules() = default;
    // Good are these, without ports, beside those of the loopback: localhost, 127.0.0.0/8, [::1].
    // "*" makes any name good.
    explicit HostRules(std::vector<std::string> names);
    static HostRules loopback() { return HostRules(std::vector<std::string>()); }

    // `host`: the header's value, with or without a port. No header at all is good: browsers always
    // send one.
    bool allows(std::string_view host) const;

private:
    bool any_ = true;
    std::vector<std::string> names_;
};

// "[::1]:80" -> "[::1]", "a.example:80" -> "a.example".
std::string_view without_port(std::string_view host);

}  // namespace comfyd::net
