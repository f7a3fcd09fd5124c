#include "admission/extra_data.hpp"

#include <utility>

namespace comfyd::admission {
namespace {

void take_secrets(jobs::Spec& spec) {
    for (const char* key : {"auth_token_comfy_org", "api_key_comfy_org"}) {
        if (const auto found = spec.extra_data.find(key); found != spec.extra_data.end()) {
            spec.secret_extra_data[key] = std::move(found->value());
            spec.extra_data.erase(found);
        }
    }
}

void drop_nulls(json::object& extra_data) {
    const auto info = extra_data.find("extra_pnginfo");
    if (info == extra_data.end()) {
        return;
    }
    if (!info->value().is_object()) {
        extra_data.erase(info);
        return;
    }
    json::object& inner = info->value().get_object();
    if (const auto graph = inner.find("workflow");
        graph != inner.end() && !graph->value().is_object()) {
        inner.erase(graph);
    }
}

}  // namespace

void settle_extra_data(jobs::Spec& spec) {
    take_secrets(spec);
    drop_nulls(spec.extra_data);
}

}  // namespace comfyd::admission
