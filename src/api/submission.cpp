#include "api/submission.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "api/inputs.hpp"
#include "api/profile.hpp"
#include "assets/blake3.hpp"
#include "base/crypto.hpp"
#include "workflow/autofix.hpp"
#include "workflow/check.hpp"
#include "workflow/convert.hpp"
#include "workflow/parameters.hpp"
#include "workflow/security.hpp"

namespace comfyd::api {
namespace {

bool is_plain_host(std::string_view host) {
    return !host.empty() && host.size() <= 260 &&
           std::all_of(host.begin(), host.end(), [](unsigned char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
           });
}

Error missing_asset(const workflow::AssetReference& reference, const std::string& why) {
    return Error(
        Code::missing_asset,
        "node " + reference.node_id + ", input '" + reference.input + "': " + why +
            "; upload the file first and refer to the id you get",
        {{"node_errors",
          json::object{
              {reference.node_id,
               json::array{json::object{{"field", reference.input}, {"reason", "missing_asset"}}}}
          }}}
    );
}

// The contract's word for a reference that says nothing usable is the same as for one that leads
// nowhere; the check of the workflow would take it for an ordinary value.
Result<> check_references(const json::object& graph) {
    for (const auto& node : graph) {
        const json::object* members = node.value().if_object();
        const json::value* inputs = members == nullptr ? nullptr : json::find(*members, "inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (const auto& input : inputs->get_object()) {
            const json::object* reference = input.value().if_object();
            const json::value* type =
                reference == nullptr ? nullptr : json::find(*reference, "__type");
            if (type == nullptr || *type != "core/ASSET") {
                continue;
            }
            const json::value* about = json::find(*reference, "info");
            if (about == nullptr || !about->is_object()) {
                workflow::AssetReference named;
                named.node_id = node.key();
                named.input = input.key();
                return fail(missing_asset(named, "the asset reference has no 'info'"));
            }
        }
    }
    return {};
}

// The id is authoritative; the hash counts only where there is no id.
Task<Result<>> check_asset(
    const std::string& tenant, const Services& services, const workflow::AssetReference& reference
) {
    if (!reference.id.empty()) {
        const auto id = AssetId::parse(reference.id);
        if (!id) {
            co_return fail(
                missing_asset(reference, "'" + reference.id + "' is not the id of an asset")
            );
        }
        auto asset = co_await services.assets.get(tenant, *id);
        if (!asset && asset.error().code == Code::not_found) {
            co_return fail(missing_asset(reference, "there is no asset " + reference.id));
        }
        if (!asset) {
            co_return fail(std::move(asset.error()));
        }
        co_return Result<>();
    }
    if (!assets::is_blake3_name(reference.hash)) {
        co_return fail(missing_asset(reference, "the asset reference has neither an id nor a hash")
        );
    }
    auto known = co_await services.assets.has_hash(tenant, reference.hash);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    if (!*known) {
        co_return fail(missing_asset(reference, "there is no asset with hash " + reference.hash));
    }
    co_return Result<>();
}

Task<Result<>> check_assets(
    std::string tenant, const Services& services, std::vector<workflow::AssetReference> references
) {
    std::map<std::pair<std::string, std::string>, bool> seen;  // a picture is often used twice
    for (const workflow::AssetReference& reference : references) {
        if (!seen.emplace(std::pair(reference.id, reference.hash), true).second) {
            continue;
        }
        auto found = co_await check_asset(tenant, services, reference);
        if (!found) {
            co_return found;
        }
    }
    co_return Result<>();
}

// Everything that makes two requests the same, but no credentials.
std::string hash_request(
    const jobs::Spec& spec, std::optional<Millis> time_to_live, json::object graph
) {
    json::object all(graph.storage());
    all["workflow"] = std::move(graph);
    all["dialect"] = spec.dialect;
    all["priority"] = spec.priority;
    all["timeout_ms"] = spec.timeout.count();
    all["max_attempts"] = spec.max_attempts;
    all["extra_data"] = spec.extra_data;
    all["metadata"] = spec.metadata;
    all["dialect_data"] = spec.dialect_data;
    all["workflow_id"] = spec.workflow_id;
    if (spec.deadline) {
        all["deadline"] = to_unix_ms(*spec.deadline);
    }
    if (time_to_live) {
        all["time_to_live_ms"] = time_to_live->count();
    }
    if (spec.webhook) {
        all["webhook"] = spec.webhook->to_json();
    }
    return to_hex(sha256(json::serialize_canonical(all)));
}

// Puts what the editor would send in the place of its save format. It decides for "a {red|blue}
// car" by chance, so requests with a key are told from each other by `given`, which was sent, and
// not by what was made of it.
Result<> convert(
    const Submission& submission,
    const workflow::Catalogue& catalogue,
    const Services& services,
    json::object& graph,
    json::object& given
) {
    if (!submission.converts_editor_format || !catalogue.knows_workers() ||
        !workflow::is_ui_format(graph)) {
        return {};
    }
    auto converted = convert_editor_format(graph, catalogue, services.clock.now());
    if (!converted) {
        return fail(std::move(converted.error()));
    }
    if (!submission.spec.idempotency_key.empty()) {
        given["workflow"] = std::move(graph);
        given["parameters"] = submission.parameters;
    }
    graph = std::move(*converted);
    return {};
}

// As for convert(): what comes next may make something else of the same request at another time.
void keep_given(
    const Submission& submission,
    const workflow::Bound& bound,
    const json::object& graph,
    json::object& given
) {
    if (!submission.spec.idempotency_key.empty() && given.empty()) {
        given["workflow"] = graph;
        bound.forget_chosen(given.at("workflow").get_object());
    }
}

// Depends on what the workers have.
json::array put_right(
    const Submission& submission,
    const workflow::Catalogue& catalogue,
    const workflow::Bound& bound,
    json::object& graph,
    json::object& given
) {
    json::array warnings;
    if (!submission.auto_fix || !catalogue.knows_workers()) {
        return warnings;
    }
    keep_given(submission, bound, graph, given);
    for (const workflow::Fix& fix : workflow::validate_and_fix(graph, catalogue).fixes) {
        warnings.emplace_back(fix.to_json());
    }
    return warnings;
}

}  // namespace

Result<json::object> convert_editor_format(
    const json::object& graph, const workflow::Catalogue& catalogue, Time now
) {
    std::random_device device;
    workflow::ConvertOptions options;
    options.choose = [&device](std::size_t count) { return device() % count; };
    options.now = now;
    return workflow::convert_ui(graph, catalogue, options);
}

Task<Result<json::object>> read_json_body(
    Call& call, const Services& services, std::uint64_t bytes_max
) {
    const std::string_view encoding = call.request.headers.get("Content-Encoding");
    if (!encoding.empty() && !net::equal_ignoring_case(encoding, "identity")) {
        co_return fail(
            Code::unsupported_media_type,
            "Content-Encoding '" + std::string(encoding) + "' is not supported: send plain JSON"
        );
    }
    const std::string_view type = call.request.headers.get("Content-Type");
    if (type.starts_with("multipart/")) {
        co_return fail(
            Code::unsupported_media_type,
            "this route takes a JSON body, not '" + std::string(type) + "'"
        );
    }
    auto body =
        co_await call.exchange.read_body(std::min(bytes_max, services.options.json_body_bytes_max));
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    if (body->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return fail(Code::invalid_argument, "the request needs a JSON object as its body");
    }
    // A workflow is thousands of small values that die together.
    co_return json::parse_object(
        *body,
        boost::json::make_shared_resource<boost::json::monotonic_resource>(body->size() + 256)
    );
}

Task<Result<jobs::Submitted>> submit(
    const Call& call, const Services& services, Submission submission
) {
    const json::object& inner = workflow::unwrap(submission.workflow);
    const bool is_wrapped = &inner != &submission.workflow;
    json::object graph = is_wrapped ? json::object(inner, submission.workflow.storage())
                                    : json::object(std::move(submission.workflow));
    const auto catalogue = services.catalogue();
    json::object given;
    if (auto converted = convert(submission, *catalogue, services, graph, given); !converted) {
        co_return fail(std::move(converted.error()));
    }
    if (auto references = check_references(graph); !references) {
        co_return fail(std::move(references.error()));
    }
    workflow::BindOptions bind_options;
    bind_options.declared =
        is_wrapped ? workflow::declared_parameters(submission.workflow) : nullptr;
    workflow::Bound bound;
    if (!workflow::is_ui_format(graph)) {
        auto done = workflow::bind_parameters(graph, submission.parameters, bind_options);
        if (!done) {
            co_return fail(std::move(done.error()));
        }
        bound = std::move(*done);
    }
    json::array warnings = put_right(submission, *catalogue, bound, graph, given);
    if (auto secure = workflow::check_security(
            graph, security_of(services.options, call.caller.tenant), *catalogue
        );
        !secure) {
        co_return fail(std::move(secure.error()));
    }
    auto checked = workflow::check(graph, *catalogue);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    auto assets = co_await check_assets(call.caller.tenant, services, std::move(checked->assets));
    if (!assets) {
        co_return fail(std::move(assets.error()));
    }
    // Last: a workflow that cannot run is not worth a download.
    auto sources = workflow::find_file_sources(graph, *catalogue);
    if (!sources.empty()) {
        keep_given(submission, bound, graph, given);
        auto placed = co_await place_inputs(call, services, std::move(sources), graph);
        if (!placed) {
            co_return fail(std::move(placed.error()));
        }
    }
    jobs::Spec spec = std::move(submission.spec);
    spec.tenant = call.caller.tenant;
    spec.workflow = json::serialize(graph);
    spec.requirement = std::move(checked->requirement);
    spec.node_count = checked->node_count;
    spec.profile = make_profile(graph, catalogue, services.options.plan, spec);
    if (!spec.idempotency_key.empty()) {
        bound.forget_chosen(graph);
        spec.request_hash =
            !submission.request.empty()
                ? to_hex(sha256(json::serialize_canonical(submission.request)))
                : hash_request(
                      spec, submission.time_to_live, std::move(given.empty() ? graph : given)
                  );
    }
    if (auto chosen = bound.chosen(); !chosen.empty()) {
        spec.dialect_data["chosen_parameters"] = std::move(chosen);
    }
    if (!warnings.empty()) {
        spec.dialect_data["warnings"] = std::move(warnings);
    }
    if (submission.time_to_live) {
        spec.deadline = services.clock.now() + *submission.time_to_live;
    }
    const std::string dialect = spec.dialect;
    auto submitted = co_await services.jobs.submit(std::move(spec));
    if (submitted && !submitted->replayed) {
        services.metrics.job_submitted(dialect);
    }
    co_return submitted;
}

std::string base_url(const net::Request& request, const ApiOptions& options) {
    if (!options.public_url.empty()) {
        std::string url = options.public_url;
        while (url.ends_with('/')) {
            url.pop_back();
        }
        return url;
    }
    const std::string_view host = request.headers.get("Host");
    return request.scheme + "://" + (is_plain_host(host) ? std::string(host) : "localhost");
}

Download download_link(const AssetId& id, const net::Request& request, const Services& services) {
    auto link = services.links.sign(id, services.clock.now());
    return {base_url(request, services.options) + link.target, link.expires_at};
}

}  // namespace comfyd::api
