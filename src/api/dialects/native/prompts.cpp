// POST /prompt.
#include <utility>

#include <boost/asio/post.hpp>

#include "admission/admit.hpp"
#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/refusal.hpp"
#include "api/dialects/native/request.hpp"
#include "api/submission.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

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

// What is asked for beyond ComfyUI's own words. `options` is extra_data["comfyd"].
Result<> decode_options(
    const Call& call, const Services& services, const json::object& options, jobs::Spec& spec
) {
    auto machine = decode_machine(call, services, options);
    if (!machine) {
        return fail(std::move(machine.error()));
    }
    spec.requirement = spec.requirement.on(*machine);
    if (auto turn = decode_turn(call, options, spec); !turn) {
        return turn;
    }
    return decode_reuse(options, spec);
}

class UntilAnswered final : public server::Hold {
public:
    UntilAnswered(Context& context, const std::string& tenant, const JobId& job)
        : context_(context), job_(job) {
        context_.board->expect(tenant, job);
    }
    ~UntilAnswered() override {
        boost::asio::post(
            context_.board->executor(),
            [board = context_.board, job = job_, is_accepted = is_accepted_] {
                board->release(job, is_accepted);
            }
        );
    }

    void set_accepted() { is_accepted_ = true; }

private:
    Context& context_;
    JobId job_;
    bool is_accepted_ = false;
};

using Submitted = tl::expected<server::AcceptedPrompt, server::PromptRefusal>;

Submitted refuse(PromptRefusal refusal) {
    return tl::unexpected(std::move(refusal));
}

Task<Result<Submitted>> accept(const Call& call, Context& context, admission::Admitted admitted) {
    const Services& services = context.services;
    jobs::Spec& spec = admitted.spec;
    std::string prompt_id =
        comfy::maybe_text(spec.dialect_data, "prompt_id").value_or(spec.id->to_string());
    const auto& outputs = admitted.outputs;
    spec.dialect_data["outputs"] = json::array(outputs.begin(), outputs.end());
    const JobId id = *spec.id;
    json::value number = spec.dialect_data.at("number");
    auto silence = std::make_unique<UntilAnswered>(context, call.caller.tenant, id);
    auto submitted = co_await submit_admitted(call, services, std::move(spec));
    if (!submitted) {
        co_return fail(std::move(submitted.error()));
    }
    if (!submitted->replayed) {
        silence->set_accepted();
    }
    if (prompt_id != id.to_string()) {
        services.own_ids->add(call.caller.tenant, prompt_id, id);
    }
    co_return Submitted(server::AcceptedPrompt{
        std::move(prompt_id),
        std::move(number),
        std::move(admitted.node_errors),
        std::move(silence),
    });
}

}  // namespace

Task<Result<Submitted>> Gateway::submit(server::PromptPost post) {
    const Services& services = context_.services;
    auto body = co_await decode_body(call_, services, std::move(post.body));
    if (!body) {
        co_return refuse({std::move(body.error())});
    }
    const auto catalogue = services.catalogue();
    auto request = read_request(std::move(*body), *catalogue, services.clock.now());
    if (!request) {
        co_return refuse({std::move(request.error())});
    }
    // Also a prompt that is refused uses up its number.
    const Order order = order_of(*request, context_.next_number(tenant()));
    auto submission = make_submission(call_, std::move(*request), catalogue);
    jobs::Spec& spec = submission.spec;
    spec.id = JobId::make(services.clock.now());
    spec.priority = order.priority;
    spec.dialect_data["number"] = order.number;
    auto options = decode_options(call_, services, own_options(spec.extra_data), spec);
    if (!options) {
        co_return fail(std::move(options.error()));
    }
    auto admitted = co_await admission::admit(services, std::move(submission));
    if (admitted) {
        auto accepted = co_await accept(call_, context_, std::move(*admitted));
        co_return accepted;
    }
    if (admitted.error().why == admission::Refusal::Why::failed) {
        co_return fail(std::move(admitted.error().error));
    }
    co_return refuse(encode_refusal(std::move(admitted.error())));
}

}  // namespace comfyd::api::native
