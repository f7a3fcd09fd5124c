#include "admission/admit.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "admission/asset_check.hpp"
#include "admission/extra_data.hpp"
#include "admission/form.hpp"
#include "admission/inputs.hpp"
#include "admission/judge.hpp"
#include "admission/known_shapes.hpp"
#include "admission/model_fit.hpp"
#include "admission/models.hpp"
#include "admission/named_files.hpp"
#include "admission/own_checks.hpp"
#include "admission/profile.hpp"
#include "admission/request_hash.hpp"
#include "admission/reuse.hpp"
#include "admission/workflow_file.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "jobs/preparing.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/autofix.hpp"

namespace comfyd::admission {
namespace {

using Why = Refusal::Why;

// nullopt: no job has come of this key yet, or there is no key.
Task<Result<std::optional<jobs::Submitted>>> find_held(
    const Desk& desk, const Submission& submission, json::object given
) {
    const jobs::Spec& spec = submission.spec;
    if (spec.idempotency_key.empty()) {
        co_return std::nullopt;
    }
    auto found = co_await desk.jobs.find_submitted(
        spec.tenant, spec.idempotency_key, request_hash(submission, std::move(given))
    );
    co_return found;
}

// One submission on its way.
class Way {
public:
    Way(const Desk& desk, Submission submission)
        : desk_(desk),
          submission_(std::move(submission)),
          spec_(submission_.spec),
          graph_(submission_.workflow.storage()) {}

    Task<Decision<Admitted>> go() {
        using Step = Task<Decision<void>> (Way::*)();
        static constexpr std::array<Step, 6> kSteps{
            &Way::bring_workflow,
            &Way::put_in_form,
            &Way::judge,
            &Way::bring_files,
            &Way::ask_worker,
            &Way::find_reuse,
        };
        settle_extra_data(spec_);
        for (const Step step : kSteps) {
            auto done = co_await (this->*step)();
            if (!done) {
                co_return tl::unexpected(std::move(done.error()));
            }
            if (admitted_.earlier) {
                co_return std::move(admitted_);
            }
        }
        complete();
        co_return std::move(admitted_);
    }

private:
    // Brings the workflow here, unless the request has been answered before.
    Task<Decision<void>> bring_workflow() {
        if (!submission_.workflow_source.empty()) {
            given_["workflow"] = submission_.workflow_source;
            given_["parameters"] = submission_.parameters;
        }
        if (!given_.empty() || !submission_.request.empty()) {
            auto earlier = co_await find_held(desk_, submission_, given_);
            if (!earlier) {
                co_return refuse(std::move(earlier.error()));
            }
            admitted_.earlier = std::move(*earlier);
        }
        if (!submission_.workflow_source.empty() && !admitted_.earlier) {
            auto workflow = co_await fetch_workflow(
                desk_, spec_.tenant, submission_.workflow_source, submission_.workflow_field
            );
            if (!workflow) {
                co_return refuse(std::move(workflow.error()));
            }
            submission_.workflow = std::move(*workflow);
        }
        co_return Decision<void>();
    }

    // The nodes as a worker takes them, with all values set.
    Task<Decision<void>> put_in_form() {
        catalogue_ = submission_.catalogue ? submission_.catalogue : desk_.catalogue();
        if (submission_.manner == Manner::comfyui) {
            graph_ = std::move(submission_.workflow);
            settle_nodes(graph_, *catalogue_);
        } else {
            auto form = admission::put_in_form(
                std::move(submission_.workflow),
                submission_.parameters,
                *catalogue_,
                desk_.clock.now(),
                submission_.converts_editor_format
            );
            if (!form) {
                co_return refuse(std::move(form.error()));
            }
            graph_ = std::move(form->graph);
            bound_ = std::move(form->bound);
            editor_format_ = std::move(form->editor_format);
        }
        find_models();
        if (editor_format_) {
            keep_given(std::move(*editor_format_));
        }
        if (!wanted_.changes.empty()) {
            keep_given();
            wanted_.apply(graph_);
        }
        put_right();
        co_return Decision<void>();
    }

    // An alias means the version that is current now.
    void find_models() {
        wanted_ = find_wanted_models(
            desk_.rules.models,
            spec_.tenant,
            graph_,
            editor_format_ ? &*editor_format_ : nullptr,
            *catalogue_
        );
        if (!wanted_.models.empty()) {
            json::array models;
            for (const models::WantedModel& model : wanted_.models) {
                models.emplace_back(model.to_json());
            }
            spec_.dialect_data[jobs::kModelsMember] = std::move(models);
        }
    }

    // Depends on what the workers have.
    void put_right() {
        // What no worker has yet is no slip.
        const bool may_fix = submission_.auto_fix && wanted_.coming.empty();
        if (!may_fix || !catalogue_->knows_workers()) {
            return;
        }
        keep_given();
        for (const workflow::Fix& fix : workflow::validate_and_fix(graph_, *catalogue_).fixes) {
            spec_.warnings.emplace_back(fix.to_json());
        }
    }

    // Requests with a key are told from each other by what was sent, where what is made of it may
    // be something else at another time.
    void keep_given() {
        if (!spec_.idempotency_key.empty() && given_.empty()) {
            given_["workflow"] = graph_;
            bound_.forget_chosen(given_.at("workflow").get_object());
        }
    }
    void keep_given(json::object workflow) {
        if (!spec_.idempotency_key.empty() && given_.empty()) {
            given_["workflow"] = std::move(workflow);
            given_["parameters"] = submission_.parameters;
        }
    }

    Task<Decision<void>> judge() {
        const auto policy = desk_.rules.security_of(spec_.tenant);
        if (find_known(policy)) {
            co_return Decision<void>();
        }
        auto allowed = judge_security(graph_, *policy, *catalogue_);
        if (!allowed) {
            co_return allowed;
        }
        auto files = co_await find_named_files(desk_, spec_.tenant, graph_, catalogue_);
        if (!files) {
            co_return refuse(std::move(files.error()));
        }
        std::ranges::move(wanted_.coming, std::back_inserter(files->missing));
        judge_models(files->missing);
        auto verdict = judge_nodes(graph_, *catalogue_, submission_, files->missing);
        if (!verdict) {
            co_return tl::unexpected(std::move(verdict.error()));
        }
        verdict_ = std::move(*verdict);
        for (const std::string& repair : verdict_.repairs) {
            log::info(
                "a prompt was made safe", {{"tenant", spec_.tenant}, {"what", log::foreign(repair)}}
            );
        }
        if (!files->foreign.empty()) {
            Error error = workflow::issues_error(files->foreign);
            co_return refuse(Why::invalid, std::move(error), std::move(files->foreign));
        }
        is_knowable_ = is_knowable_ && files->uses == 0 && files->missing.empty();
        if (!files->own.empty()) {
            keep_given();
            place_own_files(graph_, files->own);
        }
        auto requirement = judge_need(graph_, *catalogue_, spec_.requirement.machine(), wanted_);
        if (!requirement) {
            co_return tl::unexpected(std::move(requirement.error()));
        }
        spec_.requirement = std::move(*requirement);
        co_return Decision<void>();
    }

    // Files that are known not to go together, before any GPU's time.
    void judge_models(std::vector<workflow::MissingFile>& missing) {
        auto unfit = find_unfit_models(desk_.rules.models, graph_, *catalogue_);
        if (!desk_.rules.models.only_warns) {
            std::ranges::move(unfit, std::back_inserter(missing));
            return;
        }
        for (const workflow::MissingFile& file : unfit) {
            spec_.warnings.emplace_back(unfit_warning(file));
        }
        is_knowable_ = is_knowable_ && unfit.empty();
    }

    // The shape of the graph says all that follows from it, where nothing that may change without
    // it has a say.
    bool find_known(const PolicyPtr& policy) {
        is_knowable_ = judges_every_node(submission_.manner, *catalogue_) && wanted_.uses.empty() &&
                       wanted_.coming.empty();
        if (!is_knowable_) {
            return false;
        }
        const bool may_be_merged = spec_.secret_extra_data.empty() &&
                                   (!submission_.targets || submission_.targets->empty());
        policy_ = policy;
        const auto& files = desk_.rules.plan.model_files;
        key_ = key_of_shape(
            graph_,
            *catalogue_,
            policy,
            spec_.requirement,
            may_be_merged,
            files.changes ? files.changes() : 0
        );
        if (const KnownShape* known = KnownShapes::here(catalogue_).find(key_)) {
            is_known_ = true;
            verdict_ = good_verdict(submission_);
            spec_.requirement = known->requirement;
            spec_.profile = known->profile;
        }
        return is_known_;
    }

    // For those to come. Others ask for files, or a worker.
    void keep_known() {
        const bool asks_worker = desk_.ask_worker && catalogue_->needs_worker_to_judge(graph_);
        if (is_knowable_ && !asks_worker && !workflow::may_hold_asset_refs(spec_.workflow)) {
            KnownShapes::here(catalogue_).add(key_, {policy_, spec_.requirement, spec_.profile});
        }
    }

    // Last of what is judged here: a workflow that cannot run is not worth a download.
    Task<Decision<void>> bring_files() {
        if (is_known_) {
            co_return Decision<void>();
        }
        auto missing = co_await find_missing_assets(desk_, spec_.tenant, graph_);
        if (!missing) {
            co_return refuse(std::move(missing.error()));
        }
        if (!missing->empty()) {
            Error error = inputs_error(*missing);
            co_return refuse(Why::unavailable, std::move(error), std::move(*missing));
        }
        const auto sources = workflow::find_file_sources(graph_, *catalogue_);
        if (sources.empty()) {
            co_return Decision<void>();
        }
        is_knowable_ = false;
        keep_given();
        auto earlier = co_await find_held(desk_, submission_, given_);
        if (!earlier) {
            co_return refuse(std::move(earlier.error()));
        }
        if (*earlier) {
            admitted_.earlier = std::move(*earlier);
            co_return Decision<void>();
        }
        auto fetched = co_await fetch_inputs(desk_, spec_.tenant, sources);
        if (!fetched) {
            co_return refuse(std::move(fetched.error()));
        }
        if (!fetched->issues.empty()) {
            Error error = inputs_error(fetched->issues);
            co_return refuse(Why::unavailable, std::move(error), std::move(fetched->issues));
        }
        for (std::size_t i = 0; i < sources.size(); ++i) {
            workflow::place_file(graph_, sources[i], fetched->assets[i].to_json());
        }
        co_return Decision<void>();
    }

    // The classes' own checks, as a worker makes them before anything is queued.
    Task<Decision<void>> ask_worker() {
        if (is_known_) {
            co_return Decision<void>();
        }
        auto heard = co_await ask_own_checks(
            desk_,
            *catalogue_,
            graph_,
            submission_.targets.value_or(std::vector<std::string>()),
            spec_.requirement
        );
        if (!heard) {
            co_return Decision<void>();
        }
        co_return take_verdict(
            std::move(*heard), submission_.manner, graph_, *catalogue_, verdict_
        );
    }

    Task<Decision<void>> find_reuse() {
        if (submission_.targets || !verdict_.node_errors.empty()) {
            spec_.targets = verdict_.outputs_to_execute;
        }
        if (!wants_reuse(desk_.rules, spec_)) {
            co_return Decision<void>();
        }
        auto found = co_await find_reuse_key(desk_, *catalogue_, graph_, spec_);
        if (!found) {
            co_return refuse(std::move(found.error()));
        }
        reuse_ = std::move(*found);
        co_return Decision<void>();
    }

    void complete() {
        spec_.node_count = static_cast<int>(graph_.size());
        spec_.workflow = json::serialize(graph_);
        if (!is_known_) {
            spec_.profile = make_profile(graph_, catalogue_, desk_.rules.plan, spec_);
            keep_known();
        }
        if (!spec_.idempotency_key.empty()) {
            bound_.forget_chosen(graph_);
            spec_.request_hash =
                request_hash(submission_, std::move(given_.empty() ? graph_ : given_));
        }
        spec_.reuse_key = std::move(reuse_.key);
        if (reuse_.why_not && spec_.reuse) {
            spec_.dialect_data["not_reusable"] = reuse_.why_not->to_json();
        }
        if (auto chosen = bound_.chosen(); !chosen.empty()) {
            spec_.dialect_data["chosen_parameters"] = std::move(chosen);
        }
        if (!spec_.warnings.empty()) {
            spec_.dialect_data["warnings"] = spec_.warnings;
        }
        if (!spec_.dialect_data.contains("keep")) {
            const Rules& rules = desk_.rules;
            const auto own = rules.tenants->find(spec_.tenant);
            const auto usual = decide_keeping(rules.keeping, spec_.tenant, own, {});
            if (usual && *usual != jobs::Keeping{}) {
                spec_.dialect_data["keep"] = usual->to_json();
            }
        }
        if (submission_.time_to_live) {
            spec_.deadline = desk_.clock.now() + *submission_.time_to_live;
        }
        admitted_.spec = std::move(spec_);
        admitted_.outputs = std::move(verdict_.outputs_to_execute);
        admitted_.node_errors = std::move(verdict_.node_errors);
    }

    const Desk& desk_;
    Submission submission_;
    jobs::Spec& spec_;  // of the submission
    std::shared_ptr<const workflow::Catalogue> catalogue_;
    json::object graph_;  // what will run
    json::object given_;  // what was sent, where that is something else
    workflow::Bound bound_;
    std::optional<json::object> editor_format_;  // that the graph was made of
    WantedModels wanted_;
    bool is_knowable_ = false;  // by the shape of the graph
    bool is_known_ = false;
    PolicyPtr policy_;
    std::string key_;  // of KnownShapes
    workflow::PromptVerdict verdict_;
    ReuseKey reuse_;
    Admitted admitted_;
};

}  // namespace

Task<Decision<Admitted>> admit(const Desk& desk, Submission submission) {
    Way way(desk, std::move(submission));
    auto admitted = co_await way.go();
    co_return admitted;
}

Task<Result<std::optional<jobs::Submitted>>> find_replay(
    const Desk& desk, const Submission& submission
) {
    return find_held(desk, submission, {});
}

}  // namespace comfyd::admission
