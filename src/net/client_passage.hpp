// Internal to net: a Passage over a connection that is open.
#pragma once

#include <memory>
#include <string>

#include "net/client_connection.hpp"
#include "net/passage.hpp"

namespace comfyd::net {

struct PassageOptions {
    Millis wait{};
    bool is_bodiless = false;  // the answer to HEAD
    bool is_chunked = false;   // the request
};

class OpenedPassage : public Passage {
public:
    // The request's head.
    virtual Task<Result<>> begin(std::string head) = 0;
};

std::unique_ptr<OpenedPassage> make_passage(
    std::shared_ptr<ClientConnection> connection, Url url, PassageOptions options
);

}  // namespace comfyd::net
