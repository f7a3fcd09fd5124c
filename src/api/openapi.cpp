#include "api/openapi.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.hpp"

namespace comfyd::api {
namespace {

// "/view/{rest*}" is written "/view/{rest}" in the document.
std::string document_path(std::string path) {
    if (const auto star = path.find("*}"); star != std::string::npos) {
        path.erase(star, 1);
    }
    return path;
}

bool declares(const json::array& parameters, std::string_view name) {
    return std::any_of(parameters.begin(), parameters.end(), [name](const json::value& entry) {
        const json::object* parameter = entry.if_object();
        const json::value* found = parameter == nullptr ? nullptr : json::find(*parameter, "name");
        return found != nullptr && found->is_string() &&
               std::string_view(found->get_string()) == name;
    });
}

void add_path_parameters(json::object& operation, std::string_view pattern) {
    const auto names = parameter_names(pattern);
    if (names.empty()) {
        return;
    }
    json::array all;
    json::value* given = operation.if_contains("parameters");
    json::array extra = given != nullptr && given->is_array() ? given->get_array() : json::array();
    for (const std::string& name : names) {
        if (!declares(extra, name)) {
            all.push_back(json::object{
                {"name", name},
                {"in", "path"},
                {"required", true},
                {"schema", json::object{{"type", "string"}}},
            });
        }
    }
    for (json::value& parameter : extra) {
        all.push_back(std::move(parameter));
    }
    operation["parameters"] = std::move(all);
}

bool needs_operator(const Route& route) {
    const auto scope = needed_scope(route);
    return scope && !auth::kTenantScopes.contain(*scope);
}

// A dialect that says how its refusals look says so of these, too.
json::object refusal(
    const json::object& by_status, std::string_view status, std::string_view name
) {
    const json::value* given = json::find(by_status, status);
    if (given != nullptr) {
        return given->as_object();
    }
    if (const json::value* any = json::find(by_status, "default")) {
        return any->as_object();
    }
    return {{"$ref", "#/components/responses/" + std::string(name)}};
}

json::object document_responses(const Route& route) {
    const json::value* given = route.operation.if_contains("responses");
    json::object by_status =
        given != nullptr && given->is_object() ? given->get_object() : json::object();
    if (by_status.empty()) {
        by_status["200"] = json::object{{"description", "Success."}};
    }
    if (route.access != Access::open) {
        by_status["401"] = refusal(by_status, "401", "Unauthorized");
        by_status["403"] = refusal(by_status, "403", "Forbidden");
    }
    if (!by_status.contains("default")) {
        by_status["default"] = json::object{{"$ref", "#/components/responses/Error"}};
    }
    return by_status;
}

json::object document_operation(const Route& route, bool keys_required) {
    json::object operation = route.operation;
    add_path_parameters(operation, route.pattern);
    operation["responses"] = document_responses(route);
    if (needs_operator(route)) {
        const json::value* given = operation.if_contains("description");
        operation["description"] =
            (given == nullptr ? std::string() : std::string(given->as_string()) + " ") +
            "Needs an operator's key where keys are configured.";
        operation["x-needs-operator"] = true;
    }
    if (const auto scope = needed_scope(route)) {
        operation["x-scope"] = to_string(*scope);
    }
    json::array security;
    if (route.access != Access::open) {
        security.push_back(json::object{{"bearerAuth", json::array()}});
        security.push_back(json::object{{"keyAuth", json::array()}});
        if (!keys_required) {
            security.push_back(json::object());
        }
    }
    operation["security"] = std::move(security);
    return operation;
}

json::object error_response(std::string_view description) {
    return {
        {"description", boost::json::string_view(description.data(), description.size())},
        {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}},
    };
}

json::object error_schema() {
    return {
        {"type", "object"},
        {"required", json::array{"error"}},
        {"properties",
         {{"error",
           {{"type", "object"},
            {"required", json::array{"code", "message"}},
            {"properties",
             {{"code", {{"type", "string"}}},
              {"message", {{"type", "string"}}},
              {"details", {{"type", "object"}, {"additionalProperties", true}}}}}}}}},
    };
}

json::object components(const json::object& schemas) {
    json::object all_schemas = schemas;
    if (!all_schemas.contains("Error")) {
        all_schemas["Error"] = error_schema();
    }
    return {
        {"schemas", std::move(all_schemas)},
        {"responses",
         {{"Error", error_response("What went wrong, and what to do.")},
          {"Unauthorized", error_response("No credentials, or such that are not good.")},
          {"Forbidden", error_response("The credentials lack the scope that this needs (x-scope).")}
         }},
        {"securitySchemes",
         {{"bearerAuth", {{"type", "http"}, {"scheme", "bearer"}}},
          {"keyAuth", {{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"}}}}},
    };
}

}  // namespace

json::object make_openapi(
    const RouteTable& table, const json::object& schemas, bool keys_required
) {
    json::object paths;
    json::array tags;
    std::set<std::string> seen_tags;
    for (const auto& route : table.routes()) {
        if (route->operation.empty()) {
            continue;
        }
        json::value& path = paths[document_path(route->pattern)];
        if (!path.is_object()) {
            path = json::object();
        }
        json::object operation = document_operation(*route, keys_required);
        if (const json::value* names = operation.if_contains("tags"); names && names->is_array()) {
            for (const json::value& tag : names->get_array()) {
                if (tag.is_string() && seen_tags.emplace(tag.get_string()).second) {
                    tags.push_back(json::object{{"name", tag}});
                }
            }
        }
        path.get_object()[lower(net::to_string(route->method))] = std::move(operation);
    }
    return {
        {"openapi", "3.0.3"},
        {"info",
         {{"title", "comfyd"},
          {"version", COMFYD_VERSION},
          {"description",
           "One serverless API over any set of ComfyUI machines: submit a workflow, watch it run, "
           "fetch what it made."}}},
        {"servers", json::array{json::object{{"url", "/"}}}},
        {"tags", std::move(tags)},
        {"paths", std::move(paths)},
        {"components", components(schemas)},
    };
}

}  // namespace comfyd::api
