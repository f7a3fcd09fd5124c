#include "app/model_rules.hpp"

#include <array>
#include <utility>

#include "base/disk.hpp"
#include "models/manager_list.hpp"
#include "workflow/files/model_uses.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kListBytesMax = 64 * 1024 * 1024;

// As plans reckon with families: by what a step costs.
workflow::ModelFamily family_of(std::string_view name) {
    using workflow::ModelFamily;
    static constexpr std::array kFamilies{
        std::pair(std::string_view("sd15"), ModelFamily::sd15),
        std::pair(std::string_view("sd2"), ModelFamily::sd15),
        std::pair(std::string_view("sdxl"), ModelFamily::sdxl),
        std::pair(std::string_view("sdxl-refiner"), ModelFamily::sdxl),
        std::pair(std::string_view("sd3"), ModelFamily::sd3),
        std::pair(std::string_view("pixart"), ModelFamily::sd3),
        std::pair(std::string_view("flux"), ModelFamily::flux),
        std::pair(std::string_view("flux-schnell"), ModelFamily::flux),
        std::pair(std::string_view("chroma"), ModelFamily::flux),
        std::pair(std::string_view("qwen-image"), ModelFamily::flux),
        std::pair(std::string_view("wan"), ModelFamily::video),
        std::pair(std::string_view("ltxv"), ModelFamily::video),
        std::pair(std::string_view("hunyuan-video"), ModelFamily::video),
    };
    for (const auto& [known, family] : kFamilies) {
        if (known == name) {
            return family;
        }
    }
    return ModelFamily::none;
}

}  // namespace

Result<admission::ModelRules> model_rules(
    const Config& config, const models::RegisterBook& book, const models::KnownFiles& files
) {
    admission::ModelRules rules;
    rules.registered = [&book] { return book.now(); };
    rules.files = &files;
    rules.only_warns = config.fetching_only_warns;
    rules.takes_addresses = config.fetching_addresses;
    rules.takes_properties = config.fetching_properties;
    rules.hosts = config.fetching_hosts;
    if (config.fetching_list.empty()) {
        return rules;
    }
    const auto text = read_file(config.fetching_list, kListBytesMax);
    auto list = text ? models::read_manager_list(*text)
                     : Result<std::vector<models::RegisteredModel>>(fail(text.error()));
    if (!list) {
        return fail(
            Code::config_invalid,
            "'fetching.list' cannot be used: '" + config.fetching_list +
                "': " + list.error().message
        );
    }
    rules.list = std::make_shared<models::Register>(*list, std::vector<models::ModelRecord>());
    return rules;
}

workflow::ModelSizes registered_sizes(
    const models::RegisterBook& book, workflow::ModelSizes others
) {
    return [&book, others = std::move(others)](workflow::ModelKind kind, std::string_view name) {
        const auto known = book.now()->resolve(workflow::model_folders(kind), name);
        if (known && known->bytes) {
            return known->bytes;
        }
        return others ? others(kind, name) : std::nullopt;
    };
}

workflow::ModelFiles read_files(const models::RegisterBook& book, const models::KnownFiles& files) {
    const auto find = [&book, &files](workflow::ModelKind kind, std::string_view name) {
        const auto folders = workflow::model_folders(kind);
        const auto registered = book.now();
        const auto known = registered->resolve(folders, name);
        const models::FileFacts* content =
            known ? registered->find_content(known->sha256) : nullptr;
        const models::FileFacts facts = content != nullptr ? *content : files.agreed(folders, name);
        return workflow::ModelFacts{facts.bytes, family_of(facts.family)};
    };
    return {find, [&book, &files] { return book.now()->contents() + files.changes(); }};
}

}  // namespace comfyd::app
