#include "api/dialects/native/frames.hpp"

#include <utility>

#include "api/dialects/native/names.hpp"
#include "api/dialects/native/story.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

void translate(jobs::WorkerMessage& said, const JobId& job, const std::string& prompt_id) {
    // Messages of custom nodes are left as they are, but for the id.
    if (said.data.contains("prompt_id")) {
        said.data["prompt_id"] = prompt_id;
    }
    if (said.type == "progress_state") {
        if (json::value* nodes = said.data.if_contains("nodes"); nodes && nodes->is_object()) {
            for (auto& [id, node] : nodes->get_object()) {
                if (json::object* state = node.if_object()) {
                    (*state)["prompt_id"] = prompt_id;
                }
            }
        }
    } else if (said.type == "executed") {
        if (json::value* ui = said.data.if_contains("output"); ui && ui->is_object()) {
            rename_files(ui->get_object(), job);
        }
    }
}

// About the size of the text.
std::size_t weight(const json::value& value);
std::size_t weight(const json::object& object) {
    std::size_t sum = 0;
    for (const auto& [key, element] : object) {
        sum += key.size() + weight(element);
    }
    return sum;
}

std::size_t weight(const json::value& value) {
    constexpr std::size_t kSmall = 8;
    std::size_t sum = kSmall;
    if (const auto* text = value.if_string()) {
        sum += text->size();
    } else if (const auto* list = value.if_array()) {
        for (const json::value& element : *list) {
            sum += weight(element);
        }
    } else if (const auto* object = value.if_object()) {
        sum += weight(*object);
    }
    return sum;
}

}  // namespace

FramePtr make_frame(std::string_view type, json::object data) {
    auto frame = std::make_shared<Frame>();
    frame->message.emplace("type", json::value(boost::json::string_view(type.data(), type.size())));
    frame->text_bytes = weight(data);
    frame->message.emplace("data", std::move(data));
    return frame;
}

FramePtr make_status(std::size_t unfinished, bool for_crowd) {
    auto frame = std::make_shared<Frame>();
    json::object data = status_data(unfinished);
    frame->text_bytes = weight(data);
    frame->is_status = true;
    frame->for_crowd = for_crowd;
    frame->message = {{"type", "status"}, {"data", std::move(data)}};
    return frame;
}

FramePtr to_frame(jobs::WorkerMessage said, const JobId& job, const std::string& prompt_id) {
    translate(said, job, prompt_id);
    if (said.type == "preview") {
        auto frame = std::make_shared<Frame>();
        frame->preview = comfy::Preview{
            std::move(said.bytes),
            std::move(said.content_type),
            comfy::text_of(said.data, "prompt_id"),
            comfy::text_of(said.data, "node_id"),
            comfy::text_of(said.data, "display_node_id"),
            comfy::text_of(said.data, "parent_node_id"),
            comfy::text_of(said.data, "real_node_id"),
        };
        return frame;
    }
    if (said.type == "text") {
        auto frame = std::make_shared<Frame>();
        frame->text_bytes = said.bytes.size();
        frame->text = comfy::NodeText{comfy::text_of(said.data, "node_id"), std::move(said.bytes)};
        return frame;
    }
    return make_frame(said.type, std::move(said.data));
}

}  // namespace comfyd::api::native
