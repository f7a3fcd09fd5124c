#include "support/double/catalogue.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace comfyd::support {
namespace {

void add_names(json::object& node_class, const char* input, const std::vector<std::string>& names) {
    auto& list = node_class.at("input").at("required").at(input).as_array().at(0).as_array();
    for (const auto& name : names) {
        list.emplace_back(name);
    }
}

json::value& list_of(json::object& node_class, const char* input) {
    return node_class.at("input").at("required").at(input).as_array().at(0);
}

// As ComfyUI names them.
std::vector<std::string> files_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator
             entry(folder, std::filesystem::directory_options::follow_directory_symlink, error),
         end;
         !error && entry != end;
         entry.increment(error)) {
        if (entry->is_regular_file(error)) {
            names.push_back(entry->path().lexically_relative(folder));
        }
    }
    std::ranges::sort(names);
    return names;
}

constexpr std::array<std::array<const char*, 3>, 2> kLoaders{
    {{"CheckpointLoaderSimple", "ckpt_name", "checkpoints"}, {"LoraLoader", "lora_name", "loras"}}
};

}  // namespace

void Catalogue::look_at_models(const std::string& folder) {
    for (const auto& [name, input, kind] : kLoaders) {
        json::object& node_class = classes_.at(name).as_object();
        json::value& list = list_of(node_class, input);
        if (!lists_.contains(name)) {
            lists_[name] = list;
        }
        list = lists_.at(name);
        std::vector<std::string> more = files_in(std::filesystem::path(folder) / kind);
        std::erase_if(more, [&list](const std::string& file) {
            const json::array& known = list.as_array();
            return std::ranges::find(known, json::value(file)) != known.end();
        });
        add_names(node_class, input, more);
    }
}

Catalogue::Catalogue(
    const std::vector<std::string>& models, std::string_view nodes_json, bool batch_pack
)
    : classes_(boost::json::parse(kBuiltInNodes).as_object()) {
    add_names(classes_.at("CheckpointLoaderSimple").as_object(), "ckpt_name", models);
    own_checks_["LoadImage"] = json::object{
        {"inputs", json::array{"image"}}, {"all_inputs", false}, {"link_types", false}
    };
    add_names(classes_.at("LoraLoader").as_object(), "lora_name", models);
    if (batch_pack) {
        add_batch_pack();
    }
    if (nodes_json.empty()) {
        return;
    }
    auto more = json::parse_object(nodes_json);
    if (!more) {
        throw std::runtime_error("node classes: " + more.error().message);
    }
    for (auto& [name, node_class] : *more) {
        if (!node_class.is_object()) {
            throw std::runtime_error("node classes: " + std::string(name) + " is not an object");
        }
        json::object& members = node_class.get_object();
        if (const auto own = members.find("_own_check"); own != members.end()) {
            own_checks_[name] = std::move(own->value());
            members.erase(own);
        }
        classes_[name] = std::move(members);
    }
}

void Catalogue::add_batch_pack() {
    constexpr int kJobsMax = 64;
    json::object pack = boost::json::parse(kBatchPackNodes).as_object();
    constexpr int kLoadedMax = 32;
    const auto add_inputs =
        [&pack](
            const char* name, const std::string& input, const char* type, int inputs_max = kJobsMax
        ) {
            json::object& optional = pack.at(name).at("input").at("optional").as_object();
            for (int i = 1; i < inputs_max; ++i) {
                optional[input + std::to_string(i)] = json::array{type};
            }
        };
    add_inputs("ComfydLatentBatch", "latent", "LATENT");
    add_inputs("ComfydConditioningBatch", "conditioning", "CONDITIONING");
    add_inputs("ComfydWarm", "loaded", "*", kLoadedMax);
    for (auto& [name, node_class] : pack) {
        classes_[name] = std::move(node_class);
    }
}

const json::object* Catalogue::find(std::string_view name) const {
    const auto* found = classes_.if_contains(name);
    return found ? &found->get_object() : nullptr;
}

const json::object* Catalogue::own_check(std::string_view name) const {
    const auto* found = own_checks_.if_contains(name);
    return found ? found->if_object() : nullptr;
}

bool Catalogue::is_output(std::string_view name) const {
    const auto* node_class = find(name);
    const auto* flag = node_class ? json::find(*node_class, "output_node") : nullptr;
    return flag && flag->is_bool() && flag->get_bool();
}

json::object Catalogue::with_inputs(const std::vector<std::string>& input_files) const {
    json::object all = classes_;
    add_names(all.at("LoadImage").as_object(), "image", input_files);
    return all;
}

const json::value* find_input(const json::object& node_class, std::string_view name) {
    const auto* inputs = json::find(node_class, "input");
    if (!inputs || !inputs->is_object()) {
        return nullptr;
    }
    for (const char* group : {"required", "optional"}) {
        const auto* members = json::find(inputs->get_object(), group);
        const auto* found =
            members && members->is_object() ? json::find(members->get_object(), name) : nullptr;
        if (found) {
            return found;
        }
    }
    return nullptr;
}

}  // namespace comfyd::support
