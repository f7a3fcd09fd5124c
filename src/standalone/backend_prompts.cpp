// Prompts: taking, listing and stopping them, and who is told of them.
#include <utility>

#include "base/log.hpp"
#include "comfy/members.hpp"
#include "comfy/owner.hpp"
#include "standalone/backend.hpp"
#include "workflow/rules/prompt_request.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::standalone {
namespace {

namespace server = comfy::server;

constexpr std::size_t kFramesMax = 100'000;  // that wait for one socket

struct Checked {
    std::shared_ptr<Prompt> prompt;
    json::object node_errors;
};
using Decision = tl::expected<Checked, server::PromptRefusal>;

tl::unexpected<server::PromptRefusal> refuse(
    json::object error, json::object node_errors = {}, int status = 400
) {
    return tl::unexpected(server::PromptRefusal{std::move(error), std::move(node_errors), status});
}

void number(Core& core, const workflow::PromptRequest& request, Prompt& prompt) {
    if (request.number) {
        prompt.number = *request.number;
        prompt.order = *request.number;
        return;
    }
    const std::int64_t counted = core.next_number++;
    const std::int64_t signed_number = request.front ? -counted : counted;
    prompt.number = signed_number;
    prompt.order = static_cast<double>(signed_number);
}

// Empty where it may not say, or says none that could be the name of a folder.
std::string take_owner(const Options& options, json::object& extra_data) {
    std::string owner = options.behind_gateway ? comfy::text_of(extra_data, comfy::kOwnerKey) : "";
    extra_data.erase(comfy::kOwnerKey);
    const bool plain = owner.find_first_of("./") == std::string::npos;
    return plain ? owner : std::string();
}

// On a thread of the pool.
Decision decide(Core& core, const std::string& text, const std::string& usage_source) {
    auto body = workflow::read_prompt_body(text);
    if (!body) {
        return refuse(std::move(body.error()));
    }
    auto request = workflow::parse_prompt_request(std::move(*body));
    if (!request) {
        return refuse(std::move(request.error()));
    }
    auto prompt = std::make_shared<Prompt>();
    number(core, *request, *prompt);
    prompt->created = core.clock.now();
    prompt->id = request->prompt_id.value_or(std::string());
    if (prompt->id.empty()) {
        prompt->id = Uuid::make(prompt->created).to_string();
    }
    prompt->graph = std::move(request->prompt);
    prompt->owner = take_owner(core.options, request->extra_data);
    prompt->lead = comfy::LeadMark::take(request->extra_data);
    const engine::Owner owner = core.owner_named(prompt->owner);
    engine::Validation verdict = core.engine.validate(
        prompt->graph, request->targets ? &*request->targets : nullptr, &owner
    );
    if (verdict.outputs_to_execute.empty()) {
        return refuse(std::move(verdict.error), std::move(verdict.node_errors));
    }
    prompt->outputs = std::move(verdict.outputs_to_execute);
    prompt->client_id = std::move(request->client_id);
    prompt->extra_data = std::move(request->extra_data);
    // For nodes that call ComfyUI's own services, of which there are none here.
    prompt->extra_data.erase("auth_token_comfy_org");
    prompt->extra_data.erase("api_key_comfy_org");
    if (!usage_source.empty()) {
        prompt->extra_data["comfy_usage_source"] = usage_source;
    }
    prompt->extra_data["create_time"] = to_unix_ms(prompt->created);
    prompt->bytes = text.size() + 1'024;
    prompt->shown_whole = !core.options.behind_gateway;  // which has it, and may ask often
    return Checked{std::move(prompt), std::move(verdict.node_errors)};
}

Decision decide_safely(Core& core, const std::string& text, const std::string& usage_source) {
    try {
        return decide(core, text, usage_source);
    } catch (const std::exception& exception) {
        log::error("a prompt could not be checked", {{"reason", exception.what()}});
        return refuse(workflow::make_prompt_error(
            "internal", "The prompt could not be checked", exception.what()
        ));
    }
}

class UntilAnswered final : public server::Hold {
public:
    UntilAnswered(Core& core, PromptPtr prompt) : core_(core), prompt_(std::move(prompt)) {}
    ~UntilAnswered() override {
        core_.hub.hesitate(prompt_->client_id);
        if (core_.queue.announce(prompt_->sequence)) {
            core_.tell_status();
            core_.wake.notify();
        }
    }

private:
    Core& core_;
    PromptPtr prompt_;
};

}  // namespace

Task<Result<tl::expected<server::AcceptedPrompt, server::PromptRefusal>>> EngineBackend::submit(
    server::PromptPost post
) {
    using Submitted = tl::expected<server::AcceptedPrompt, server::PromptRefusal>;
    auto decision = co_await core_.pool.run([&core = core_, &post] {
        return decide_safely(core, post.body, post.usage_source);
    });
    if (!decision) {
        co_return Submitted(tl::unexpected(std::move(decision.error())));
    }
    decision->prompt->sequence = core_.next_sequence++;
    const PromptPtr prompt = decision->prompt;
    if (auto refused =
            prompt->lead ? core_.fence.refuse(*prompt->lead, prompt->id) : std::nullopt) {
        co_return Submitted(refuse(std::move(*refused), {}, 409));
    }
    if (!core_.queue.add(prompt)) {
        co_return Submitted(refuse(
            workflow::make_prompt_error(
                "queue_full", "The queue is full", "wait until prompts have run, or clear the queue"
            ),
            {},
            503
        ));
    }
    if (prompt->lead) {
        core_.fence.admit(prompt->id);
    }
    core_.logs.add("got prompt");
    co_return Submitted(server::AcceptedPrompt{
        prompt->id,
        prompt->number,
        std::move(decision->node_errors),
        std::make_unique<UntilAnswered>(core_, prompt)
    });
}

server::SocketRules EngineBackend::socket_rules() const {
    server::SocketRules rules;
    rules.mailbox.frames_max = kFramesMax;
    rules.mailbox.text_bytes_max = core_.options.socket_bytes_max;
    rules.mailbox.picture_bytes_max.reset();  // some nodes give their results so
    rules.mailbox.lagging = kFramesMax;
    return rules;
}

Result<std::unique_ptr<server::Hold>> EngineBackend::reserve_socket() {
    return core_.hub.reserve();
}

Task<server::Seat> EngineBackend::attach(
    std::string client_id, std::shared_ptr<server::Mailbox> mailbox
) {
    server::Seat seat;
    seat.unfinished = core_.remaining();
    if (core_.running && core_.running->prompt->client_id == client_id) {
        seat.current_node = core_.running->story->current_node();
    }
    seat.seat = core_.hub.attach(std::move(client_id), std::move(mailbox));
    co_return seat;
}

Task<std::size_t> EngineBackend::unfinished() {
    co_return core_.remaining();
}

Task<Result<server::QueueView>> EngineBackend::queue() {
    std::vector<PromptPtr> pending(core_.queue.pending().begin(), core_.queue.pending().end());
    const PromptPtr running = core_.running ? core_.running->prompt : nullptr;
    auto queue = co_await core_.pool.run([&pending, &running] {
        server::QueueView view;
        for (const PromptPtr& prompt : pending) {
            view.pending.push_back(prompt->view());
        }
        if (running) {
            view.running.push_back(running->view());
        }
        return view;
    });
    co_return queue;
}

Task<Result<>> EngineBackend::clear_queue() {
    if (core_.queue.clear() > 0) {
        core_.tell_status();
    }
    co_return Result<>();
}

Task<Result<>> EngineBackend::dequeue(std::vector<std::string> ids) {
    std::size_t removed = 0;
    for (const std::string& id : ids) {
        removed += core_.queue.erase(id);
    }
    if (removed > 0) {
        core_.tell_status();
    }
    co_return Result<>();
}

Task<Result<>> EngineBackend::interrupt(std::string id) {
    core_.interrupt(id);
    co_return Result<>();
}

Task<Result<bool>> EngineBackend::cancel(std::string id) {
    co_return core_.cancel(id);
}

// There are no models here.
Task<> EngineBackend::free_memory(bool /*models*/, bool results) {
    if (results) {
        core_.forget_results = true;
        core_.wake.notify();
    }
    co_return;
}

}  // namespace comfyd::standalone
