// POST /prompt.
#include <utility>

#include <boost/asio/post.hpp>

#include "admission/admit.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/refusal.hpp"
#include "api/dialects/native/request.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/submission.hpp"
#include "comfy/members.hpp"

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

Task<> refuse_prompt(Call& call, PromptRefusal refusal) {
    json::object body;
    body["error"] = std::move(refusal.error);
    body["node_errors"] = std::move(refusal.node_errors);
    return send(call, json_reply(400, body));
}

// What is asked for beyond ComfyUI's own words. `options` is extra_data["comfyd"].
Result<> decode_options(
    const Call& call, const Services& services, const json::object& options, jobs::Spec& spec
) {
    auto pool = decode_pool(call, services, options);
    if (!pool) {
        return fail(std::move(pool.error()));
    }
    spec.requirement = workflow::with_pool(spec.requirement, *pool);
    if (auto turn = decode_turn(call, options, spec); !turn) {
        return turn;
    }
    return decode_reuse(options, spec);
}

// Nothing is told of the prompt while this lives.
class Silence {
public:
    Silence(Context& context, const std::string& tenant, const JobId& job)
        : context_(context), job_(job) {
        context_.board->expect(tenant, job);
    }
    ~Silence() {
        boost::asio::post(
            context_.board->executor(),
            [board = context_.board, job = job_, is_accepted = is_accepted_] {
                board->release(job, is_accepted);
            }
        );
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;

    void set_accepted() { is_accepted_ = true; }

private:
    Context& context_;
    JobId job_;
    bool is_accepted_ = false;
};

// Submits, and lets nothing be told of the prompt before its answer is written.
Task<> submit_and_answer(Call& call, Context& context, admission::Admitted admitted) {
    const Services& services = context.services;
    jobs::Spec& spec = admitted.spec;
    std::string prompt_id =
        comfy::maybe_text(spec.dialect_data, "prompt_id").value_or(spec.id->to_string());
    const auto& outputs = admitted.outputs;
    spec.dialect_data["outputs"] = json::array(outputs.begin(), outputs.end());
    const JobId id = *spec.id;
    const json::value number = spec.dialect_data.at("number");
    Silence until_answered(context, call.caller.tenant, id);
    auto submitted = co_await submit_admitted(call, services, std::move(spec));
    if (submitted) {
        if (!submitted->replayed) {
            until_answered.set_accepted();
        }
        if (prompt_id != id.to_string()) {
            services.own_ids->add(call.caller.tenant, prompt_id, id);
        }
        json::object body;
        body["prompt_id"] = std::move(prompt_id);
        body["number"] = number;
        body["node_errors"] = std::move(admitted.node_errors);
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
        co_await refuse_prompt(call, {std::move(read->error()), {}});
        co_return;
    }
    const auto catalogue = services.catalogue();
    auto request = read_request(std::move(**read), *catalogue, services.clock.now());
    if (!request) {
        co_await refuse_prompt(call, {std::move(request.error()), {}});
        co_return;
    }
    // Also a prompt that is refused uses up its number.
    const Order order = order_of(*request, context.next_number(call.caller.tenant));
    auto submission = make_submission(call, std::move(*request), catalogue);
    jobs::Spec& spec = submission.spec;
    spec.id = JobId::make(services.clock.now());
    spec.priority = order.priority;
    spec.dialect_data["number"] = order.number;
    auto options = decode_options(call, services, own_options(spec.extra_data), spec);
    if (!options) {
        co_await send(call, encode_native_error(options.error()));
        co_return;
    }
    auto admitted = co_await admission::admit(services, std::move(submission));
    if (admitted) {
        co_await submit_and_answer(call, context, std::move(*admitted));
    } else if (admitted.error().why == admission::Refusal::Why::failed) {
        co_await send(call, encode_native_error(admitted.error().error));
    } else {
        co_await refuse_prompt(call, encode_refusal(std::move(admitted.error())));
    }
}

}  // namespace comfyd::api::native
