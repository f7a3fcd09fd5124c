// A request and its answer that go through in pieces, so that neither is ever held whole. Belongs
// to the executor of the client that opened it.
#pragma once

#include <memory>
#include <string>

#include "base/task.hpp"
#include "net/http.hpp"

namespace comfyd::net {

struct AnswerHead {
    int status = 0;
    Headers headers{};
};

class Passage {
public:
    virtual ~Passage() = default;  // closes the connection

    // One operation at a time. Whichever waits longer than the request's timeout closes the
    // connection: Code::request_timeout. Code::connection_failed, Code::protocol_error,
    // Code::cancelled.
    virtual Task<Result<>> write(std::string piece) = 0;
    // After the last piece.
    virtual Task<Result<>> end_body() = 0;
    // Also after a write that failed: a server that refuses a body answers before it has read it.
    virtual Task<Result<AnswerHead>> head() = 0;
    // The next piece of the answer's body, as it was sent; empty at its end.
    virtual Task<Result<std::string>> read() = 0;
};

}  // namespace comfyd::net
