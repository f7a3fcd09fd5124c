#include "api/dialects/native/frames.hpp"

#include <utility>

#include "api/dialects/native/names.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

void translate(jobs::Remark& remark, const JobId& job, const std::string& prompt_id) {
    // Messages of custom nodes are left as they are, but for the id.
    if (remark.data.contains("prompt_id")) {
        remark.data["prompt_id"] = prompt_id;
    }
    if (remark.type == "progress_state") {
        if (json::value* nodes = remark.data.if_contains("nodes"); nodes && nodes->is_object()) {
            for (auto& [id, node] : nodes->get_object()) {
                if (json::object* state = node.if_object()) {
                    (*state)["prompt_id"] = prompt_id;
                }
            }
        }
    } else if (remark.type == "executed") {
        if (json::value* ui = remark.data.if_contains("output"); ui && ui->is_object()) {
            rename_files(ui->get_object(), job);
        }
    }
}

}  // namespace

FramePtr to_frame(jobs::Remark remark, const JobId& job, const std::string& prompt_id) {
    translate(remark, job, prompt_id);
    if (remark.type == "preview") {
        return make_frame(comfy::Preview{
            std::move(remark.bytes),
            std::move(remark.content_type),
            comfy::text_of(remark.data, "prompt_id"),
            comfy::text_of(remark.data, "node_id"),
            comfy::text_of(remark.data, "display_node_id"),
            comfy::text_of(remark.data, "parent_node_id"),
            comfy::text_of(remark.data, "real_node_id"),
        });
    }
    if (remark.type == "text") {
        return make_frame(
            comfy::NodeText{comfy::text_of(remark.data, "node_id"), std::move(remark.bytes)}
        );
    }
    return make_frame(remark.type, std::move(remark.data));
}

}  // namespace comfyd::api::native
