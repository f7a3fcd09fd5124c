// What the server is and has: node classes, models, devices, its log.
#include <utility>

#include "comfy/members.hpp"
#include "comfy/server/machine_memory.hpp"
#include "comfy/server/model_folders.hpp"
#include "comfy/server/routes.hpp"
#include "net/static_files.hpp"

namespace comfyd::comfy::server {
namespace {

// Of the release that kProtocolVersion names.
constexpr std::string_view kEditorVersion = "1.49.6";

json::object to_json(const Device& device) {
    json::object object;
    object["name"] = device.name;
    object["type"] = device.type;
    object["index"] = device.index ? json::value(*device.index) : json::value();
    object["vram_total"] = device.memory_total;
    object["vram_free"] = device.memory_free;
    object["torch_vram_total"] = device.torch_memory_total;
    object["torch_vram_free"] = device.torch_memory_free;
    return object;
}

json::object to_json(const System& system) {
    const MachineMemory memory = read_machine_memory();
    json::object about;
    about["os"] = "linux";
    about["ram_total"] = memory.total;
    about["ram_free"] = memory.available;
    about["comfyui_version"] = system.version;
    about["required_frontend_version"] = kEditorVersion;
    about["installed_templates_version"] = nullptr;
    about["required_templates_version"] = nullptr;
    about["comfy_package_versions"] = json::array();
    about["python_version"] = "comfyd " COMFYD_VERSION;
    about["pytorch_version"] = "none";
    about["embedded_python"] = false;
    about["deploy_environment"] = "comfyd";
    about["argv"] = json::array(system.arguments.begin(), system.arguments.end());
    about["comfyd_version"] = COMFYD_VERSION;
    json::array devices;
    for (const Device& device : system.devices) {
        devices.push_back(to_json(device));
    }
    json::object body;
    body["system"] = std::move(about);
    body["devices"] = std::move(devices);
    return body;
}

net::Response encode(const net::Request& request, Document document) {
    net::Response response = json_text_reply(200, std::move(document.text));
    if (!document.etag.empty()) {
        const std::string etag = '"' + document.etag + '"';
        response.headers.set("ETag", etag);
        if (net::matches_etag(request.headers.get("If-None-Match"), etag)) {
            response.status = 304;
            response.body.clear();
        }
    }
    return response;
}

json::array files_in(const Backend& backend, const ModelFolder& folder) {
    return folder.class_type.empty() ? json::array()
                                     : backend.choices(folder.class_type, folder.input);
}

json::array paths_of(const ModelFolder& folder) {
    return {"models/" + std::string(folder.name)};
}

}  // namespace

Task<> get_object_info(Call& call, Backend& backend) {
    auto document = co_await backend.node_classes();
    co_await answer(call, encode(call.request(), std::move(document)));
}

Task<> get_object_info_of(Call& call, Backend& backend) {
    auto document = co_await backend.node_class(call.parameters.at(0));
    co_await answer(call, encode(call.request(), std::move(document)));
}

Task<> get_system_stats(Call& call, Backend& backend) {
    auto system = co_await backend.system();
    co_await answer(call, json_reply(200, to_json(system)));
}

Task<> get_features(Call& call, Backend& backend) {
    return answer(call, json_reply(200, server_features(backend.limits().upload_bytes_max)));
}

Task<> get_models(Call& call, Backend& /*backend*/) {
    json::array names;
    for (const ModelFolder& folder : model_folders()) {
        names.emplace_back(folder.name);
    }
    return answer(call, json_reply(200, names));
}

Task<> get_models_in(Call& call, Backend& backend) {
    const ModelFolder* folder = find_model_folder(call.parameters.at(0));
    return answer(
        call, folder == nullptr ? empty_reply(404) : json_reply(200, files_in(backend, *folder))
    );
}

Task<> get_model_folders(Call& call, Backend& /*backend*/) {
    json::array folders;
    for (const ModelFolder& folder : model_folders()) {
        if (folder.name == "configs" || folder.name == "custom_nodes") {
            continue;
        }
        json::object about;
        about["name"] = folder.name;
        about["folders"] = paths_of(folder);
        about["extensions"] = {
            ".bin", ".ckpt", ".pkl", ".pt", ".pt2", ".pth", ".safetensors", ".sft"
        };
        folders.push_back(std::move(about));
    }
    return answer(call, json_reply(200, folders));
}

Task<> get_model_files(Call& call, Backend& backend) {
    const ModelFolder* folder = find_model_folder(call.parameters.at(0));
    if (folder == nullptr) {
        return answer(call, empty_reply(404));
    }
    json::array files;
    for (json::value& name : files_in(backend, *folder)) {
        files.push_back(json::object{
            {"name", std::move(name)},
            {"pathIndex", 0},
            {"modified", 0},
            {"created", 0},
            {"size", 0},
        });
    }
    return answer(call, json_reply(200, files));
}

Task<> get_folder_paths(Call& call, Backend& /*backend*/) {
    json::object folders;
    for (const ModelFolder& folder : model_folders()) {
        folders[folder.name] = paths_of(folder);
    }
    return answer(call, json_reply(200, folders));
}

Task<> get_node_replacements(Call& call, Backend& backend) {
    return answer(call, json_reply(200, backend.node_replacements()));
}

Task<> get_logs(Call& call, Backend& backend) {
    std::string all;
    for (const json::value& line : backend.log_lines()) {
        all += text_of(line.as_object(), "t") + " - " + text_of(line.as_object(), "m");
    }
    return answer(call, json_reply(200, json::value(all)));
}

Task<> get_raw_logs(Call& call, Backend& backend) {
    return answer(call, json_reply(200, log_panel(backend.log_lines())));
}

Task<> subscribe_logs(Call& call, Backend& backend) {
    auto body = co_await read_members(call, backend.limits().json_bytes_max);
    if (!body) {
        co_await answer(call, encode_error(body.error()));
        co_return;
    }
    backend.follow_log(text_of(*body, "clientId"), is_true(*body, "enabled"));
    co_await answer(call, empty_reply(200));
}

Task<> get_empty_object(Call& call, Backend& /*backend*/) {
    return answer(call, json_reply(200, json::object()));
}

Task<> get_empty_list(Call& call, Backend& /*backend*/) {
    return answer(call, json_reply(200, json::array()));
}

Task<> get_nothing(Call& call, Backend& /*backend*/) {
    return answer(call, empty_reply(404));
}

}  // namespace comfyd::comfy::server
