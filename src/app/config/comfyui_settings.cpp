// The settings of ComfyUI processes on this computer. What each may be is the affair of those that
// start them (fleet/providers/local_pool.hpp).
#include "app/config/setting_kinds.hpp"
#include "base/json.hpp"
#include "fleet/providers/local_pool.hpp"

namespace comfyd::app {
namespace {

std::string shown(const std::string& value, bool is_list) {
    if (!is_list) {
        const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
        return is_number ? value : json::quoted(value);
    }
    std::string all;
    for (const std::string& word : split_commas(value)) {
        all += (all.empty() ? "" : ", ") + json::quoted(word);
    }
    return "[" + all + "]";
}

// `otherwise`: as it is shown where it is not set.
Setting row(std::string name, std::string help, std::string otherwise, bool is_list = false) {
    return {
        "comfyui." + name,
        std::move(help),
        [name](Config& config, const std::string& value) -> Result<> {
            if (value.empty()) {
                config.comfyui.erase(name);
                return {};
            }
            const auto read = fleet::read_local_settings({{name, value}});
            if (!read) {
                return fail(read.error());
            }
            config.comfyui[name] = value;
            return {};
        },
        [name, otherwise, is_list](const Config& config) {
            const auto found = config.comfyui.find(name);
            return found == config.comfyui.end() ? otherwise : shown(found->second, is_list);
        },
        is_list
    };
}

}  // namespace

std::vector<Setting> comfyui_settings() {
    return {
        row("dir",
            "ComfyUI that comfyd starts on this computer's GPUs: the folder of its main.py.",
            "\"\""),
        row("python",
            "The Python that it runs with; empty: of venv or .venv in its folder, else python3.",
            "\"\""),
        row("arguments", "Further arguments of ComfyUI.", "[]", true),
        row("gpus",
            "UUIDs or numbers of the GPUs to use; empty: all. any: ComfyUI finds one by itself.",
            "[]",
            true),
        row("per_gpu", "Processes that share a GPU.", "1"),
        row("gpu_memory_mb",
            "GPU memory that each may need, in MB, kept for it; 0: they share what there is.",
            "0"),
        row("ports", "Ports of this computer that ComfyUI may listen on.", "\"8188-8288\""),
        row("recycle_jobs", "A ComfyUI is begun anew after so many jobs; 0: never.", "0"),
        row("recycle_ram_mb", "And when it has so much of the computer's memory; 0: never.", "0"),
        row("sandbox",
            "How ComfyUI is confined: minimal, basic or strict (docs/sandbox.md).",
            "\"minimal\""),
        row("readable", "What it may read then, beside its own and the system's.", "[]", true),
        row("writable", "And what it may write, beside its own.", "[]", true),
        row("packs",
            "Custom nodes beside those in its folder: https://…@COMMIT, or a folder.",
            "[]",
            true),
        row("packs_allowed",
            "Which ones may be named: URLs and folders; one that ends with / allows all below it.",
            "[]",
            true),
    };
}

}  // namespace comfyd::app
