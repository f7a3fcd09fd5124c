#include "api/submission.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "api/asset_check.hpp"
#include "api/inputs.hpp"
#include "api/named_files.hpp"
#include "api/own_checks.hpp"
#include "api/profile.hpp"
#include "api/reuse.hpp"
#include "api/workflow_source.hpp"
#include "base/crypto.hpp"
#include "workflow/autofix.hpp"
#include "workflow/check.hpp"
#include "workflow/convert.hpp"
#include "workflow/node_replacement.hpp"
#include "workflow/parameters.hpp"
#include "workflow/private_names.hpp"
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

// Everything that makes two requests the same, but no credentials.
std::string hash_request(
    const jobs::Spec& spec, std::optional<Millis> time_to_live, json::object graph
) {
    json::object all(graph.storage());
    all["workflow"] = std::move(graph);
    all["dialect"] = spec.dialect;
    all["priority"] = spec.priority;
    if (spec.batch) {
        all["class"] = "batch";
    }
    if (!spec.fairness_key.empty()) {
        all["fairness_key"] = spec.fairness_key;
    }
    if (const auto pool = workflow::split_pool(spec.requirement).pool; !pool.empty()) {
        all["pool"] = std::string(pool);
    }
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
    if (spec.reuse) {
        all["reuse"] = *spec.reuse;
    }
    return to_hex(sha256(json::serialize_canonical(all)));
}

// `given`: the workflow as it was sent, or what stands for it.
std::string request_hash(const Submission& submission, json::object given) {
    return !submission.request.empty()
               ? to_hex(sha256(json::serialize_canonical(submission.request)))
               : hash_request(submission.spec, submission.time_to_live, std::move(given));
}

// nullopt: no job has come of this key yet, or there is no key.
Task<Result<std::optional<jobs::Submitted>>> find_held(
    const Call& call, const Services& services, const Submission& submission, json::object given
) {
    const std::string& key = submission.spec.idempotency_key;
    if (key.empty()) {
        co_return std::nullopt;
    }
    auto found = co_await services.jobs.find_submitted(
        call.caller.tenant, key, request_hash(submission, std::move(given))
    );
    co_return found;
}

// Brings the workflow here, unless the request has been answered before: then with that answer.
Task<Result<std::optional<jobs::Submitted>>> open_source(
    const Call& call, const Services& services, Submission& submission, json::object& given
) {
    if (!submission.workflow_source.empty()) {
        given["workflow"] = submission.workflow_source;
        given["parameters"] = submission.parameters;
    }
    if (!given.empty() || !submission.request.empty()) {
        auto earlier = co_await find_held(call, services, submission, given);
        if (!earlier || *earlier) {
            co_return earlier;
        }
    }
    if (!submission.workflow_source.empty()) {
        auto workflow = co_await fetch_workflow(
            call, services, submission.workflow_source, submission.workflow_field
        );
        if (!workflow) {
            co_return fail(std::move(workflow.error()));
        }
        submission.workflow = std::move(*workflow);
    }
    co_return std::nullopt;
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
    if (!submission.spec.idempotency_key.empty() && given.empty()) {
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

// The editor's format has nothing that could be bound; the check refuses it.
Result<workflow::Bound> bind(const Submission& submission, bool is_wrapped, json::object& graph) {
    if (workflow::is_ui_format(graph)) {
        return workflow::Bound{};
    }
    workflow::BindOptions options;
    options.declared = is_wrapped ? workflow::declared_parameters(submission.workflow) : nullptr;
    return workflow::bind_parameters(graph, submission.parameters, options);
}

// Depends on what the workers have.
json::array put_right(
    const Submission& submission,
    const workflow::Catalogue& catalogue,
    const workflow::Bound& bound,
    json::object& graph,
    json::object& given
) {
    json::array fixes;
    if (!submission.auto_fix || !catalogue.knows_workers()) {
        return fixes;
    }
    keep_given(submission, bound, graph, given);
    for (const workflow::Fix& fix : workflow::validate_and_fix(graph, catalogue).fixes) {
        fixes.emplace_back(fix.to_json());
    }
    return fixes;
}

// `graph` is what will run, `given` what was sent where that is something else.
jobs::Spec complete_spec(
    const Call& call,
    const Services& services,
    Submission submission,
    const workflow::Bound& bound,
    json::object graph,
    json::object given
) {
    submission.spec.tenant = call.caller.tenant;
    std::string hash;
    std::string workflow = json::serialize(graph);
    scheduler::ProfilePtr profile =
        make_profile(graph, services.catalogue(), services.options.plan, submission.spec);
    if (!submission.spec.idempotency_key.empty()) {
        bound.forget_chosen(graph);
        hash = request_hash(submission, std::move(given.empty() ? graph : given));
    }
    jobs::Spec spec = std::move(submission.spec);
    spec.workflow = std::move(workflow);
    spec.profile = std::move(profile);
    spec.request_hash = std::move(hash);
    if (auto chosen = bound.chosen(); !chosen.empty()) {
        spec.dialect_data["chosen_parameters"] = std::move(chosen);
    }
    if (submission.time_to_live) {
        spec.deadline = services.clock.now() + *submission.time_to_live;
    }
    return spec;
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
    auto parsed = json::parse_object(
        *body,
        boost::json::make_shared_resource<boost::json::monotonic_resource>(body->size() + 256)
    );
    co_return parsed;
}

Task<Result<std::optional<jobs::Submitted>>> find_replay(
    const Call& call, const Services& services, const Submission& submission
) {
    return find_held(call, services, submission, {});
}

Task<Result<jobs::Submitted>> submit(
    const Call& call, const Services& services, Submission submission
) {
    json::object given;
    auto opened = co_await open_source(call, services, submission, given);
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    if (*opened) {
        co_return std::move(**opened);
    }
    const json::object& inner = workflow::unwrap(submission.workflow);
    const bool is_wrapped = &inner != &submission.workflow;
    json::object graph = is_wrapped ? json::object(inner, submission.workflow.storage())
                                    : json::object(std::move(submission.workflow));
    const auto catalogue = services.catalogue();
    if (auto converted = convert(submission, *catalogue, services, graph, given); !converted) {
        co_return fail(std::move(converted.error()));
    }
    workflow::apply_replacements(graph, catalogue->replacements(), *catalogue);
    workflow::wrap_file_lists(graph, *catalogue);
    workflow::forget_folders(graph);
    if (auto references = check_references(graph); !references) {
        co_return fail(std::move(references.error()));
    }
    auto bound = bind(submission, is_wrapped, graph);
    if (!bound) {
        co_return fail(std::move(bound.error()));
    }
    const json::array fixes = put_right(submission, *catalogue, *bound, graph, given);
    if (auto secure = workflow::check_security(
            graph, security_of(services.options, call.caller.tenant), *catalogue
        );
        !secure) {
        co_return fail(std::move(secure.error()));
    }
    auto files = co_await find_named_files(services, call.caller.tenant, graph, catalogue);
    if (!files) {
        co_return fail(std::move(files.error()));
    }
    if (!files->own.empty()) {
        keep_given(submission, *bound, graph, given);
        place_own_files(graph, files->own);
    }
    auto checked = workflow::check(
        graph, *catalogue, workflow::split_pool(submission.spec.requirement).pool, files->missing
    );
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    if (!files->foreign.empty()) {
        co_return fail(workflow::issues_error(files->foreign));
    }
    auto assets = co_await check_assets(call.caller.tenant, services, std::move(checked->assets));
    if (!assets) {
        co_return fail(std::move(assets.error()));
    }
    // Last: a workflow that cannot run is not worth a download.
    auto sources = workflow::find_file_sources(graph, *catalogue);
    if (!sources.empty()) {
        keep_given(submission, *bound, graph, given);
        auto earlier = co_await find_held(call, services, submission, given);
        if (!earlier || *earlier) {
            co_return earlier ? Result<jobs::Submitted>(std::move(**earlier))
                              : fail(std::move(earlier.error()));
        }
        auto placed = co_await place_inputs(call, services, std::move(sources), graph);
        if (!placed) {
            co_return fail(std::move(placed.error()));
        }
    }
    auto passed = co_await pass_own_checks(
        services, *catalogue, graph, submission.spec.targets, checked->requirement
    );
    if (!passed) {
        co_return fail(std::move(passed.error()));
    }
    submission.spec.requirement = std::move(checked->requirement);
    submission.spec.node_count = checked->node_count;
    submission.spec.tenant = call.caller.tenant;
    ReuseKey reuse;
    if (wants_reuse(services.options, submission.spec)) {
        auto found = co_await find_reuse_key(services, *catalogue, graph, submission.spec);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        reuse = std::move(*found);
    }
    jobs::Spec spec = complete_spec(
        call, services, std::move(submission), *bound, std::move(graph), std::move(given)
    );
    spec.reuse_key = std::move(reuse.key);
    if (reuse.why_not && spec.reuse) {
        spec.dialect_data["not_reusable"] = reuse.why_not->to_json();
    }
    if (spec.webhook && services.options.public_url.empty()) {
        // A webhook has no request whose host its links could name.
        spec.dialect_data["base_url"] = base_url(call.request, services.options);
    }
    spec.warnings.insert(spec.warnings.end(), fixes.begin(), fixes.end());
    if (!spec.warnings.empty()) {
        spec.dialect_data["warnings"] = spec.warnings;
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
