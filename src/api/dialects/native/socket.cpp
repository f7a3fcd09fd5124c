// The sockets of the caller's clients.
#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/dialects/native/gateway.hpp"
#include "api/sse.hpp"
#include "base/hop.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

class Slot final : public server::Hold {
public:
    explicit Slot(StreamSlot slot) : slot_(std::move(slot)) {}

private:
    StreamSlot slot_;
};

// A socket's seat on the board, given back when the connection ends, however it ends.
class BoardSeat final : public server::Hold {
public:
    BoardSeat(Context& context, std::string tenant, std::shared_ptr<Mailbox> mailbox)
        : context_(context), tenant_(std::move(tenant)), mailbox_(std::move(mailbox)) {}
    ~BoardSeat() override {
        boost::asio::post(
            context_.board->executor(),
            [board = context_.board, tenant = tenant_, mailbox = mailbox_] {
                board->detach(tenant, mailbox.get());
            }
        );
    }

private:
    Context& context_;
    std::string tenant_;
    std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace

server::SocketRules Gateway::socket_rules() const {
    const Millis heartbeat = context_.services.options.heartbeat;
    server::SocketRules rules;
    rules.options.idle_timeout = std::chrono::ceil<std::chrono::seconds>(4 * heartbeat);
    rules.patience = heartbeat;
    return rules;
}

Result<std::unique_ptr<server::Hold>> Gateway::reserve_socket() {
    auto slot = StreamSlot::open(context_.services);
    if (!slot) {
        return fail(std::move(slot.error()));
    }
    return std::make_unique<Slot>(std::move(*slot));
}

Task<server::Seat> Gateway::attach(std::string client_id, std::shared_ptr<Mailbox> mailbox) {
    const Services& services = context_.services;
    auto running = co_await call_on(
        context_.board->executor(),
        [board = context_.board, tenant = tenant(), client_id, mailbox] {
            return board->attach(tenant, client_id, mailbox);
        }
    );
    server::Seat seat;
    seat.seat = std::make_unique<BoardSeat>(context_, tenant(), std::move(mailbox));
    seat.unfinished = co_await services.jobs.unfinished(tenant());
    if (running) {
        auto view = co_await services.jobs.get(tenant(), *running);
        if (view && view->progress) {
            seat.current_node = view->progress->current_node;
        }
    }
    co_return seat;
}

}  // namespace comfyd::api::native
