#include "api/dialects/prompt_sync/prompt_sync.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "admission/admit.hpp"
#include "api/dialects/native/context.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/refusal.hpp"
#include "api/dialects/native/request.hpp"
#include "api/job_wait.hpp"
#include "api/sse.hpp"
#include "api/submission.hpp"
#include "comfy/members.hpp"

namespace comfyd::api {
namespace prompt_sync {
namespace {

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
    bool front = false;
    json::object common;  // for decode_common()
    Submission submission;
};

// What a client may say of its turn among ComfyUI's own words too, where the body does not.
json::object common_of(json::object common, const json::object& own) {
    const auto take = [&](std::string_view name) {
        const json::value* said = json::find(own, name);
        if (said != nullptr && json::find(common, name) == nullptr) {
            common[name] = *said;
        }
    };
    std::ranges::for_each(
        std::to_array<std::string_view>({"fairness_key", "class", "reuse"}), take
    );
    std::ranges::for_each(kMachineMembers, take);
    return common;
}

Task<Outcome<Wish>> read_wish(Call& call, const Services& services) {
    auto text = co_await call.exchange.read_body(native::prompt_bytes_max(call, services));
    if (!text) {
        co_return trouble(std::move(text.error()));
    }
    auto body = co_await native::decode_body(call, services, std::move(*text));
    if (!body) {
        co_return trouble(from_native(Code::malformed_json, body.error()));
    }
    const json::object* members = body->if_object();
    if (members == nullptr) {
        co_return trouble(Error(Code::invalid_argument, "the body must be a JSON object"));
    }
    auto options = decode_options(*members, call.query_value("timeout"));
    if (!options) {
        co_return trouble(std::move(options.error()));
    }
    auto common = execution::common_members(*members);
    if (!common) {
        co_return trouble(std::move(common.error()));
    }
    common->erase("timeout");
    const auto catalogue = services.catalogue();
    auto request = native::read_request(std::move(*body), *catalogue, services.clock.now());
    if (!request) {
        co_return trouble(from_native(Code::invalid_argument, request.error()));
    }
    if (request->prompt_id) {
        co_return trouble(Error(
            Code::invalid_argument,
            "'prompt_id' cannot be chosen here: leave it out, or use /prompt"
        ));
    }
    const bool front = request->front;
    co_return Wish{
        *options,
        front,
        common_of(std::move(*common), native::own_options(request->extra_data)),
        native::make_submission(call, std::move(*request), catalogue)
    };
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

struct Accepted {
    JobId job;
    json::object node_errors;  // of outputs that are not run
};

Task<Outcome<Accepted>> accept(Call& call, native::Context& context, Wish& wish) {
    const Services& services = context.services;
    jobs::Spec& wanted = wish.submission.spec;
    wanted.priority = wish.front ? kFrontPriority : jobs::kPriorityDefault;
    auto common = decode_common(call, services, wish.common, wanted);
    if (!common) {
        co_return trouble(std::move(common.error()));
    }
    wanted.idempotency_key.clear();  // the answer is the result, which a repetition would not get
    wanted.timeout = std::max(wanted.timeout, wish.options.timeout);
    auto admitted = co_await admission::admit(services, std::move(wish.submission));
    if (!admitted && admitted.error().why == admission::Refusal::Why::failed) {
        co_return trouble(std::move(admitted.error().error));
    }
    if (!admitted) {
        auto refused = native::encode_refusal(std::move(admitted.error()));
        co_return trouble(
            from_native(Code::invalid_workflow, refused.error), std::move(refused.node_errors)
        );
    }
    jobs::Spec& spec = admitted->spec;
    const auto& outputs = admitted->outputs;
    spec.dialect_data["outputs"] = json::array(outputs.begin(), outputs.end());
    spec.dialect_data["number"] = context.next_number(call.caller.tenant);
    auto submitted = co_await submit_admitted(call, services, std::move(spec));
    if (!submitted) {
        co_return trouble(std::move(submitted.error()));
    }
    co_return Accepted{submitted->view.job.id, std::move(admitted->node_errors)};
}

Trouble out_of_time(const JobId& id, const Options& options) {
    Trouble made;
    made.prompt_id = id.to_string();
    made.error = comfy::prompt_sync::out_of_time(made.prompt_id, options);
    return made;
}

// The job at its end. A client that leaves waits no longer, as one whose time is over.
Task<Outcome<jobs::Job>> finish(
    Call& call, const Services& services, JobId id, Options options, execution::Links links
) {
    const std::string tenant = call.caller.tenant;
    const Deadline give_up = Deadline::in(options.timeout);
    auto view = co_await wait_for_end(services, tenant, id, give_up, call.exchange);
    bool is_alone = false;
    if (view && !jobs::is_terminal(view->job.state)) {
        is_alone = co_await has_left(call.exchange);
        if (!is_alone && !give_up.has_passed()) {
            Trouble stopping;
            stopping.prompt_id = id.to_string();
            stopping.error =
                Error(Code::shutting_down, "the server is stopping; the prompt goes on after that");
            co_return tl::unexpected<Trouble>(std::move(stopping));
        }
        if (options.cancel_on_timeout) {
            view = co_await services.jobs.cancel(tenant, id);
        }
    }
    if (!view) {
        Trouble failed;
        failed.prompt_id = id.to_string();
        failed.error = std::move(view.error());
        co_return tl::unexpected<Trouble>(std::move(failed));
    }
    // One that ended at the last moment has its result.
    const bool is_over = is_alone || give_up.has_passed();
    const bool too_late = !jobs::is_terminal(view->job.state) ||
                          (view->job.state == jobs::State::cancelled && is_over);
    if (too_late) {
        co_return tl::unexpected<Trouble>(out_of_time(id, options));
    }
    if (view->job.state != jobs::State::completed) {
        Trouble failed = trouble_of(view->job);
        failed.outputs = encode_outputs(view->job, links);  // that were finished before
        co_return tl::unexpected<Trouble>(std::move(failed));
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
        co_return fail(comfy::prompt_sync::too_large_inline(total));
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
        comfy::prompt_sync::add_picture(
            images,
            output.node_id,
            {output.name,
             native::outer_subfolder(job.id, output.subfolder),
             output.folder,
             std::move(*text)}
        );
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
    const auto links = execution::links_of(call, services);
    auto job = co_await finish(call, services, accepted->job, wish->options, links);
    if (!job) {
        co_return tl::unexpected<Trouble>(std::move(job.error()));
    }
    json::object body = encode_result(*job, accepted->node_errors, links);
    if (wish->options.return_base64) {
        auto images = co_await read_images(services, *job);
        if (!images) {
            Trouble without;
            without.prompt_id = job->id.to_string();
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
    route.access = Access::jobs;
    route.operation = prompt_sync::operation();
    router.add(std::move(route));
    router.add_schemas(prompt_sync::schemas());
}

}  // namespace comfyd::api
