// Where a Redis is and as whom to talk to it:
//   redis://[user:password@]host[:port][/db]     plain TCP
//   rediss://…[?ca=FILE]                         TLS; FILE has authorities beside the system's
//   redis+sentinel://[user:password@]host[:port],host[:port]…/service[/db]
// A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace comfyd::cluster::redis {

struct Address {
    std::string host;
    std::uint16_t port = 0;

    std::string to_string() const;  // "host:port", "[::1]:6379"
    friend bool operator==(const Address&, const Address&) = default;
};

struct Url {
    bool tls = false;
    std::string user{};      // empty: the default one
    std::string password{};  // empty: none
    std::vector<Address> hosts{};
    std::string service{};  // whose master the hosts, sentinels then, are asked for
    int db = 0;
    std::string ca_file{};

    // Code::invalid_argument; the message has nothing of the text.
    static Result<Url> parse(std::string_view text);
    bool has_sentinels() const { return !service.empty(); }
    // Without user and password: this one may be logged.
    std::string to_string() const;
};

}  // namespace comfyd::cluster::redis
