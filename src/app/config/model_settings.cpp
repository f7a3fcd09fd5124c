#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> model_settings() {
    return {
        flag(
            "fetching.addresses",
            "Workflows may name the address of a model in the place of its file.",
            &Config::fetching_addresses
        ),
        flag(
            "fetching.properties",
            "What the editor notes of where a workflow's models are had from is used.",
            &Config::fetching_properties
        ),
        words(
            "fetching.hosts",
            "Hosts that those two may name, as huggingface.co; none: any public one.",
            &Config::fetching_hosts
        ),
        text(
            "fetching.list",
            "File in the form of ComfyUI-Manager's model-list.json, with models that workers may "
            "fetch.",
            &Config::fetching_list
        ),
        choice<bool>(
            "fetching.unfit",
            "What becomes of a workflow with a LoRA for another family than its model's, or a file "
            "in the place of another kind: refuse, or warn.",
            &Config::fetching_only_warns,
            {{"refuse", false}, {"warn", true}}
        ),
    };
}

}  // namespace comfyd::app
