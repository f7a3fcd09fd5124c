// What an attempt to deliver came to. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/time.hpp"
#include "net/client.hpp"

namespace comfyd::notify {

// What came of an attempt.
struct Outcome {
    enum class Kind {
        delivered,
        retry,
        give_up,
        storage_failed,  // nothing was sent
        cancelled,
    };
    Kind kind = Kind::retry;
    std::string error{};
    std::optional<Millis> retry_after{};
};

// 2xx is delivered, 410 ends it, anything else is tried again.
Outcome judge(const net::ClientResponse& response, Time now);
// An address that may not be called or a request that cannot be sent will not get better; the rest
// may.
Outcome judge(const Error& error);

}  // namespace comfyd::notify
