#include "app/model_rules.hpp"

#include <utility>

#include "base/disk.hpp"
#include "models/manager_list.hpp"
#include "workflow/files/model_uses.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kListBytesMax = 64 * 1024 * 1024;

}  // namespace

Result<admission::ModelRules> model_rules(const Config& config, const models::RegisterBook& book) {
    admission::ModelRules rules;
    rules.registered = [&book] { return book.now(); };
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
    rules.list = std::make_shared<models::Register>(*list, models::AllModels());
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

}  // namespace comfyd::app
