// What an answer of an S3 service means for the request that got it: the table of its errors. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/time.hpp"
#include "net/client.hpp"

namespace comfyd::assets::s3 {

enum class Action {
    none,                 // it is done
    again,                // after a pause
    slower,               // after a pause, and with fewer at a time
    again_once,           // the bytes were damaged on the way: once more, then it is a failure
    set_clock,            // ours is wrong: signed anew with the service's time, once
    refresh_credentials,  // these are worn out: signed anew with others, once
    go_elsewhere,         // another region or host: signed anew for it, once
    give_up,
};

struct Verdict {
    Action action = Action::none;
    std::string reason{};        // the service's code: "SlowDown"; empty when it gave none
    std::optional<Time> time{};  // set_clock: the service's
    std::string region{};        // go_elsewhere: may be empty
    std::string host{};          // likewise: the host that has the bucket
    bool is_for_this_request_only = false;  // go_elsewhere: until names have spread
    Error error{};                          // unless none: what the caller is told at last
};

// `region` is the one that the request was signed for. `may_fail_late`: a success whose body says
// <Error> is none, because services answer long operations with 200 before they know their end.
Verdict judge(
    const net::ClientResponse& answer, const std::string& region, bool may_fail_late = false
);
// Of a request that got no answer.
Verdict judge(const Error& failure);

}  // namespace comfyd::assets::s3
