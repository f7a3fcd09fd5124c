// Asking servers for models: who may be asked, what they are shown, and where they may send us.
//
// A token is for one host and goes only to the host that was asked first; whoever it redirects to
// gets none. Each hop is looked at as if somebody had written it: https only, public addresses only
// (net/address_guard.hpp), but for hosts that the operator has named.
//
// One executor: call it only there.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::models {

struct WebOptions {
    std::map<std::string, std::string> tokens{};  // bearer tokens by "host" or "host:port"
    // Hosts that may have private addresses and speak http, "host" or "host:port".
    std::set<std::string> trusted{};
    std::string ca_file{};
    Millis stall{30'000};  // without a byte
};

class Web {
public:
    Web(Executor executor, WebOptions options);

    struct Answer {
        net::Url url;  // that answered
        net::AnswerHead head;
        std::unique_ptr<net::Passage> body;
    };
    // Follows redirects, at most eight; `only_own`: not to other hosts, whose redirect is then the
    // answer. `is_peer`: the operator's gateway has named this address, which may be private then.
    // Any status is an answer. Code::invalid_argument, Code::address_refused and those of a
    // connection.
    Task<Result<Answer>> open(
        std::string method,
        net::Url url,
        net::Headers headers,
        bool only_own = false,
        bool is_peer = false
    );
    // All of a small answer.
    Task<Result<std::string>> read(Answer& answer, std::size_t bytes_max);

    // Whether it may be asked at all. Code::address_refused.
    Result<> check(const net::Url& url) const;

private:
    bool is_trusted(const net::Url& url) const;

    WebOptions options_;
    net::Client strangers_;
    net::Client trusted_;
};

}  // namespace comfyd::models
