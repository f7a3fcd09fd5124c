// What the audit log tells: who did what, when, from where, and what came of it. Never a prompt, a
// credential or the query of an address. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::audit {

// How much of what is asked for is told.
enum class Extent {
    security,  // credentials that were refused, and what concerns all tenants
    changes,   // and whatever changes something: submits, cancels, deletes, uploads
    all,       // and whatever is read
};

struct Event {
    Time at{};
    std::string action;  // "key.create", "login.refused"
    // Of the answer to a request.
    int status = 0;       // 0: it is about no request
    std::string error{};  // the word for it that the client was told
    // Who.
    std::string tenant{};
    std::string key{};      // its name
    std::string key_id{};   // of one that was made at run time
    std::string subject{};  // of a token
    // From where.
    std::string from{};     // address
    std::string request{};  // id
    std::string trace{};    // of `traceparent`
    // On what.
    std::string_view method{};  // lives for ever
    std::string route{};        // its pattern
    std::string object{};       // id of what was made, changed or read
    std::string note{};         // of comfyd's own events
    std::uint64_t count = 1;    // how many alike
};

}  // namespace comfyd::audit
