#include "admission/profile.hpp"

#include <algorithm>

#include "base/find_mark.hpp"
#include "base/lru_map.hpp"
#include "workflow/catalogue/models.hpp"
#include "workflow/graph/content_key.hpp"
#include "workflow/merge/merge.hpp"
#include "workflow/plan/fingerprint.hpp"

namespace comfyd::admission {
namespace {

constexpr std::size_t kKeyBytesMax = 16 * 1024;
constexpr std::size_t kKeptMax = 256;  // a thread

// Everything of a workflow that its profile depends on: all but seeds, and texts that name no
// embedding.
class Key {
public:
    explicit Key(const json::object& workflow) {
        for (const auto& node : workflow) {
            key_.add_text(node.key());
            const json::object* members = node.value().if_object();
            const json::value* inputs =
                members == nullptr ? nullptr : json::find(*members, "inputs");
            const json::value* type =
                members == nullptr ? nullptr : json::find(*members, "class_type");
            if (type != nullptr) {
                key_.add_value(*type);
            }
            if (inputs == nullptr || !inputs->is_object()) {
                continue;
            }
            for (const auto& input : inputs->get_object()) {
                add_input(input.key(), input.value());
            }
        }
    }

    bool names_models() const { return names_models_; }
    std::string& text() { return key_.text(); }

private:
    void add_input(std::string_view name, const json::value& value) {
        key_.add_text(name);
        if (value.is_string()) {
            names_models_ = names_models_ || workflow::is_model_input(name);
            const std::string_view text = value.get_string();
            if (workflow::is_batchable(name, value, nullptr) && !holds_mark(text, "embedding:")) {
                return;
            }
        } else if (value.is_number() && (name == "seed" || name.ends_with("_seed"))) {
            return;
        }
        key_.add_value(value);
    }

    workflow::ContentKey key_;
    bool names_models_ = false;
};

scheduler::ProfilePtr plan_profile(
    const json::object& workflow,
    const workflow::Catalogue& catalogue,
    const workflow::PlanOptions& options,
    const Requirement& requirement,
    bool may_be_merged
) {
    const workflow::Plan plan = workflow::make_plan(workflow::Graph(workflow), catalogue, options);
    auto profile = std::make_shared<scheduler::Profile>(profile_of(plan));
    profile->requirement = requirement;
    // Asked only where some worker can merge.
    profile->can_be_merged = may_be_merged && catalogue.find(workflow::kMergeNode) != nullptr &&
                             !workflow::why_not_mergeable(workflow, catalogue);
    return profile;
}

// Those that were made with one catalogue. One thread.
struct Kept {
    std::shared_ptr<const workflow::Catalogue> catalogue;
    LruMap<scheduler::ProfilePtr> profiles{kKeptMax};
};

}  // namespace

scheduler::Profile profile_of(const workflow::Plan& plan) {
    scheduler::Profile profile;
    for (const workflow::ModelNeed& model : plan.models) {
        profile.models.push_back(
            {std::string(to_string(model.kind)) + "/" + model.name, model.estimated_bytes}
        );
    }
    std::ranges::sort(profile.models, {}, &scheduler::Model::name);
    profile.shape = plan.batch_key;
    profile.work_units = plan.work_units;
    profile.heuristic_seconds = plan.heuristic_seconds;
    profile.vram_bytes = plan.vram_bytes;
    return profile;
}

scheduler::ProfilePtr make_profile(
    const json::object& workflow,
    const std::shared_ptr<const workflow::Catalogue>& catalogue,
    const workflow::PlanOptions& options,
    const jobs::Spec& spec
) {
    Key key(workflow);
    if (!key.names_models()) {
        return nullptr;
    }
    // One prompt has one set of credentials and of targets.
    const bool may_be_merged = spec.secret_extra_data.empty() && spec.targets.empty();
    const auto make = [&] {
        return plan_profile(workflow, *catalogue, options, spec.requirement, may_be_merged);
    };
    if (key.text().size() > kKeyBytesMax) {
        return make();
    }
    thread_local Kept kept;
    if (kept.catalogue != catalogue) {
        kept.profiles.clear();
        kept.catalogue = catalogue;
    }
    key.text() += may_be_merged ? '+' : '-';
    key.text() += std::to_string(options.model_files.changes ? options.model_files.changes() : 0);
    key.text() += spec.requirement.machine_text();
    scheduler::ProfilePtr& profile = kept.profiles.use(key.text());
    if (!profile) {
        profile = make();
    }
    return profile;
}

}  // namespace comfyd::admission
