// What the server is and has.
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "comfy/members.hpp"
#include "comfy/replies.hpp"
#include "net/static_files.hpp"
#include "standalone/routes.hpp"

namespace comfyd::standalone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFrontendVersion = "1.49.6";
constexpr std::size_t kExtensionsMax = 10'000;

// Folders that clients of ComfyUI ask for. They are empty here: no node needs a model.
constexpr std::array<std::string_view, 20> kModelFolders{
    "audio_encoders", "checkpoints",    "classifiers",   "clip_vision",
    "configs",        "controlnet",     "diffusers",     "diffusion_models",
    "embeddings",     "gligen",         "hypernetworks", "latent_upscale_models",
    "loras",          "model_patches",  "photomaker",    "style_models",
    "text_encoders",  "upscale_models", "vae",           "vae_approx",
};

struct Memory {
    std::uint64_t total = 0;
    std::uint64_t available = 0;
};

Memory read_memory() {
    Memory memory;
    struct sysinfo info{};
    if (::sysinfo(&info) == 0) {
        memory.total = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
        memory.available = static_cast<std::uint64_t>(info.freeram) * info.mem_unit;
    }
    std::ifstream in("/proc/meminfo");
    std::string name;
    std::uint64_t kilobytes = 0;
    for (std::string unit; in >> name >> kilobytes && std::getline(in, unit);) {
        if (name == "MemAvailable:") {
            memory.available = kilobytes * 1'024;
            break;
        }
    }
    return memory;
}

json::object describe_system(const Options& options) {
    const Memory memory = read_memory();
    json::object system;
    system["os"] = "linux";
    system["ram_total"] = memory.total;
    system["ram_free"] = memory.available;
    system["comfyui_version"] = comfy::kProtocolVersion;
    system["required_frontend_version"] = kFrontendVersion;
    system["installed_templates_version"] = nullptr;
    system["required_templates_version"] = nullptr;
    system["python_version"] = "none: comfyd " COMFYD_VERSION;
    system["pytorch_version"] = "none";
    system["embedded_python"] = false;
    system["argv"] = json::array{"comfyd", "engine"};
    system["deploy_environment"] = "comfyd";
    system["comfyd_version"] = COMFYD_VERSION;
    json::object device;
    device["name"] = "cpu";
    device["type"] = "cpu";
    device["index"] = nullptr;
    device["vram_total"] = std::min(memory.total, options.memory_bytes_max);
    device["vram_free"] = std::min(memory.available, options.memory_bytes_max);
    device["torch_vram_total"] = 0;
    device["torch_vram_free"] = 0;
    json::object body;
    body["system"] = std::move(system);
    body["devices"] = json::array{std::move(device)};
    return body;
}

json::array list_extensions(const fs::path& frontend) {
    std::vector<std::string> found;
    std::error_code error;
    if (!frontend.empty()) {
        fs::recursive_directory_iterator entry(frontend / "extensions", error);
        for (const fs::recursive_directory_iterator end; !error && entry != end;
             entry.increment(error)) {
            if (entry->path().extension() == ".js" && found.size() < kExtensionsMax) {
                found.push_back("/" + entry->path().lexically_relative(frontend).generic_string());
            }
        }
    }
    std::ranges::sort(found);
    return json::array(found.begin(), found.end());
}

}  // namespace

Task<> get_object_info(Call& call, Core& core) {
    auto response = co_await core.pool.run([&core] {
        return comfy::json_reply(200, core.engine.object_info());
    });
    co_await answer(call, std::move(response));
}

Task<> get_object_info_of(Call& call, Core& core) {
    const std::string name = call.parameters.at(0);
    auto response = co_await core.pool.run([&core, &name] {
        json::object body;
        if (core.engine.registry().find(name) != nullptr) {
            json::object all = core.engine.object_info();
            if (json::value* found = all.if_contains(name)) {
                body[name] = std::move(*found);
            }
        }
        return comfy::json_reply(200, body);
    });
    co_await answer(call, std::move(response));
}

Task<> get_system_stats(Call& call, Core& core) {
    co_await answer(call, comfy::json_reply(200, describe_system(core.options)));
}

Task<> get_features(Call& call, Core& core) {
    const json::object features = comfy::server_features(core.options.body_bytes_max);
    co_await answer(call, comfy::json_reply(200, features));
}

Task<> get_models(Call& call, Core& /*core*/) {
    json::array names;
    for (const std::string_view folder : kModelFolders) {
        names.emplace_back(folder);
    }
    co_await answer(call, comfy::json_reply(200, names));
}

Task<> get_models_in(Call& call, Core& /*core*/) {
    const bool known =
        std::ranges::find(kModelFolders, call.parameters.at(0)) != kModelFolders.end();
    co_await answer(call, known ? comfy::json_reply(200, json::array()) : comfy::empty_reply(404));
}

Task<> get_model_folders(Call& call, Core& /*core*/) {
    json::array folders;
    for (const std::string_view folder : kModelFolders) {
        json::object about;
        about["name"] = folder;
        about["folders"] = json::array();
        about["extensions"] = json::array();
        folders.push_back(std::move(about));
    }
    co_await answer(call, comfy::json_reply(200, folders));
}

Task<> get_extensions(Call& call, Core& core) {
    auto list = co_await core.pool.run([&core] { return list_extensions(core.options.frontend); });
    co_await answer(call, comfy::json_reply(200, list));
}

Task<> get_logs(Call& call, Core& core) {
    co_await answer(call, comfy::json_reply(200, json::value(core.logs.text())));
}

Task<> get_raw_logs(Call& call, Core& core) {
    co_await answer(call, comfy::json_reply(200, core.logs.to_json()));
}

Task<> subscribe_logs(Call& call, Core& core) {
    auto body = co_await read_object(call, core);
    if (!body) {
        co_return;
    }
    const json::object& fields = *body;
    core.logs.subscribe(comfy::text_of(fields, "clientId"), is_true(fields, "enabled"));
    co_await answer(call, comfy::empty_reply(200));
}

Task<> get_folder_paths(Call& call, Core& /*core*/) {
    json::object folders;
    for (const std::string_view folder : kModelFolders) {
        folders[folder] = json::array();
    }
    co_await answer(call, comfy::json_reply(200, folders));
}

Task<> get_empty_object(Call& call, Core& /*core*/) {
    co_await answer(call, comfy::json_reply(200, json::object()));
}

Task<> get_empty_list(Call& call, Core& /*core*/) {
    co_await answer(call, comfy::json_reply(200, json::array()));
}

Task<> get_nothing(Call& call, Core& /*core*/) {
    co_await answer(call, comfy::empty_reply(404));
}

Task<> get_static(Call& call, Core& core) {
    const bool readable =
        call.request.method == net::Method::get || call.request.method == net::Method::head;
    const auto path = core.options.frontend.empty() || !readable
                          ? std::nullopt
                          : net::find_static(core.options.frontend, call.request.path);
    if (!path) {
        co_await answer(call, comfy::empty_reply(404));
        co_return;
    }
    net::Response head;
    head.headers.set("X-Content-Type-Options", "nosniff");
    const bool hashed = call.request.path.starts_with("/assets/");
    head.headers.set("Cache-Control", hashed ? "max-age=86400" : "no-cache");
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), *path);
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, comfy::empty_reply(404));
    }
}

}  // namespace comfyd::standalone
