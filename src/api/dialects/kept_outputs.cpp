#include "api/dialects/kept_outputs.hpp"

#include <utility>

namespace comfyd::api {

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

Task<Result<std::optional<std::string>>> storage_of(const Services& services, jobs::Job job) {
    std::optional<std::string> state;
    for (jobs::Output& output : job.outputs) {
        if (output.store.empty()) {
            continue;
        }
        assets::Asset asset;
        asset.hash = std::move(output.hash);
        asset.store = std::move(output.store);
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

}  // namespace comfyd::api
