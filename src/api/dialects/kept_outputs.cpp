#include "api/dialects/kept_outputs.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "api/job_wait.hpp"
#include "comfy/members.hpp"

namespace comfyd::api {
namespace {

Task<Result<std::optional<std::string>>> storage_of(
    const Services& services, const jobs::Job& job
) {
    std::optional<std::string> state;
    for (const jobs::Output& output : job.outputs) {
        if (output.store.empty()) {
            continue;
        }
        assets::Asset asset;
        asset.hash = output.hash;
        asset.store = output.store;
        auto pending = co_await services.assets.is_pending(std::move(asset));
        if (!pending) {
            co_return fail(std::move(pending.error()));
        }
        state = *pending ? "pending" : "stored";
        if (*pending) {
            break;
        }
    }
    co_return state;
}

bool comes_in_answers(const jobs::Job& job) {
    const json::object* keep = comfy::object_of(job.dialect_data, "keep");
    return keep != nullptr && jobs::Keeping::from_json(*keep).in_answers;
}

void warn(json::object& body, const std::string& message) {
    json::value& warnings = body["warnings"];
    if (!warnings.is_array()) {
        warnings.emplace_array();
    }
    warnings.get_array().push_back(json::object{
        {"code", "NOT_INLINE"}, {"message", message}, {"field", "output_config.storage.provider"}
    });
}

// The form that the client asked for, within what is left of the room.
Task<> add_data(
    const Services& services,
    const jobs::Job& job,
    const jobs::Output& output,
    std::uint64_t& left,
    json::object& shown,
    json::object& body
) {
    const jobs::Output& wanted = jobs::as_wanted(output);
    if (base64_size(wanted.size_bytes) > left) {
        warn(
            body,
            "'" + wanted.name + "' is too large for this answer, which may hold " +
                std::to_string(services.options.inline_bytes_max) +
                " bytes of outputs: get it by its 'url'"
        );
        co_return;
    }
    auto text = co_await read_base64(services, job.tenant, wanted, wanted.size_bytes);
    if (!text) {
        warn(body, "'" + wanted.name + "' cannot be read: " + text.error().message);
        co_return;
    }
    left -= std::min<std::uint64_t>(left, text->size());
    shown["data"] = std::move(*text);
    shown["data_encoding"] = "base64";
    shown["data_content_type"] = wanted.content_type;
}

}  // namespace

void add_keeping(json::object& body, const jobs::Output& output, std::optional<Time> now) {
    if (!output.store.empty()) {
        body["store"] = output.store;
    }
    if (!output.retention.empty()) {
        body["retention"] = output.retention;
    }
    if (output.expires_at) {
        body["expires_at"] = to_rfc3339(*output.expires_at);
        if (now) {
            body["expired"] = *output.expires_at <= *now;
        }
    }
}

bool has_passing_parts(const jobs::Job& job) {
    return comes_in_answers(job) ||
           std::ranges::any_of(job.outputs, [](const jobs::Output& output) {
               return !output.store.empty();
           });
}

Task<Result<>> complete_answer(
    const Services& services, jobs::Job job, json::object& body, json::value* outputs
) {
    auto storage = co_await storage_of(services, job);
    if (!storage) {
        co_return fail(std::move(storage.error()));
    }
    if (*storage) {
        body["storage"] = **storage;
    }
    json::array* shown = outputs == nullptr ? nullptr : outputs->if_array();
    if (shown == nullptr || !comes_in_answers(job)) {
        co_return Result<>();
    }
    std::uint64_t left = services.options.inline_bytes_max;
    for (std::size_t i = 0; i < std::min(shown->size(), job.outputs.size()); ++i) {
        if (json::object* one = (*shown)[i].if_object()) {
            co_await add_data(services, job, job.outputs[i], left, *one, body);
        }
    }
    co_return Result<>();
}

}  // namespace comfyd::api
