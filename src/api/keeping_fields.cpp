#include "admission/keeping.hpp"
#include "api/submission.hpp"

namespace comfyd::api {
namespace {

// Said of every wish for a store, before it is known whether there is one.
void drop_warning(json::array& warnings, std::string_view field) {
    for (auto at = warnings.begin(); at != warnings.end();) {
        const json::object* warning = at->if_object();
        const json::value* about = warning == nullptr ? nullptr : json::find(*warning, "field");
        const bool is_it = about != nullptr && about->is_string() &&
                           std::string_view(about->get_string()) == field;
        at = is_it ? warnings.erase(at) : at + 1;
    }
}

}  // namespace

Result<> decode_keeping(
    const Call& call, const Services& services, const json::object& from, jobs::Spec& spec
) {
    const auto config = json::find_object(from, "output_config");
    if (!config) {
        return fail(config.error());
    }
    admission::KeepingWish wish;
    if (*config != nullptr) {
        const auto storage = json::find_object(**config, "storage");
        if (!storage) {
            return fail(storage.error());
        }
        wish.storage = *storage;
    }
    for (const json::object* members : {&from, *config}) {
        if (members == nullptr) {
            continue;
        }
        auto retention = json::find_string(*members, "retention");
        if (!retention) {
            return fail(retention.error());
        }
        if (*retention) {
            wish.retention = std::move(**retention);
        }
    }
    const admission::KeepingRules& rules = services.rules.keeping;
    const auto own = services.rules.tenants->find(call.caller.tenant);
    auto keeping = admission::decide_keeping(rules, call.caller.tenant, own, wish);
    if (!keeping) {
        return fail(std::move(keeping.error()));
    }
    if (wish.storage != nullptr && admission::is_heard(rules, *wish.storage)) {
        drop_warning(spec.warnings, "output_config.storage");
    }
    if (wish.storage != nullptr || wish.retention) {
        spec.dialect_data["keep"] = keeping->to_json();
    }
    return {};
}

}  // namespace comfyd::api
