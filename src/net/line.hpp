// One connection that is carried in the messages of one WebSocket, so that whoever dialled can be
// the one that is asked. It waits ("parked") until it is connected to an end of its own on this
// side; then bytes go both ways until either side closes. One connection each: nothing is mixed,
// and TCP's own flow control holds for it.
//
// Belongs to the executor of its WebSocket.
#pragma once

#include <functional>
#include <memory>

#include "base/task.hpp"
#include "net/descriptor.hpp"
#include "net/websocket.hpp"

namespace comfyd::net {

class Line {
public:
    // Asked for the end on this side when the peer's first bytes come.
    using Answer = std::function<Result<Descriptor>()>;

    // Without `answer` the peer may send nothing before connect().
    static std::shared_ptr<Line> make(
        Executor executor, std::unique_ptr<WebSocket> socket, Answer answer = {}
    );
    ~Line();

    // False: it has an end already, or is over.
    bool connect(Descriptor end);
    // Since when nothing has come or gone.
    Millis silent_for() const;
    // Returns when it is over. Once.
    Task<> run();
    void abort();

private:
    class Impl;
    explicit Line(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::net
