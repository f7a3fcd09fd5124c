#include "api/dialects/models/models.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/dialects/fleet/fleet_openapi.hpp"
#include "base/text.hpp"
#include "models/source.hpp"

namespace comfyd::api {
namespace {

using models::ModelVersion;
using models::RegisteredModel;

constexpr std::size_t kBodyBytesMax = 64 * 1024;
constexpr std::size_t kPageMax = 1'000;

// Where models are had from is for operators to know.
json::object encode(
    const RegisteredModel& model, const models::Register& known, bool with_sources
) {
    json::array versions;
    for (const ModelVersion& version : model.versions) {
        json::object shown = models::to_json(version);
        shown["file"] = models::file_name(model.name, version.number);
        if (const models::FileFacts* facts = known.find_content(version.sha256)) {
            for (const auto& [key, value] : facts->to_json()) {
                shown.emplace(key, value);
            }
        }
        if (with_sources) {
            for (json::value& source : shown.at("sources").as_array()) {
                source = models::shown_source(std::string(source.as_string()));
            }
        } else {
            shown.erase("sources");
        }
        versions.emplace_back(std::move(shown));
    }
    return {
        {"folder", model.folder},
        {"name", model.name},
        {"current", model.current},
        {"source", model.revision == 0 ? "configuration" : "ledger"},
        {"versions", std::move(versions)},
    };
}

std::string path_of(const Call& call) {
    return call.path_parameters.at(0) + "/" + call.path_parameters.at(1);
}

Error unknown(const Call& call) {
    return Error(Code::not_found, "there is no model '" + path_of(call).substr(0, 128) + "'");
}

Task<Result<RegisteredModel>> find(const Call& call, const ModelServices& services) {
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    const auto now = services.book.now();
    const RegisteredModel* found = now->find(path_of(call));
    if (found == nullptr) {
        co_return fail(unknown(call));
    }
    co_return *found;
}

Task<Result<json::object>> read_members(Call& call) {
    auto text = co_await call.exchange.read_body(kBodyBytesMax);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    if (trim(*text, " \t\r\n").empty()) {
        co_return json::object();
    }
    co_return json::parse_object(*text);
}

Task<> answer(
    Call& call, const ModelServices& services, const Result<RegisteredModel>& model, int status
) {
    const bool may_see = call.caller.may(auth::Scope::admin);
    const auto known = services.book.now();
    co_await send(
        call,
        model ? json_response(status, encode(*model, *known, may_see)) : encode_error(model.error())
    );
}

// Stores it, and gives it as it is known then.
Task<Result<RegisteredModel>> save(const ModelServices& services, RegisteredModel model) {
    const std::string path = model.path();
    auto saved = co_await services.book.save(std::move(model));
    if (!saved) {
        co_return fail(std::move(saved.error()));
    }
    const auto now = services.book.now();
    const RegisteredModel* found = now->find(path);
    if (found == nullptr) {
        co_return fail(Code::not_found, "the model was removed meanwhile");
    }
    co_return *found;
}

Task<> list(Call& call, const ModelServices& services) {
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_await send(call, encode_error(refreshed.error()));
        co_return;
    }
    const bool may_see = call.caller.may(auth::Scope::admin);
    const std::string_view folder = call.query_value("folder");
    const auto now = services.book.now();
    json::array listed;
    auto next = now->models().upper_bound(call.query_value("cursor"));
    std::string last;
    for (; next != now->models().end() && listed.size() < kPageMax; ++next) {
        if (folder.empty() || next->second.folder == folder) {
            listed.emplace_back(encode(next->second, *now, may_see));
            last = next->first;
        }
    }
    const bool is_all = next == now->models().end();
    json::object body{{"models", std::move(listed)}};
    body["next_cursor"] = is_all ? json::value(nullptr) : json::value(last);
    co_await send(call, json_response(200, body));
}

Task<> get(Call& call, const ModelServices& services) {
    auto found = co_await find(call, services);
    co_await answer(call, services, found, 200);
}

// The version that says the same; nullptr: there is none.
const ModelVersion* same_in(const RegisteredModel& model, const ModelVersion& version) {
    const auto same = std::ranges::find_if(model.versions, [&version](const ModelVersion& known) {
        return known.sources == version.sources && known.sha256 == version.sha256 &&
               known.bytes == version.bytes;
    });
    return same == model.versions.end() ? nullptr : &*same;
}

Result<RegisteredModel> with_version(
    RegisteredModel model, ModelVersion version, bool is_current, Time now
) {
    int number = 0;
    if (const ModelVersion* same = same_in(model, version)) {
        number = same->number;
    } else if (model.versions.size() >= models::kVersionsMax) {
        return fail(Code::conflict, "the model has too many versions; remove one first");
    } else {
        number = ++model.last;
        version.number = number;
        version.created_at = now;
        model.versions.push_back(std::move(version));
    }
    model.current = is_current ? number : model.current;
    return model;
}

// Its sources are such as this server can give agents.
Task<Result<>> check_sources(const ModelServices& services, const ModelVersion& version) {
    for (const std::string& source : version.sources) {
        if (auto checked = services.check_source(source); !checked) {
            co_return checked;
        }
        const auto parsed = models::parse_source(source);
        if (!parsed || parsed->kind != models::Source::Kind::upload) {
            continue;
        }
        auto found = co_await services.uploads.find(parsed->sha256);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (!*found || !(*found)->is_whole) {
            co_return fail(
                Code::invalid_argument,
                "the file of '" + source + "' was not uploaded: PUT it to /v2/model-contents/" +
                    parsed->sha256 + " first",
                {{"field", "source"}}
            );
        }
    }
    co_return Result<>();
}

// A repeated request makes no further version.
Task<> put(Call& call, const ModelServices& services) {
    auto members = co_await read_members(call);
    const auto current =
        members ? json::find_bool(*members, "current") : fail(std::move(members.error()));
    if (!current) {
        co_await send(call, encode_error(current.error()));
        co_return;
    }
    members->erase("current");
    for (const auto& member : *members) {
        const std::string_view name = view(member.key());
        if (name != "source" && name != "sources" && name != "sha256" && name != "bytes") {
            const Error error(
                Code::invalid_argument,
                "a version has 'source' or 'sources', 'sha256', 'bytes' and 'current', not '" +
                    std::string(name.substr(0, 64)) + "'",
                {{"field", member.key()}}
            );
            co_await send(call, encode_error(error));
            co_return;
        }
    }
    auto version =
        models::read_version(call.path_parameters.at(0), call.path_parameters.at(1), *members);
    if (!version) {
        co_await send(call, encode_error(version.error()));
        co_return;
    }
    auto checked = co_await check_sources(services, *version);
    if (!checked) {
        co_await send(call, encode_error(checked.error()));
        co_return;
    }
    auto found = co_await find(call, services);
    if (!found && found.error().code != Code::not_found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    const bool is_new = !found;
    const auto before = services.book.now();
    auto changed = with_version(
        is_new ? before->begin(call.path_parameters.at(0), call.path_parameters.at(1))
               : std::move(*found),
        std::move(*version),
        is_new || current->value_or(true),
        services.clock.now()
    );
    if (!changed) {
        co_await send(call, encode_error(changed.error()));
        co_return;
    }
    const RegisteredModel* known = before->find(path_of(call));
    if (known != nullptr && *known == *changed) {
        co_await answer(call, services, changed, 200);
        co_return;
    }
    call.has_made(path_of(call));
    auto saved = co_await save(services, std::move(*changed));
    co_await answer(call, services, saved, is_new ? 201 : 200);
}

Task<> remove(Call& call, const ModelServices& services) {
    auto found = co_await find(call, services);
    if (found && found->revision == 0) {
        found = fail(
            Code::conflict, "the model is set in the configuration of the server; remove it there"
        );
    }
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    auto removed = co_await services.book.remove(std::move(*found));
    if (!removed) {
        co_await send(call, encode_error(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await send(call, std::move(response));
}

Task<> change_current(Call& call, const ModelServices& services, RegisteredModel model, int to) {
    if (model.find(to) == nullptr) {
        const Error error(
            Code::not_found,
            "'" + model.path() + "' has no version " + std::to_string(to),
            {{"field", "version"}}
        );
        co_await send(call, encode_error(error));
        co_return;
    }
    if (model.current == to) {
        co_await answer(call, services, model, 200);
        co_return;
    }
    model.current = to;
    auto saved = co_await save(services, std::move(model));
    co_await answer(call, services, saved, 200);
}

Task<> put_current(Call& call, const ModelServices& services) {
    auto members = co_await read_members(call);
    auto version = members ? json::find_int(*members, "version")
                           : Result<std::optional<std::int64_t>>(fail(members.error()));
    if (version && !*version) {
        version =
            fail(Code::invalid_argument, "'version' is the number of one", {{"field", "version"}});
    }
    if (!version) {
        co_await send(call, encode_error(version.error()));
        co_return;
    }
    auto found = co_await find(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    const auto number = std::clamp<std::int64_t>(**version, 0, std::numeric_limits<int>::max());
    co_await change_current(call, services, std::move(*found), static_cast<int>(number));
}

Task<> roll_back(Call& call, const ModelServices& services) {
    auto found = co_await find(call, services);
    int before = 0;
    if (found) {
        for (const ModelVersion& version : found->versions) {
            before = version.number < found->current ? std::max(before, version.number) : before;
        }
        if (before == 0) {
            found = fail(Code::conflict, "there is no version before the current one");
        }
    }
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    co_await change_current(call, services, std::move(*found), before);
}

Task<> remove_version(Call& call, const ModelServices& services) {
    auto found = co_await find(call, services);
    const std::string& text = call.path_parameters.at(2);
    int number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
    if (found && (!is_number || found->find(number) == nullptr)) {
        found = fail(Code::not_found, "the model has no such version");
    } else if (found && found->current == number) {
        found =
            fail(Code::conflict, "this version is the current one; make another one current first");
    }
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    std::erase_if(found->versions, [number](const ModelVersion& version) {
        return version.number == number;
    });
    auto saved = co_await save(services, std::move(*found));
    co_await answer(call, services, saved, 200);
}

}  // namespace

void add_models(Router& router, const ModelServices& services) {
    router.add_schemas(model_schemas());
    add_model_contents(router, services);
    using Function = Task<> (*)(Call&, const ModelServices&);
    const auto add = [&router, &services](
                         net::Method method,
                         const char* pattern,
                         Function function,
                         Access access,
                         json::object operation
                     ) {
        router.add(Route{
            method,
            pattern,
            [&services, function](Call& call) { return function(call, services); },
            encode_error,
            access,
            std::move(operation)
        });
    };
    constexpr const char* kOne = "/v2/models/{folder}/{name}";
    constexpr const char* kCurrent = "/v2/models/{folder}/{name}/current";
    using net::Method;
    add(Method::get,
        "/v2/models",
        list,
        Access::jobs_read,
        fleet_operation("listModels", "models", R"json({
        "summary": "The models that are registered",
        "parameters": [
            {"name": "folder", "in": "query", "description": "Only those of this folder of ComfyUI's models.", "schema": {"type": "string"}},
            {"name": "cursor", "in": "query", "description": "next_cursor of the page before.", "schema": {"type": "string"}}
        ],
        "responses": {"200": ["A page of them, by folder and name.", "ModelList"]}
    })json"));
    add(Method::get, kOne, get, Access::jobs_read, fleet_operation("getModel", "models", R"json({
        "summary": "A model and its versions",
        "responses": {"200": ["The model.", "Model"], "404": ["There is none."]}
    })json"));
    add(Method::put, kOne, put, Access::admin, fleet_operation("putModel", "models", R"json({
        "summary": "Register a model, or a further version of it",
        "description": "The new version is the current one unless current is false. What says the same as a version that is there makes no further one. No number is used twice, also not after the model was removed.",
        "requestBody": "ModelVersionRequest",
        "responses": {
            "200": ["The model, with the version.", "Model"],
            "201": ["The model, which is new.", "Model"],
            "409": ["It is set in the configuration, or somebody else changed it meanwhile."]
        }
    })json"));
    add(Method::del, kOne, remove, Access::admin, fleet_operation("deleteModel", "models", R"json({
        "summary": "Forget a model and its versions",
        "description": "Files on workers stay; jobs that were accepted go on.",
        "responses": {"204": {"description": "It is forgotten."}, "404": ["There is none."], "409": ["It is set in the configuration, or somebody else changed it meanwhile."]}
    })json"));
    add(Method::put,
        kCurrent,
        put_current,
        Access::admin,
        fleet_operation("setCurrentModel", "models", R"json({
        "summary": "Say which version the name alone means",
        "requestBody": "ModelCurrentRequest",
        "responses": {"200": ["The model.", "Model"], "404": ["There is no such model or version."], "409": ["It is set in the configuration, or somebody else changed it meanwhile."]}
    })json"));
    add(Method::post,
        "/v2/models/{folder}/{name}/rollback",
        roll_back,
        Access::admin,
        fleet_operation("rollBackModel", "models", R"json({
        "summary": "Make the version before the current one current",
        "responses": {"200": ["The model.", "Model"], "404": ["There is none."], "409": ["There is no version before it."]}
    })json"));
    add(Method::del,
        "/v2/models/{folder}/{name}/versions/{version}",
        remove_version,
        Access::admin,
        fleet_operation("deleteModelVersion", "models", R"json({
        "summary": "Forget a version that is not the current one",
        "responses": {"200": ["The model without it.", "Model"], "404": ["There is no such version."], "409": ["It is the current one."]}
    })json"));
}

}  // namespace comfyd::api
