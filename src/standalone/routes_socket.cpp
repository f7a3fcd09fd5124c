// GET /ws.
#include <utility>

#include "standalone/routes.hpp"

namespace comfyd::standalone {
namespace {

constexpr std::size_t kClientIdBytesMax = 256;

}  // namespace

Task<> serve_socket(Call& call, Core& core) {
    const std::string client_id(call.query_value("clientId").substr(0, kClientIdBytesMax));
    json::object features;
    features["type"] = "feature_flags";
    features["data"] = comfy::server_features(core.options.body_bytes_max);
    const auto greeting = [&core](const std::string& id) {
        comfy::Status status;
        status.queue_remaining = static_cast<std::int64_t>(core.remaining());
        status.sid = id;
        std::vector<std::string> messages{comfy::encode_text(status)};
        // A client that comes back in the middle of its run is told where it is.
        if (core.running && core.running->prompt->client_id == id &&
            !core.running->story->current_node().empty()) {
            json::object data;
            data["node"] = core.running->story->current_node();
            json::object message;
            message["type"] = "executing";
            message["data"] = std::move(data);
            messages.push_back(json::serialize_python(message));
        }
        return messages;
    };
    co_await core.hub.serve(call.exchange, client_id, greeting, json::serialize_python(features));
}

}  // namespace comfyd::standalone
