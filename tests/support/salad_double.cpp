#include <array>
#include <utility>

#include "support/cloud_records.hpp"

namespace comfyd::support {
namespace {

struct SaladKind {
    const char* id;
    const char* name;
    const char* usd;
    int available;
    int gpus;
};
constexpr std::array kSaladKinds{
    SaladKind{"00000000-0000-4000-8000-000000003060", "RTX 3060 (12 GB)", "0.08", 0, 1},
    SaladKind{"00000000-0000-4000-8000-000000004090", "RTX 4090 (24 GB)", "0.30", 12, 1},
    SaladKind{"00000000-0000-4000-8000-000000005090", "RTX 5090 (32 GB)", "0.45", 0, 1},
    SaladKind{"00000000-0000-4000-8000-00000000a100", "8x A100 (80 GB)", "9.60", 1, 8},
};

json::object counts(std::string_view which) {
    json::object all;
    for (const char* kind : {"allocating", "creating", "running", "stopping"}) {
        all[std::string(kind) + "_count"] = which == kind ? 1 : 0;
    }
    return all;
}

void set_state(json::object& record, std::string_view status, std::string_view instance) {
    json::object& state = record["current_state"].as_object();
    state["status"] = status;
    state["instance_status_counts"] = counts(instance);
}

}  // namespace

SaladDouble::SaladDouble() : CloudDouble(PROVIDER_CONTRACTS "/salad.json") {
    start();
}

bool SaladDouble::is_known(const net::Request& request) const {
    return request.headers.get("Salad-Api-Key") == kKey;
}

CloudAnswer SaladDouble::refuse(int status, const std::string& words) const {
    if (status >= 500) {
        return {status, "<!DOCTYPE html><html><body>" + words + "</body></html>"};
    }
    return as_json(
        {{"type", "about:blank"}, {"title", "Refused"}, {"status", status}, {"detail", words}},
        status
    );
}

CloudAnswer SaladDouble::no_stock() const {
    return refuse(403, "The quota of container replicas of this organization is used up.");
}

json::object SaladDouble::make_record(const std::string& id, const json::object& body) {
    json::object record{
        {"id", "11111111-0000-4000-8000-000000000000"},
        {"name", id},
        {"display_name", id},
        {"organization_name", "o"},
        {"project_name", "p"},
        {"container", {{"image", "x"}, {"command", nullptr}, {"resources", json::object()}}},
        {"replicas", 1},
        {"restart_policy", "never"},
        {"autostart_policy", true},
        {"country_codes", json::array()},
        {"priority", "high"},
        {"pending_change", false},
        {"version", 1},
        {"create_time", "2026-11-15T05:10:56Z"},
        {"update_time", "2026-11-15T05:10:56Z"},
        {"current_state",
         {{"status", "pending"},
          {"description", nullptr},
          {"start_time", "2026-11-15T05:10:56Z"},
          {"finish_time", "2026-11-15T05:10:56Z"},
          {"instance_status_counts", counts("allocating")}}},
    };
    if (const json::value* container = json::find(body, "container")) {
        record["container"] = *container;
    }
    return record;
}

void SaladDouble::advance(json::object& record) {
    const std::string status = text_in(record["current_state"].as_object(), "status");
    if (status == "pending") {
        set_state(record, "deploying", faults_.starts_never ? "allocating" : "creating");
    } else if (status == "deploying" && !faults_.starts_never) {
        set_state(record, "running", "running");
    }
}

CloudAnswer SaladDouble::answer(const Question& question) {
    const std::string& name = question.route->name;
    if (name == "classes") {
        json::array items;
        for (const SaladKind& kind : kSaladKinds) {
            json::array prices;
            prices.push_back(json::object{{"priority", "high"}, {"price", kind.usd}});
            prices.push_back(json::object{{"priority", "batch"}, {"price", "0.01"}});
            items.push_back(json::object{
                {"id", kind.id},
                {"name", kind.name},
                {"prices", std::move(prices)},
                {"gpu_class_type", kind.gpus > 1 ? "secure" : "community"},
                {"gpu_count", kind.gpus},
                {"is_high_demand", false},
            });
        }
        return as_json({{"items", std::move(items)}});
    }
    if (name == "availability") {
        int available = 0;
        for (const SaladKind& kind : kSaladKinds) {
            available += question.body.at("gpu_classes").at(0) == kind.id ? kind.available : 0;
        }
        return as_json({{"available_gpu_high", available}, {"available_gpu_batch", 40}});
    }
    if (name == "list") {
        json::array items;
        for (auto& [id, record] : records_) {
            advance(record);
            items.push_back(record);
        }
        return as_json({{"items", std::move(items)}});
    }
    if (name == "create") {
        const std::string group = text_in(question.body, "name");
        if (records_.contains(group)) {
            return refuse(400, "A container group with this name already exists.");
        }
        records_[group] = make_record(group, question.body);
        return as_json(records_[group], 201);
    }
    if (name == "logs") {
        json::array items;
        for (const char* line : {"Ready.", "Model loaded."}) {  // the newest first
            items.push_back(json::object{
                {"time", "2026-11-15T05:10:56Z"},
                {"receive_time", "2026-11-15T05:10:56Z"},
                {"severity", "info"},
                {"resource", {{"type", "container"}, {"labels", json::object()}}},
                {"text_log", line},
            });
        }
        return as_json(
            {{"items", std::move(items)},
             {"organization_name", "o"},
             {"page_max_time", "2026-11-15T05:10:56Z"},
             {"page_min_time", "2026-11-15T05:10:56Z"}}
        );
    }
    const auto found = records_.find(question.id);
    if (found == records_.end()) {
        return refuse(404, "The container group could not be found.");
    }
    if (name == "remove") {
        records_.erase(found);
    } else if (name == "start") {
        set_state(found->second, "pending", "allocating");
    } else {
        set_state(found->second, "stopped", "");
    }
    return {202, ""};
}

}  // namespace comfyd::support
