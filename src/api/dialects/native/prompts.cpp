// POST /prompt.
#include <utility>

#include <boost/asio/post.hpp>

#include "api/dialects/native/names.hpp"
#include "api/dialects/native/prepare.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/profile.hpp"
#include "api/reuse.hpp"
#include "api/submission.hpp"
#include "base/log.hpp"
#include "comfy/jobs_list.hpp"

namespace comfyd::api::native {
namespace {

// Priorities that stand for ComfyUI's numbers. Smaller numbers run first there; here a prompt can
// only be put before or behind the ordinary ones.
constexpr int kFirst = 10;
constexpr int kFront = 9;
constexpr int kBehind = 4;

struct Order {
    json::value number;
    int priority = jobs::kPriorityDefault;
};

Order order_of(const workflow::PromptRequest& request, std::int64_t counted) {
    if (!request.number) {
        return request.front ? Order{-counted, kFront} : Order{counted, jobs::kPriorityDefault};
    }
    const double number = *request.number;
    const auto count = static_cast<double>(counted);
    if (number < 0) {
        return {number, number < -count ? kFirst : kFront};
    }
    return {number, number > count ? kBehind : jobs::kPriorityDefault};
}

// Credentials of API nodes are for the worker alone.
void take_secrets(json::object& extra_data, json::object& secrets) {
    for (const char* key : {"auth_token_comfy_org", "api_key_comfy_org"}) {
        if (const auto found = extra_data.find(key); found != extra_data.end()) {
            secrets[key] = std::move(found->value());
            extra_data.erase(found);
        }
    }
}

// A null here would make a worker's own list of jobs fail for as long as it knows the prompt.
void drop_nulls(json::object& extra_data) {
    const auto info = extra_data.find("extra_pnginfo");
    if (info == extra_data.end()) {
        return;
    }
    if (!info->value().is_object()) {
        extra_data.erase(info);
        return;
    }
    json::object& inner = info->value().get_object();
    if (const auto graph = inner.find("workflow");
        graph != inner.end() && !graph->value().is_object()) {
        inner.erase(graph);
    }
}

Task<> refuse_prompt(Call& call, json::object error, json::object node_errors) {
    json::object body;
    body["error"] = std::move(error);
    body["node_errors"] = std::move(node_errors);
    return send(call, json_reply(400, body));
}

jobs::Spec make_spec(
    const Call& call,
    const Services& services,
    workflow::PromptRequest& request,
    Judgement& judgement,
    const Order& order
) {
    jobs::Spec spec;
    spec.id = JobId::make(services.clock.now());
    spec.tenant = call.caller.tenant;
    spec.dialect = kDialect;
    spec.priority = order.priority;
    spec.node_count = static_cast<int>(request.prompt.size());
    spec.requirement = std::move(judgement.requirement);
    spec.extra_data = std::move(request.extra_data);
    spec.extra_data.erase("client_id");
    take_secrets(spec.extra_data, spec.secret_extra_data);
    drop_nulls(spec.extra_data);
    if (const auto source = call.request.headers.get("Comfy-Usage-Source"); !source.empty()) {
        spec.extra_data["comfy_usage_source"] = std::string(source);
    }
    spec.workflow_id = comfy::workflow_id_of(spec.extra_data);
    const auto& outputs = judgement.verdict.outputs_to_execute;
    json::object& own = spec.dialect_data;
    own["number"] = order.number;
    own["outputs"] = json::array(outputs.begin(), outputs.end());
    if (!request.client_id.empty()) {
        own["client_id"] = request.client_id;
    }
    if (request.prompt_id) {
        own["prompt_id"] = *request.prompt_id;
    }
    if (request.targets || !judgement.verdict.node_errors.empty()) {
        spec.targets = outputs;
    }
    spec.profile = make_profile(request.prompt, services.catalogue(), services.options.plan, spec);
    return spec;
}

// `options` is extra_data["comfyd"]; all references outlive the call.
Task<Result<>> take_reuse(
    const Services& services,
    const json::object& options,
    const workflow::PromptRequest& request,
    jobs::Spec& spec
) {
    if (auto decoded = decode_reuse(options, spec); !decoded) {
        co_return decoded;
    }
    if (wants_reuse(services.options, spec)) {
        const auto catalogue = services.catalogue();
        auto found = co_await find_reuse_key(services, *catalogue, request.prompt, spec);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        spec.reuse_key = std::move(found->key);
    }
    co_return Result<>();
}

// Nothing is told of the prompt while this lives.
class Silence {
public:
    Silence(Context& context, const JobId& job) : context_(context), job_(job) {
        boost::asio::post(context_.services.jobs.core(), [board = context_.board, job] {
            board->hold(job);
        });
    }
    ~Silence() {
        boost::asio::post(context_.services.jobs.core(), [board = context_.board, job = job_] {
            board->release(job);
        });
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;

private:
    Context& context_;
    JobId job_;
};

// Submits, and lets nothing be told of the prompt before its answer is written.
Task<> submit_and_answer(
    Call& call, Context& context, jobs::Spec spec, std::string prompt_id, json::object node_errors
) {
    const Services& services = context.services;
    const JobId id = *spec.id;
    const json::value number = spec.dialect_data.at("number");
    const Silence until_answered(context, id);
    auto submitted = co_await services.jobs.submit(std::move(spec));
    if (submitted) {
        services.metrics.job_submitted(std::string(kDialect));
        if (prompt_id != id.to_string()) {
            services.own_ids->add(call.caller.tenant, prompt_id, id);
        }
        json::object body;
        body["prompt_id"] = std::move(prompt_id);
        body["number"] = number;
        body["node_errors"] = std::move(node_errors);
        co_await send(call, json_reply(200, body));
    } else {
        co_await send(call, encode_native_error(submitted.error()));
    }
}

}  // namespace

Task<> post_prompt(Call& call, Context& context) {
    const Services& services = context.services;
    auto read = co_await read_body(call, services);
    if (!read) {
        co_await send(call, encode_native_error(read.error()));
        co_return;
    }
    if (!*read) {
        co_await refuse_prompt(call, std::move(read->error()), {});
        co_return;
    }
    auto request = read_request(std::move(**read), services);
    if (!request) {
        co_await refuse_prompt(call, std::move(request.error()), {});
        co_return;
    }
    // Also a prompt that is refused uses up its number.
    const Order order = order_of(*request, context.next_number(call.caller.tenant));
    auto prepared = co_await prepare(call, context, *request);
    if (!prepared) {
        co_await send(call, encode_native_error(prepared.error()));
        co_return;
    }
    Judgement& judgement = *prepared;
    if (!judgement.verdict.accepted) {
        co_await refuse_prompt(
            call, std::move(judgement.verdict.error), std::move(judgement.verdict.node_errors)
        );
        co_return;
    }
    for (const std::string& repair : judgement.verdict.repairs) {
        log::info("a prompt was made safe", {{"tenant", call.caller.tenant}, {"what", repair}});
    }
    jobs::Spec spec = make_spec(call, services, *request, judgement, order);
    const json::object& own = own_options(spec.extra_data);
    if (auto turn = decode_turn(call, own, spec); !turn) {
        co_await send(call, encode_native_error(turn.error()));
        co_return;
    }
    auto reuse = co_await take_reuse(services, own, *request, spec);
    if (!reuse) {
        co_await send(call, encode_native_error(reuse.error()));
        co_return;
    }
    spec.workflow = json::serialize(request->prompt);
    std::string prompt_id = request->prompt_id.value_or(spec.id->to_string());
    co_await submit_and_answer(
        call,
        context,
        std::move(spec),
        std::move(prompt_id),
        std::move(judgement.verdict.node_errors)
    );
}

}  // namespace comfyd::api::native
