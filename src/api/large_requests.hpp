// Requests with large bodies are handled on threads of their own: to parse, check and answer 30 MB
// takes a second, in which the other connections of an io thread would wait. Their connections stay
// where they are; the handler reaches them through a stand-in for its exchange, so that no handler
// knows of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "api/router.hpp"
#include "net/io_threads.hpp"

namespace comfyd::api {

inline constexpr std::size_t kLargeBodyBytes = 256 * 1024;  // some milliseconds of work

class LargeRequests {
public:
    // Few threads: what is parsed takes far more memory than its text.
    explicit LargeRequests(unsigned threads);

    // Or may be: a body that comes in chunks does not say.
    static bool is_large(const net::Request& request);

    // On the connection's executor, where it also ends. Cancellation is passed on.
    Task<> run(const Handler& handler, Call& call);

private:
    std::vector<std::unique_ptr<net::IoThread>> threads_;
    std::atomic<std::size_t> next_ = 0;
};

}  // namespace comfyd::api
