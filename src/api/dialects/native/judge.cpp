#include "api/dialects/native/judge.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "workflow/check.hpp"
#include "workflow/worker_lack.hpp"

namespace comfyd::api::native {
namespace {

// Which word ComfyUI uses for the file that an input takes.
const char* kind_of(const workflow::InputDefinition& input) {
    if (input.options != nullptr && input.options->contains("audio_upload")) {
        return "audio";
    }
    if (input.options != nullptr && input.options->contains("video_upload")) {
        return "video";
    }
    return "image";
}

bool offers(const workflow::InputDefinition& input, const json::value& value) {
    return input.choices == nullptr ||
           std::find(input.choices->begin(), input.choices->end(), value) != input.choices->end();
}

// The classes of the fleet; files are looked for among the tenant's own too.
class FleetClasses final : public workflow::PromptClasses {
public:
    FleetClasses(const workflow::Catalogue& catalogue, const std::vector<FileReference>& files)
        : catalogue_(catalogue) {
        for (const FileReference& file : files) {
            files_.insert(file.value);
        }
    }

    const workflow::NodeDefinition* find(std::string_view class_type) const override {
        return catalogue_.find(class_type);
    }

    const workflow::OwnCheck* own_check(const workflow::NodeDefinition& definition) const override {
        const auto known = checks_.find(&definition);
        if (known != checks_.end()) {
            return known->second.get();
        }
        auto& made = checks_[&definition];
        const workflow::OwnCheck* told = catalogue_.own_check(definition);
        if (told != nullptr) {
            made = std::make_unique<workflow::OwnCheck>(*told);
        }
        for (const workflow::InputDefinition* input : definition.all_inputs()) {
            if (input->takes_upload()) {
                add_check(made, *input);
                break;
            }
        }
        return made.get();
    }
    bool tells_own_checks(const workflow::NodeDefinition& definition) const override {
        return catalogue_.tells_own_checks(definition);
    }

private:
    // Of the file that the input names; the rest of a class's own check is the worker's.
    void add_check(
        std::unique_ptr<workflow::OwnCheck>& check, const workflow::InputDefinition& input
    ) const {
        if (!check) {
            check = std::make_unique<workflow::OwnCheck>();
        }
        check->inputs.push_back(input.name);
        check->check = [this, &input](const json::object& inputs, const auto&)
            -> std::optional<workflow::OwnRefusal> {
            const json::value* value = json::find(inputs, input.name);
            const auto* name = value == nullptr ? nullptr : value->if_string();
            if (name == nullptr || files_.contains(std::string(*name)) || offers(input, *value)) {
                return std::nullopt;
            }
            return workflow::OwnRefusal{
                std::string("Invalid ") + kind_of(input) + " file: " + std::string(*name)
            };
        };
    }

    const workflow::Catalogue& catalogue_;
    std::set<std::string> files_;
    mutable std::map<const workflow::NodeDefinition*, std::unique_ptr<workflow::OwnCheck>> checks_;
};

// Nothing is known of any class yet: the worker that comes will judge it.
Judgement judge_syntax(
    const workflow::Catalogue& catalogue, const json::object& prompt, std::string_view pool
) {
    Judgement judgement;
    auto checked = workflow::check(prompt, catalogue, pool);
    if (!checked) {
        judgement.verdict.error =
            workflow::make_prompt_error("invalid_prompt", checked.error().message, "");
        return judgement;
    }
    judgement.verdict.accepted = true;
    judgement.requirement = std::move(checked->requirement);
    return judgement;
}

}  // namespace

Judgement refuse_for(
    const std::vector<workflow::Issue>& issues, std::string_view type, std::string_view message
) {
    Judgement judgement;
    judgement.verdict.error = workflow::make_prompt_error(type, message, issues.front().message);
    json::object& nodes = judgement.verdict.node_errors;
    for (const workflow::Issue& issue : issues) {
        if (issue.node_id.empty()) {
            continue;
        }
        json::value& about = nodes[issue.node_id];
        if (!about.is_object()) {
            about = json::object{
                {"errors", json::array()},
                {"dependent_outputs", json::array()},
                {"class_type", issue.class_type}
            };
        }
        about.at("errors").as_array().emplace_back(workflow::make_prompt_error(
            issue.code, issue.message, issue.input, {{"input_name", issue.input}}
        ));
    }
    return judgement;
}

Judgement judge(
    const workflow::Catalogue& catalogue,
    json::object& prompt,
    const std::vector<std::string>* targets,
    const std::vector<FileReference>& files,
    const workflow::SecurityPolicy& policy,
    std::string_view pool
) {
    const auto issues = workflow::find_security_issues(workflow::Graph(prompt), policy, catalogue);
    if (!issues.empty()) {  // though ComfyUI itself refuses nobody
        return refuse_for(issues, "prompt_not_allowed", "Prompt is not allowed here");
    }
    if (!catalogue.knows_workers()) {
        return judge_syntax(catalogue, prompt, pool);
    }
    const FleetClasses classes(catalogue, files);
    workflow::PromptOptions options;
    options.targets = targets;
    options.own_checks_known = false;
    Judgement judgement;
    judgement.verdict = workflow::judge_prompt(prompt, classes, options);
    if (!judgement.verdict.accepted) {
        return judgement;
    }
    judgement.requirement = workflow::with_pool(catalogue.requirement_of(prompt), pool);
    if (const auto lack = workflow::find_lack(catalogue, judgement.requirement)) {
        judgement.verdict.accepted = false;
        judgement.verdict.error = workflow::make_prompt_error(
            "no_capable_worker",
            "No single worker has all that this prompt needs",
            lack->message(),
            lack->details()
        );
    }
    return judgement;
}

}  // namespace comfyd::api::native
