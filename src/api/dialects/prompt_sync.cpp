#include "api/dialects/prompt_sync.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/dialects/native/context.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/prepare.hpp"
#include "api/job_wait.hpp"
#include "api/profile.hpp"
#include "api/sse.hpp"
#include "comfy/members.hpp"

namespace comfyd::api {
namespace prompt_sync {
namespace {

using std::chrono::steady_clock;

constexpr int kFrontPriority = 9;

template <class T>
using Outcome = tl::expected<T, Trouble>;

tl::unexpected<Trouble> trouble(Error error, json::object node_errors = {}) {
    Trouble made;
    made.error = std::move(error);
    made.node_errors = std::move(node_errors);
    return tl::unexpected<Trouble>(std::move(made));
}

// An error object as ComfyUI answers it.
Error from_native(Code code, const json::object& error) {
    std::string message = comfy::text_of(error, "message");
    if (const std::string details = comfy::text_of(error, "details"); !details.empty()) {
        message += ": " + details;
    }
    return Error(code, std::move(message));
}

net::Response respond(const Trouble& trouble, const Services& services) {
    net::Response response = json_response(
        http_status(trouble.error.code), encode_trouble(trouble, services.clock.now())
    );
    execution::add_retry_after(trouble.error, response);
    return response;
}

struct Wish {
    Options options;
    workflow::PromptRequest request;
    json::object common;  // for decode_common()
};

Task<Outcome<Wish>> read_wish(Call& call, const Services& services) {
    auto read = co_await native::read_body(call, services);
    if (!read) {
        co_return trouble(std::move(read.error()));
    }
    auto& body = *read;
    if (!body) {
        co_return trouble(from_native(Code::malformed_json, body.error()));
    }
    const json::object* members = body->if_object();
    if (members == nullptr) {
        co_return trouble(Error(Code::invalid_argument, "the body must be a JSON object"));
    }
    Wish wish;
    auto options = decode_options(*members, call.query_value("timeout"));
    if (!options) {
        co_return trouble(std::move(options.error()));
    }
    wish.options = *options;
    auto common = execution::common_members(*members);
    if (!common) {
        co_return trouble(std::move(common.error()));
    }
    wish.common = std::move(*common);
    wish.common.erase("timeout");
    auto request = native::read_request(std::move(*body), services);
    if (!request) {
        co_return trouble(from_native(Code::invalid_argument, request.error()));
    }
    if (request->prompt_id) {
        co_return trouble(Error(
            Code::invalid_argument,
            "'prompt_id' cannot be chosen here: leave it out, or use /prompt"
        ));
    }
    wish.request = std::move(*request);
    if (const json::value* pool = json::find(wish.common, "pool")) {
        json::value& own = wish.request.extra_data["comfyd"];
        if (!own.is_object()) {
            own.emplace_object();
        }
        own.get_object()["pool"] = *pool;
    }
    co_return wish;
}

Task<Result<>> check_workers(const Services& services) {
    const auto workers = co_await services.jobs.workers();
    const bool any = std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
        using enum jobs::WorkerStatus;
        return worker.status == starting || worker.status == idle || worker.status == running;
    });
    if (!any) {
        co_return fail(
            Code::worker_unavailable, "no worker is up: nothing was queued; try again later"
        );
    }
    co_return Result<>();
}

jobs::Spec make_spec(
    const Call& call, workflow::PromptRequest& request, native::Judgement& judgement
) {
    jobs::Spec spec;
    spec.tenant = call.caller.tenant;
    spec.dialect = native::kDialect;
    spec.priority = request.front ? kFrontPriority : jobs::kPriorityDefault;
    spec.node_count = static_cast<int>(request.prompt.size());
    spec.requirement = std::move(judgement.requirement);
    spec.extra_data = std::move(request.extra_data);
    spec.extra_data.erase("client_id");
    for (const char* key : {"auth_token_comfy_org", "api_key_comfy_org"}) {
        if (const auto found = spec.extra_data.find(key); found != spec.extra_data.end()) {
            spec.secret_extra_data[key] = std::move(found->value());
            spec.extra_data.erase(found);
        }
    }
    const auto& outputs = judgement.verdict.outputs_to_execute;
    spec.dialect_data["outputs"] = json::array(outputs.begin(), outputs.end());
    if (!request.client_id.empty()) {
        spec.dialect_data["client_id"] = request.client_id;
    }
    if (request.targets || !judgement.verdict.node_errors.empty()) {
        spec.targets = outputs;
    }
    return spec;
}

struct Accepted {
    JobId job;
    json::object node_errors;  // of outputs that are not run
};

Task<Outcome<Accepted>> accept(Call& call, native::Context& context, Wish& wish) {
    const Services& services = context.services;
    workflow::PromptRequest& request = wish.request;
    auto prepared = co_await native::prepare(call, context, request);
    if (!prepared) {
        co_return trouble(std::move(prepared.error()));
    }
    native::Judgement& judgement = *prepared;
    if (!judgement.verdict.accepted) {
        co_return trouble(
            from_native(Code::invalid_workflow, judgement.verdict.error),
            std::move(judgement.verdict.node_errors)
        );
    }
    jobs::Spec spec = make_spec(call, request, judgement);
    spec.profile = make_profile(request.prompt, services.catalogue(), services.options.plan, spec);
    wish.common["pool"] = std::string(workflow::split_pool(spec.requirement).pool);
    auto common = decode_common(call, services, wish.common, spec);
    if (!common) {
        co_return trouble(std::move(common.error()));
    }
    spec.idempotency_key.clear();  // the answer is the result, which a repetition would not get
    spec.timeout = std::max(spec.timeout, wish.options.timeout);
    spec.dialect_data["number"] = context.next_number(call.caller.tenant);
    spec.workflow = json::serialize(request.prompt);
    auto submitted = co_await services.jobs.submit(std::move(spec));
    if (!submitted) {
        co_return trouble(std::move(submitted.error()));
    }
    services.metrics.job_submitted(std::string(native::kDialect));
    co_return Accepted{submitted->view.job.id, std::move(judgement.verdict.node_errors)};
}

Trouble out_of_time(const JobId& id, const Options& options) {
    Trouble made;
    made.job = id;
    made.error = Error(
        Code::request_timeout,
        "no result within " + std::to_string(options.timeout.count()) + " ms; " +
            (options.cancel_on_timeout
                 ? "the prompt was cancelled"
                 : "the prompt goes on, /history/" + id.to_string() + " will have its result")
    );
    return made;
}

// The job at its end.
Task<Outcome<jobs::Job>> finish(
    const Services& services, std::string tenant, JobId id, Options options
) {
    const auto give_up = steady_clock::now() + options.timeout;
    auto view = co_await wait_for_end(services, tenant, id, options.timeout);
    if (view && !jobs::is_terminal(view->job.state)) {
        if (steady_clock::now() < give_up) {
            Trouble stopping;
            stopping.job = id;
            stopping.error =
                Error(Code::shutting_down, "the server is stopping; the prompt goes on after that");
            co_return tl::unexpected<Trouble>(std::move(stopping));
        }
        if (options.cancel_on_timeout) {
            view = co_await services.jobs.cancel(std::move(tenant), id);
        }
    }
    if (!view) {
        Trouble failed;
        failed.job = id;
        failed.error = std::move(view.error());
        co_return tl::unexpected<Trouble>(std::move(failed));
    }
    // One that ended at the last moment has its result.
    const bool too_late =
        !jobs::is_terminal(view->job.state) ||
        (view->job.state == jobs::State::cancelled && steady_clock::now() >= give_up);
    if (too_late) {
        co_return tl::unexpected<Trouble>(out_of_time(id, options));
    }
    if (view->job.state != jobs::State::completed) {
        co_return tl::unexpected<Trouble>(trouble_of(view->job));
    }
    co_return std::move(view->job);
}

// node id -> [{"filename","subfolder","type","data"}]
Task<Result<json::object>> read_images(const Services& services, jobs::Job job) {
    std::uint64_t total = 0;
    for (const jobs::Output& output : job.outputs) {
        total += output.type == "image" ? output.size_bytes : 0;
    }
    if (total > kInlineBytesMax) {
        co_return fail(
            Code::payload_too_large,
            "the pictures have " + std::to_string(total) + " bytes, but at most " +
                std::to_string(kInlineBytesMax) +
                " come as base64; fetch them by the links in 'outputs'"
        );
    }
    json::object images;
    for (const jobs::Output& output : job.outputs) {
        if (output.type != "image") {
            continue;
        }
        auto text = co_await read_base64(services, job.tenant, output, kInlineBytesMax);
        if (!text) {
            co_return fail(std::move(text.error()));
        }
        json::value& list = images[output.node_id];
        if (!list.is_array()) {
            list = json::array();
        }
        json::object image;
        image["filename"] = output.name;
        image["subfolder"] = native::outer_subfolder(job.id, output.subfolder);
        image["type"] = output.folder;
        image["data"] = std::move(*text);
        list.get_array().push_back(std::move(image));
    }
    co_return images;
}

Task<Outcome<json::object>> run(Call& call, native::Context& context) {
    const Services& services = context.services;
    auto wish = co_await read_wish(call, services);
    if (!wish) {
        co_return tl::unexpected<Trouble>(std::move(wish.error()));
    }
    auto workers = co_await check_workers(services);
    if (!workers) {
        co_return trouble(std::move(workers.error()));
    }
    auto slot = StreamSlot::open(services);
    if (!slot) {
        co_return trouble(std::move(slot.error()));
    }
    auto accepted = co_await accept(call, context, *wish);
    if (!accepted) {
        co_return tl::unexpected<Trouble>(std::move(accepted.error()));
    }
    auto job = co_await finish(services, call.caller.tenant, accepted->job, wish->options);
    if (!job) {
        co_return tl::unexpected<Trouble>(std::move(job.error()));
    }
    const auto links = execution::links_of(call, services);
    json::object body = encode_result(*job, accepted->node_errors, links);
    if (wish->options.return_base64) {
        auto images = co_await read_images(services, *job);
        if (!images) {
            Trouble without;
            without.job = job->id;
            without.error = std::move(images.error());
            without.outputs = encode_outputs(*job, links);
            co_return tl::unexpected<Trouble>(std::move(without));
        }
        body["images"] = std::move(*images);
    }
    co_return body;
}

Task<> post(Call& call, std::shared_ptr<native::Context> context) {
    auto body = co_await run(call, *context);
    co_await send(
        call, body ? json_response(200, *body) : respond(body.error(), context->services)
    );
}

}  // namespace
}  // namespace prompt_sync

void add_prompt_sync(Router& router, std::shared_ptr<native::Context> context) {
    Route route;
    route.method = net::Method::post;
    route.pattern = "/prompt_sync";
    route.handler = [context](Call& call) { return prompt_sync::post(call, context); };
    route.encode_error = [context](const Error& error) {
        prompt_sync::Trouble trouble;
        trouble.error = error;
        return prompt_sync::respond(trouble, context->services);
    };
    route.operation = prompt_sync::operation();
    router.add(std::move(route));
    router.add_schemas(prompt_sync::schemas());
}

}  // namespace comfyd::api
