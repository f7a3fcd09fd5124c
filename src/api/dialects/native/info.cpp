// What the fleet has: node classes, models, devices; and the lists that the editor asks for.
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/dialects/native/routes.hpp"
#include "api/dialects/native/uploads.hpp"
#include "comfy/members.hpp"
#include "net/static_files.hpp"

namespace comfyd::api::native {
namespace {

// The newest version of ComfyUI whose answers these are.
constexpr const char* kVersion = "0.33.0";

// Which input of which class lists the files of a model folder.
struct ModelFolder {
    std::string_view name;
    std::string_view class_type;
    std::string_view input;
};
constexpr std::array<ModelFolder, 27> kModelFolders{{
    {"checkpoints", "CheckpointLoaderSimple", "ckpt_name"},
    {"configs", "CheckpointLoader", "config_name"},
    {"loras", "LoraLoader", "lora_name"},
    {"vae", "VAELoader", "vae_name"},
    {"text_encoders", "CLIPLoader", "clip_name"},
    {"diffusion_models", "UNETLoader", "unet_name"},
    {"clip_vision", "CLIPVisionLoader", "clip_name"},
    {"style_models", "StyleModelLoader", "style_model_name"},
    {"embeddings", "", ""},
    {"diffusers", "DiffusersLoader", "model_path"},
    {"vae_approx", "", ""},
    {"controlnet", "ControlNetLoader", "control_net_name"},
    {"gligen", "GLIGENLoader", "gligen_name"},
    {"upscale_models", "UpscaleModelLoader", "model_name"},
    {"latent_upscale_models", "LatentUpscaleModelLoader", "model_name"},
    {"custom_nodes", "", ""},
    {"datasets", "", ""},
    {"hypernetworks", "HypernetworkLoader", "hypernetwork_name"},
    {"photomaker", "PhotoMakerLoader", "photomaker_model_name"},
    {"classifiers", "", ""},
    {"model_patches", "ModelPatchLoader", "name"},
    {"audio_encoders", "AudioEncoderLoader", "audio_encoder_name"},
    {"background_removal", "", ""},
    {"frame_interpolation", "", ""},
    {"geometry_estimation", "", ""},
    {"optical_flow", "", ""},
    {"detection", "", ""},
}};

const ModelFolder* find_folder(std::string_view name) {
    // Older names of two folders.
    const std::string_view wanted = name == "clip"   ? "text_encoders"
                                    : name == "unet" ? "diffusion_models"
                                                     : name;
    const auto found =
        std::find_if(kModelFolders.begin(), kModelFolders.end(), [wanted](const auto& folder) {
            return folder.name == wanted;
        });
    return found == kModelFolders.end() ? nullptr : &*found;
}

json::array models_in(const workflow::Catalogue& catalogue, const ModelFolder& folder) {
    json::array names;
    const auto* definition =
        folder.class_type.empty() ? nullptr : catalogue.find(folder.class_type);
    const auto* input = definition == nullptr ? nullptr : definition->find_input(folder.input, {});
    if (input != nullptr && input->choices != nullptr) {
        for (const json::value& choice : *input->choices) {
            if (choice.is_string()) {
                names.push_back(choice);
            }
        }
    }
    return names;
}

json::object device_of(const jobs::WorkerInfo& worker, std::size_t index) {
    const bool is_cpu = worker.gpu.empty() || worker.gpu.starts_with("cpu");
    return {
        {"name", is_cpu ? "cpu" : worker.gpu},
        {"type", is_cpu ? "cpu" : "cuda"},
        {"index", is_cpu ? json::value() : json::value(index)},
        {"vram_total", worker.vram_total},
        {"vram_free", worker.vram_free},
        {"torch_vram_total", worker.vram_total},
        {"torch_vram_free", worker.vram_free},
    };
}

net::Response document(std::string text) {
    net::Response response;
    response.headers.set("Content-Type", "application/json; charset=utf-8");
    response.body = std::move(text);
    return response;
}

}  // namespace

Task<> get_object_info(Call& call, Context& context) {
    const auto catalogue = context.services.catalogue();
    auto uploads = co_await context.services.files->list(call.caller.tenant, "input");
    auto info = co_await context.parts.pool.run([catalogue] { return catalogue->object_info(); });
    if (!uploads.empty()) {
        auto text = co_await context.parts.pool.run([info, uploads = std::move(uploads)] {
            return with_uploads(info->text, uploads);
        });
        co_await send(call, document(std::move(text)));
        co_return;
    }
    const std::string etag = '"' + info->etag + '"';
    net::Response response = document({});
    response.headers.set("ETag", etag);
    if (net::matches_etag(call.request.headers.get("If-None-Match"), etag)) {
        response.status = 304;
    } else {
        response.body = info->text;
    }
    co_await send(call, std::move(response));
}

Task<> get_object_info_of(Call& call, Context& context) {
    const auto catalogue = context.services.catalogue();
    auto text = catalogue->object_info(call.path_parameters.at(0));
    const auto uploads = co_await context.services.files->list(call.caller.tenant, "input");
    co_await send(call, document(uploads.empty() ? std::move(text) : with_uploads(text, uploads)));
}

Task<> get_system_stats(Call& call, Context& context) {
    auto workers = co_await context.services.jobs.workers();
    struct sysinfo memory{};
    ::sysinfo(&memory);
    const std::uint64_t ram_total = memory.totalram * std::uint64_t{memory.mem_unit};
    const std::uint64_t ram_free =
        (memory.freeram + memory.bufferram) * std::uint64_t{memory.mem_unit};
    json::array devices;
    std::string version;
    for (const jobs::WorkerInfo& worker : workers) {
        json::object device = device_of(worker, devices.size());
        if (device.at("type") == "cpu" && worker.vram_total == 0) {
            for (const char* key : {"vram_total", "torch_vram_total"}) {
                device[key] = ram_total;
            }
            for (const char* key : {"vram_free", "torch_vram_free"}) {
                device[key] = ram_free;
            }
        }
        devices.push_back(std::move(device));
        if (worker.url != "engine:" && version.empty()) {
            version = worker.version;
        }
    }
    json::object body;
    body["system"] = {
        {"os", "linux"},
        {"ram_total", ram_total},
        {"ram_free", ram_free},
        {"comfyui_version", version.empty() ? kVersion : version},
        {"required_frontend_version", nullptr},
        {"installed_templates_version", nullptr},
        {"required_templates_version", nullptr},
        {"comfy_package_versions", json::array()},
        {"python_version", "comfyd " COMFYD_VERSION},
        {"pytorch_version", ""},
        {"embedded_python", false},
        {"deploy_environment", "comfyd"},
        {"argv", json::array{"comfyd"}},
    };
    body["devices"] = std::move(devices);
    co_await send(call, json_reply(200, body));
}

Task<> get_models(Call& call, Context&) {
    json::array names;
    for (const ModelFolder& folder : kModelFolders) {
        names.emplace_back(boost::json::string_view(folder.name.data(), folder.name.size()));
    }
    return send(call, json_reply(200, names));
}

Task<> get_models_in(Call& call, Context& context) {
    const ModelFolder* folder = find_folder(call.path_parameters.at(0));
    if (folder == nullptr) {
        return send(call, empty_reply(404));
    }
    return send(call, json_reply(200, models_in(*context.services.catalogue(), *folder)));
}

Task<> get_model_folders(Call& call, Context&) {
    json::array folders;
    for (const ModelFolder& folder : kModelFolders) {
        if (folder.name == "configs" || folder.name == "custom_nodes") {
            continue;
        }
        folders.push_back(json::object{
            {"name", boost::json::string_view(folder.name.data(), folder.name.size())},
            {"folders", json::array{"models/" + std::string(folder.name)}},
            {"extensions",
             json::array{".bin", ".ckpt", ".pkl", ".pt", ".pt2", ".pth", ".safetensors", ".sft"}},
        });
    }
    return send(call, json_reply(200, folders));
}

Task<> get_model_files(Call& call, Context& context) {
    const ModelFolder* folder = find_folder(call.path_parameters.at(0));
    if (folder == nullptr) {
        return send(call, empty_reply(404));
    }
    json::array files;
    for (json::value& name : models_in(*context.services.catalogue(), *folder)) {
        files.push_back(json::object{
            {"name", std::move(name)},
            {"pathIndex", 0},
            {"modified", 0},
            {"created", 0},
            {"size", 0},
        });
    }
    return send(call, json_reply(200, files));
}

Task<> get_features(Call& call, Context& context) {
    return send(call, json_reply(200, server_features(context.services)));
}

Task<> get_empty_list(Call& call, Context&) {
    return send(call, json_reply(200, json::array()));
}

Task<> get_node_replacements(Call& call, Context& context) {
    const auto catalogue = context.services.catalogue();
    co_await send(call, json_reply(200, catalogue->replacements()));
}

Task<> get_empty_object(Call& call, Context&) {
    return send(call, json_reply(200, json::object()));
}

Task<> get_nothing(Call& call, Context&) {
    return send(call, empty_reply(404));
}

// Logs of this program are for its operator, not for its clients.
Task<> get_logs(Call& call, Context&) {
    return send(call, json_reply(200, ""));
}

Task<> get_raw_logs(Call& call, Context&) {
    const json::object body{{"entries", json::array()}, {"size", {{"cols", 80}, {"rows", 24}}}};
    return send(call, json_reply(200, body));
}

Task<> subscribe_logs(Call& call, Context&) {
    return send(call, empty_reply(200));
}

Task<> get_folder_paths(Call& call, Context&) {
    json::object paths;
    for (const ModelFolder& folder : kModelFolders) {
        paths[boost::json::string_view(folder.name.data(), folder.name.size())] =
            json::array{"models/" + std::string(folder.name)};
    }
    return send(call, json_reply(200, paths));
}

Task<> refuse_user(Call& call, Context&) {
    return send(call, json_reply(400, json::object{{"error", "users are set by API keys"}}));
}

}  // namespace comfyd::api::native
