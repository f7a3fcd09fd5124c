// The HTTP side of a double. All members on its executor.
#pragma once

#include <optional>
#include <string>

#include "base/task.hpp"
#include "net/server.hpp"
#include "support/double/core.hpp"

namespace comfyd::support {

class Routes {
public:
    Routes(Core& core, TaskGroup& writers) : core_(core), writers_(writers) {}

    Task<> handle(net::Exchange& exchange);

private:
    struct Call {
        net::Exchange& exchange;
        std::string rest{};  // of the path, decoded, where the route ends with '/'
        std::string body{};
    };
    using Answer = net::Response (Routes::*)(Call&);
    struct Route {
        net::Method method;
        const char* path;
        Answer answer;
    };
    static const Route kRoutes[];

    Task<> dispatch(net::Exchange& exchange, std::string path);
    Task<> post_prompt(net::Exchange& exchange, std::string body);
    Task<> serve_websocket(net::Exchange& exchange);
    Task<bool> pass_faults(net::Exchange& exchange, const std::string& path);

    net::Response accept(const std::string& body, PromptPtr& accepted);
    bool number(const json::object& request, Prompt& prompt);
    bool identify(const json::object& request, Prompt& prompt) const;
    Result<> complete(const json::object& request, Prompt& prompt) const;
    void remember(const Prompt& prompt);
    void announce(const PromptPtr& prompt);
    bool has_fence() const { return core_.options.batch_pack || core_.options.fence; }
    // What the fence says to a lead, {"domain", "epoch"}, and to a prompt under it; nullopt: pass.
    std::optional<net::Response> refuse_lead(const json::object& lead);
    std::optional<net::Response> refuse_prompt(const json::object& request, const Prompt& prompt);
    json::object features() const;

    net::Response get_prompt(Call& call);
    net::Response get_queue(Call& call);
    net::Response post_queue(Call& call);
    net::Response get_history(Call& call);
    net::Response get_history_entry(Call& call);
    net::Response post_history(Call& call);
    net::Response post_interrupt(Call& call);
    net::Response post_free(Call& call);
    net::Response get_system_stats(Call& call);
    net::Response get_features(Call& call);
    net::Response get_object_info(Call& call);
    net::Response get_object_info_entry(Call& call);
    net::Response get_models(Call& call);
    net::Response get_replacements(Call& call);
    net::Response get_pack_classes(Call& call);
    net::Response post_pack_validate(Call& call);
    net::Response post_pack_lead(Call& call);
    net::Response get_empty_list(Call& call);
    net::Response post_upload(Call& call);
    net::Response get_view(Call& call);
    net::Response get_jobs(Call& call);
    net::Response get_job(Call& call);
    net::Response post_cancel_job(Call& call);
    net::Response post_cancel_jobs(Call& call);
    net::Response get_agent_status(Call& call);
    net::Response get_executions(Call& call);
    net::Response get_faults(Call& call);
    net::Response post_faults(Call& call);

    Core& core_;
    TaskGroup& writers_;
};

// Answers as aiohttp gives them.
net::Response json_answer(const json::value& body, int status = 200);
net::Response prompt_error(json::object error, json::object node_errors = {});  // 400
net::Response empty_answer(int status = 200);
net::Response trouble();  // 500

}  // namespace comfyd::support
