#include "api/dialects/native/names.hpp"

#include "comfy/members.hpp"

namespace comfyd::api::native {

std::string prompt_id_of(const jobs::Job& job) {
    auto own = comfy::maybe_text(job.dialect_data, "prompt_id");
    return job.dialect == kDialect && own ? std::move(*own) : job.id.to_string();
}

std::string client_id_of(const jobs::Job& job) {
    return job.dialect == kDialect ? comfy::text_of(job.dialect_data, "client_id") : std::string();
}

void rename_files(json::object& ui, const JobId& job) {
    for (auto& [key, entry] : ui) {
        json::array* list = entry.if_array();
        if (list == nullptr) {
            continue;
        }
        for (json::value& element : *list) {
            json::object* file = element.if_object();
            if (file != nullptr && !comfy::text_of(*file, "filename").empty()) {
                (*file)["subfolder"] = outer_subfolder(job, comfy::text_of(*file, "subfolder"));
            }
        }
    }
}

json::object renamed_outputs(json::object outputs, const JobId& job) {
    for (auto& [node, ui] : outputs) {
        if (json::object* files = ui.if_object()) {
            rename_files(*files, job);
        }
    }
    return outputs;
}

}  // namespace comfyd::api::native
