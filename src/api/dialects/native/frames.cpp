#include "api/dialects/native/frames.hpp"

#include <utility>

#include "api/dialects/native/names.hpp"
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

}  // namespace

FramePtr to_frame(jobs::WorkerMessage said, const JobId& job, const std::string& prompt_id) {
    translate(said, job, prompt_id);
    if (said.type == "preview") {
        return make_frame(comfy::Preview{
            std::move(said.bytes),
            std::move(said.content_type),
            comfy::text_of(said.data, "prompt_id"),
            comfy::text_of(said.data, "node_id"),
            comfy::text_of(said.data, "display_node_id"),
            comfy::text_of(said.data, "parent_node_id"),
            comfy::text_of(said.data, "real_node_id"),
        });
    }
    if (said.type == "text") {
        return make_frame(
            comfy::NodeText{comfy::text_of(said.data, "node_id"), std::move(said.bytes)}
        );
    }
    return make_frame(said.type, std::move(said.data));
}

}  // namespace comfyd::api::native
