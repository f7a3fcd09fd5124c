#include "fleet/instances/store.hpp"

namespace comfyd::fleet {
namespace {

std::string text_of(const json::object& about, std::string_view key) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

json::object object_of(const json::object& about, std::string_view key) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_object() ? found->get_object() : json::object();
}

std::optional<std::int64_t> number_of(const json::object& about, std::string_view key) {
    const json::value* found = json::find(about, key);
    return found != nullptr && found->is_int64() ? std::optional(found->get_int64()) : std::nullopt;
}

}  // namespace

json::object PoolRecord::to_json() const {
    return {
        {"fleet", fleet},
        {"name", name},
        {"size", size ? json::value(*size) : json::value(nullptr)},
        {"size_configured", size_configured},
        {"leaving", json::array(leaving.begin(), leaving.end())},
        {"failed_starts", failed_starts},
        {"paused", paused},
        {"paused_why", paused_why},
        {"scaling", scaling},
        {"revision", static_cast<std::int64_t>(revision)},
    };
}

PoolRecord PoolRecord::from_json(const json::object& about) {
    PoolRecord record;
    record.fleet = text_of(about, "fleet");
    record.name = text_of(about, "name");
    if (const auto size = number_of(about, "size")) {
        record.size = static_cast<int>(*size);
    }
    record.size_configured = static_cast<int>(number_of(about, "size_configured").value_or(0));
    if (const auto leaving = json::find_array(about, "leaving"); leaving && *leaving != nullptr) {
        for (const json::value& id : **leaving) {
            if (id.is_string()) {
                record.leaving.emplace(id.get_string());
            }
        }
    }
    record.failed_starts = static_cast<int>(number_of(about, "failed_starts").value_or(0));
    record.paused = text_of(about, "paused");
    record.paused_why = text_of(about, "paused_why");
    record.scaling = object_of(about, "scaling");
    record.revision = static_cast<std::uint64_t>(number_of(about, "revision").value_or(0));
    return record;
}

json::object FleetEvent::to_json() const {
    json::object about{
        {"at", to_unix_ms(at)},
        {"fleet", fleet},
        {"what", what},
        {"why", why},
        {"pool", pool},
        {"instance", instance},
        {"provider", provider},
        {"tenant", tenant},
    };
    if (!details.empty()) {
        about["details"] = details;
    }
    return about;
}

FleetEvent FleetEvent::from_json(const json::object& about) {
    FleetEvent event;
    event.at = from_unix_ms(number_of(about, "at").value_or(0));
    event.fleet = text_of(about, "fleet");
    event.what = text_of(about, "what");
    event.why = text_of(about, "why");
    event.pool = text_of(about, "pool");
    event.instance = text_of(about, "instance");
    event.provider = text_of(about, "provider");
    event.tenant = text_of(about, "tenant");
    event.details = object_of(about, "details");
    return event;
}

}  // namespace comfyd::fleet
