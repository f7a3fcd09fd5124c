#include "jobs/profile_text.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"

namespace comfyd::jobs {

using scheduler::Model;
using scheduler::Profile;
using scheduler::ProfilePtr;

namespace {

double number_of(const json::object& from, std::string_view name) {
    const json::value* value = json::find(from, name);
    if (value == nullptr || !value->is_number()) {
        return 0;
    }
    const double number = value->to_number<double>();
    return std::isfinite(number) && number > 0 ? number : 0;
}

std::string text_of(const json::object& from, std::string_view name) {
    const json::value* value = json::find(from, name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
}

std::string encode(const Profile& profile) {
    json::object out;
    json::array models;
    for (const Model& model : profile.models) {
        models.emplace_back(json::object{{"name", model.name}, {"bytes", model.bytes}});
    }
    out["models"] = std::move(models);
    out["shape"] = profile.shape;
    out["work_units"] = profile.work_units;
    out["seconds"] = profile.heuristic_seconds;
    out["vram_bytes"] = profile.vram_bytes;
    if (profile.can_be_merged) {
        out["can_be_merged"] = true;
    }
    return json::serialize(out);
}

}  // namespace

std::string encode_profile(const ProfilePtr& profile) {
    // Of those that come in at a time most are alike.
    thread_local ProfilePtr latest;
    thread_local std::string text;
    if (latest != profile) {
        text = encode(*profile);
        latest = profile;
    }
    return text;
}

scheduler::ProfilePtr decode_profile(std::string_view text, Requirement requirement) {
    auto profile = std::make_shared<Profile>();
    profile->requirement = std::move(requirement);
    const auto parsed =
        text.empty() ? Result<json::object>(json::object()) : json::parse_object(std::string(text));
    if (!parsed) {
        return profile;
    }
    if (const json::value* models = json::find(*parsed, "models");
        models != nullptr && models->is_array()) {
        for (const json::value& entry : models->get_array()) {
            if (const json::object* model = entry.if_object()) {
                profile->models.push_back(
                    {text_of(*model, "name"), static_cast<std::uint64_t>(number_of(*model, "bytes"))
                    }
                );
            }
        }
    }
    std::ranges::sort(profile->models, {}, &Model::name);
    profile->shape = text_of(*parsed, "shape");
    profile->work_units = number_of(*parsed, "work_units");
    profile->heuristic_seconds = number_of(*parsed, "seconds");
    profile->vram_bytes = static_cast<std::uint64_t>(number_of(*parsed, "vram_bytes"));
    const json::value* merged = json::find(*parsed, "can_be_merged");
    profile->can_be_merged = merged != nullptr && merged->is_bool() && merged->get_bool();
    return profile;
}

}  // namespace comfyd::jobs
