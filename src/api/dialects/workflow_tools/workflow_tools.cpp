#include "api/dialects/workflow_tools/workflow_tools.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "admission/form.hpp"
#include "admission/model_fit.hpp"
#include "admission/named_files.hpp"
#include "admission/own_checks.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "api/workflow_source.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/plan/determinism.hpp"
#include "workflow/rules/autofix.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::api {
namespace workflow_tools {
namespace {

using workflow::Stage;

// What a request asks to look at.
struct Wish {
    json::object graph;
    workflow::Bound bound;
    bool auto_fix = false;
    bool check_urls = false;
    bool plan = false;
    bool converted = false;  // from the editor's format
    MachineWish machine{};
    admission::NamedFiles files{};
    std::vector<workflow::MissingFile> coming{};             // models that workers would fetch
    std::shared_ptr<const workflow::Catalogue> catalogue{};  // that it was read with
};

// The body with the workflow in it, wherever that was to be had.
Task<Result<json::object>> read_request(Call& call, const Services& services) {
    auto body = co_await read_workflow_body(call, services);
    if (!body) {
        co_return body;
    }
    auto opened = co_await open_workflow(call, services, *body, "workflow");
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    co_return body;
}

Result<Wish> decode(
    const Call& call,
    const Services& services,
    json::object body,
    const workflow::Catalogue& catalogue
) {
    Wish wish;
    auto machine = decode_machine(call, services, body);
    if (!machine) {
        return fail(std::move(machine.error()));
    }
    wish.machine = std::move(*machine);
    for (auto [name, member] :
         {std::pair("auto_fix", &Wish::auto_fix),
          std::pair("check_urls", &Wish::check_urls),
          std::pair("plan", &Wish::plan)}) {
        auto flag = json::find_bool(body, name);
        if (!flag) {
            return fail(std::move(flag.error()));
        }
        wish.*member = flag->value_or(false);
    }
    const auto parameters = json::find_object(body, "input_params");
    if (!parameters) {
        return fail(parameters.error());
    }
    Submission submission;
    if (auto taken = take_workflow(body, "workflow", "workflow", submission); !taken) {
        return fail(std::move(taken.error()));
    }
    // Without classes the editor's format cannot be read; the syntax stage says so.
    auto form = admission::put_in_form(
        std::move(submission.workflow),
        *parameters != nullptr ? **parameters : json::object(),
        catalogue,
        services.clock.now()
    );
    if (!form) {
        return fail(std::move(form.error()));
    }
    // Models that a worker would fetch for it are no fault of it.
    auto wanted = admission::find_wanted_models(
        services.rules.models,
        call.caller.tenant,
        form->graph,
        form->editor_format ? &*form->editor_format : nullptr,
        catalogue
    );
    wanted.apply(form->graph);
    wish.coming = std::move(wanted.coming);
    wish.graph = std::move(form->graph);
    wish.bound = std::move(form->bound);
    wish.converted = form->editor_format.has_value();
    return wish;
}

workflow::ValidationOptions validation_options(
    const Call& call, const Services& services, const Wish& wish
) {
    workflow::ValidationOptions options;
    options.security = *services.rules.security_of(call.caller.tenant);
    options.plan = services.rules.plan;
    options.gpu_memory_mb = services.options.gpu_memory_mb;
    options.machine = wish.machine;
    options.missing_files = wish.files.missing;
    std::ranges::copy(wish.coming, std::back_inserter(options.missing_files));
    return options;
}

workflow::Fixed look_at(
    Wish& wish, const workflow::Catalogue& catalogue, const workflow::ValidationOptions& options
) {
    workflow::Fixed fixed =
        wish.auto_fix ? workflow::validate_and_fix(wish.graph, catalogue, options)
                      : workflow::Fixed{workflow::validate(wish.graph, catalogue, options), {}};
    std::ranges::copy(
        wish.files.foreign, std::back_inserter(fixed.validation.at(Stage::semantic).issues)
    );
    return fixed;
}

json::array warnings_of(const workflow::Fixed& fixed) {
    json::array made;
    for (const workflow::Fix& fix : fixed.fixes) {
        made.emplace_back(fix.to_json());
    }
    return made;
}

json::object plan_json(
    const Wish& wish,
    const workflow::Validation& validation,
    const workflow::Catalogue& catalogue,
    const Services& services
) {
    const workflow::Graph graph(wish.graph);
    json::object made = validation.plan->to_json(graph);
    const auto why_not = workflow::why_not_reusable(
        graph, validation.plan->needed, catalogue, services.rules.reuse_never_nodes
    );
    made["reusable"] = !why_not;
    if (why_not) {
        made["not_reusable"] = why_not->to_json();
    }
    return made;
}

json::object answer_of(
    const Wish& wish,
    const workflow::Fixed& fixed,
    const workflow::Catalogue& catalogue,
    const Services& services
) {
    json::object body = fixed.validation.to_json();
    body["warnings"] = warnings_of(fixed);
    if (!fixed.fixes.empty() || wish.converted) {
        body["workflow"] = wish.graph;
    }
    if (auto chosen = wish.bound.chosen(); !chosen.empty()) {
        body["chosen_parameters"] = std::move(chosen);
    }
    if (wish.plan) {
        body["plan"] = fixed.validation.plan
                           ? json::value(plan_json(wish, fixed.validation, catalogue, services))
                           : json::value(nullptr);
    }
    return body;
}

Task<> refuse(Call& call, const Services& services, Error error) {
    return send(
        call,
        workflows::error_response(error, services.clock.now(), workflows::kV2, call.request.path)
    );
}

Task<> answer(Call& call, json::object body) {
    net::Response response = json_response(200, body);
    workflows::add_version_headers(response.headers, workflows::kV2, call.request.path);
    return send(call, std::move(response));
}

Task<Result<Wish>> read_wish(Call& call, const Services& services) {
    auto body = co_await read_request(call, services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto catalogue = services.catalogue();
    auto wish = decode(call, services, std::move(*body), *catalogue);
    if (!wish) {
        co_return wish;
    }
    auto files =
        co_await admission::find_named_files(services, call.caller.tenant, wish->graph, catalogue);
    if (!files) {
        co_return fail(std::move(files.error()));
    }
    wish->files = std::move(*files);
    if (!services.rules.models.only_warns) {
        auto unfit = admission::find_unfit_models(services.rules.models, wish->graph, *catalogue);
        std::ranges::move(unfit, std::back_inserter(wish->files.missing));
    }
    wish->catalogue = std::move(catalogue);
    co_return wish;
}

std::vector<Probed> addresses_of(const json::object& graph, const workflow::Catalogue& catalogue) {
    const auto files = workflow::find_file_sources(graph, catalogue);
    std::vector<Probed> found;
    for (workflow::UrlInput& input : workflow::url_inputs(workflow::Graph(graph), catalogue)) {
        const auto file = std::ranges::find_if(files, [&input](const auto& one) {
            return one.node_id == input.node_id && one.input == input.input;
        });
        const auto kind = file == files.end() ? workflow::FileKind::other : file->kind;
        found.push_back({std::move(input), kind});
    }
    return found;
}

// As a submission would be: the classes' own checks come last.
Task<> add_own_checks(const Services& services, const Wish& wish, workflow::Validation& into) {
    const auto checked =
        workflow::check(wish.graph, *wish.catalogue, wish.machine, wish.files.missing);
    if (!into.valid() || !checked) {
        co_return;
    }
    const auto heard = co_await admission::ask_own_checks(
        services, *wish.catalogue, wish.graph, {}, checked->requirement
    );
    if (heard) {
        auto found = workflow::issues_of(*heard, wish.graph, *wish.catalogue);
        std::ranges::move(found, std::back_inserter(into.at(Stage::semantic).issues));
    }
}

Task<> validate(Call& call, const Services& services) {
    auto wish = co_await read_wish(call, services);
    if (!wish) {
        co_await refuse(call, services, std::move(wish.error()));
        co_return;
    }
    workflow::Fixed fixed =
        look_at(*wish, *wish->catalogue, validation_options(call, services, *wish));
    if (wish->check_urls && fixed.validation.valid()) {
        const auto policy = services.rules.security_of(call.caller.tenant);
        auto found = co_await probe_urls(
            call.exchange.executor(),
            addresses_of(wish->graph, *wish->catalogue),
            *policy,
            services.rules.inputs.ca_file
        );
        std::ranges::move(found, std::back_inserter(fixed.validation.at(Stage::security).issues));
    }
    co_await add_own_checks(services, *wish, fixed.validation);
    co_await answer(call, answer_of(*wish, fixed, *wish->catalogue, services));
}

Task<> plan(Call& call, const Services& services) {
    auto wish = co_await read_wish(call, services);
    if (!wish) {
        co_await refuse(call, services, std::move(wish.error()));
        co_return;
    }
    workflow::Fixed fixed =
        look_at(*wish, *wish->catalogue, validation_options(call, services, *wish));
    co_await add_own_checks(services, *wish, fixed.validation);
    if (!fixed.validation.valid()) {
        co_await refuse(call, services, workflow::issues_error(fixed.validation.errors()));
        co_return;
    }
    json::object made = plan_json(*wish, fixed.validation, *wish->catalogue, services);
    made["warnings"] = warnings_of(fixed);
    if (auto chosen = wish->bound.chosen(); !chosen.empty()) {
        made["chosen_parameters"] = std::move(chosen);
    }
    co_await answer(call, std::move(made));
}

}  // namespace
}  // namespace workflow_tools

void add_workflow_tools(Router& router, const Services& services) {
    using namespace workflow_tools;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add = [&](std::string_view path, Function function, json::object operation) {
        Route route;
        route.method = net::Method::post;
        route.pattern = "/v2/workflows/" + std::string(path);
        route.handler = [&services, function](Call& call) { return function(call, services); };
        route.encode_error = [&services](const Error& error) {
            return workflows::error_response(error, services.clock.now(), workflows::kV2, "");
        };
        route.access = Access::jobs_read;
        route.operation = std::move(operation);
        router.add(std::move(route));
    };
    add("validate", validate, operation_validate());
    add("plan", plan, operation_plan());
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
