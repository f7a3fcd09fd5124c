#include "fleet/coming_worker.hpp"

#include <boost/asio/post.hpp>

#include "agent/content_ticket.hpp"
#include "base/cancellable_hop.hpp"
#include "fleet/bringing.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::chrono::hours kTicketLife{1};

// Holds the client for as long as it is used.
Task<Result<>> bring(
    std::shared_ptr<comfy::Client> client,
    std::vector<json::object> wishes,
    LinkOf link_of,
    std::function<void(jobs::ModelHolder::Fetched)> told
) {
    auto brought =
        co_await bring_models(*client, std::move(wishes), std::move(link_of), std::move(told));
    co_return brought;
}

}  // namespace

void ComingWorker::meet(Agent agent) {
    if (!client_ || agent_->url != agent.url) {
        client_ = std::make_shared<comfy::Client>(
            agent.http, agent.pool, agent.url, agent.options.timeouts, agent.token
        );
    }
    agent_.emplace(std::move(agent));
}

std::optional<std::string> ComingWorker::content_address(const std::string& sha256) const {
    if (!agent_ || !agent_->url.starts_with("http") || agent_->token.empty()) {
        return std::nullopt;
    }
    const Time until = agent_->clock.now() + kTicketLife;
    return agent_->url + agent::content_address(agent_->token, sha256, until);
}

Task<Result<>> ComingWorker::fetch_models(
    std::vector<json::object> wishes, std::function<void(Fetched)> told
) {
    const Executor core = co_await boost::asio::this_coro::executor;
    auto to_core = [core, told = std::move(told)](Fetched fetched) {
        boost::asio::post(core, [told, fetched] { told(fetched); });
    };
    auto fetched = co_await await_cancellable_on(
        agent_->lane, bring(client_, std::move(wishes), agent_->options.link_of, std::move(to_core))
    );
    co_return fetched;
}

}  // namespace comfyd::fleet
