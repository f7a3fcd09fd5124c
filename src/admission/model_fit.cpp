#include "admission/model_fit.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/family.hpp"
#include "workflow/files/model_uses.hpp"
#include "workflow/graph/graph.hpp"

namespace comfyd::admission {
namespace {

using models::FileFacts;
using workflow::Graph;
using workflow::MissingFile;
using workflow::ModelKind;
using workflow::ModelUse;

std::string with_article(std::string_view word) {
    const bool has_vowel = std::string_view("aeiou").find(word.front()) != std::string_view::npos;
    return (has_vowel ? "an " : "a ") + std::string(word);
}

bool is_base(const ModelUse& use) {
    return use.kind == ModelKind::checkpoint || use.kind == ModelKind::unet;
}

class Judge {
public:
    Judge(
        const ModelRules& rules, const json::object& workflow, const workflow::Catalogue& catalogue
    )
        : rules_(rules),
          catalogue_(catalogue),
          registered_(rules.registered ? rules.registered() : nullptr),
          graph_(workflow),
          uses_(workflow::find_model_uses(workflow, catalogue)) {}

    std::vector<MissingFile> run() {
        std::vector<const ModelUse*> good;
        for (const ModelUse& use : uses_) {
            const FileFacts facts = known_of(use);
            std::string why = why_misplaced(use, facts);
            if (why.empty() && use.kind == ModelKind::lora) {
                why = why_other_family(use, facts);
            }
            if (why.empty()) {
                good.push_back(&use);
                continue;
            }
            unfit_.push_back(
                {.node_id = use.node_id,
                 .class_type = use.class_type,
                 .input = use.input,
                 .value = json::value(use.value),
                 .unfit = std::move(why)}
            );
        }
        // Findings are told by class and value: nothing is said against one that is right
        // elsewhere.
        std::erase_if(unfit_, [&good](const MissingFile& file) {
            return std::ranges::any_of(good, [&file](const ModelUse* use) {
                return use->class_type == file.class_type && use->input == file.input &&
                       file.value == json::value(use->value);
            });
        });
        return std::move(unfit_);
    }

private:
    // What all agree on who may run it: the register, and each worker that has such a file. One
    // that has it and says nothing of it has what is registered, where anything is.
    FileFacts known_of(const ModelUse& use) const {
        const auto folders = workflow::model_folders(use.kind);
        if (folders.empty()) {
            return {};
        }
        std::optional<FileFacts> facts;
        if (registered_) {
            const auto wanted = registered_->resolve(folders, use.value);
            const FileFacts* content = wanted ? registered_->find_content(wanted->sha256) : nullptr;
            facts = content != nullptr ? std::optional(*content) : std::nullopt;
        }
        const bool is_registered = facts.has_value();
        for (const auto& worker : catalogue_.workers()) {
            if (!worker.classes->has(use.class_type, use.input, use.value)) {
                continue;
            }
            const auto files = worker.fetches_models && rules_.files != nullptr
                                   ? rules_.files->of(worker.worker)
                                   : nullptr;
            const FileFacts* file =
                files == nullptr ? nullptr : models::find_in(*files, folders, use.value);
            const bool is_read = file != nullptr && file->has_head();
            if (!is_read && !is_registered) {
                return {};
            }
            if (is_read && facts) {
                models::keep_agreed(*facts, *file);
            } else if (is_read) {
                facts = *file;
            }
        }
        return facts.value_or(FileFacts());
    }

    static std::string why_misplaced(const ModelUse& use, const FileFacts& facts) {
        const auto folders = workflow::model_folders(use.kind);
        const bool is_misplaced = !facts.kind.empty() && !folders.empty() &&
                                  std::ranges::all_of(folders, [&facts](std::string_view folder) {
                                      return models::is_misplaced(facts.kind, folder);
                                  });
        return is_misplaced
                   ? "'" + use.value + "' is " + with_article(facts.kind) +
                         " by what is in it, and of no use in " + std::string(folders.front())
                   : "";
    }

    std::string why_other_family(const ModelUse& use, const FileFacts& facts) const {
        const ModelUse* base = facts.family.empty() ? nullptr : base_of(use);
        const FileFacts model = base == nullptr ? FileFacts() : known_of(*base);
        return models::is_of_other_family(facts.family, model.family)
                   ? "'" + use.value + "' is a LoRA for " + facts.family + ", and '" + base->value +
                         "' is of the family " + model.family
                   : "";
    }

    // The file that the LoRA's model is loaded from; nullptr: there is none, or it is not certain.
    const ModelUse* base_of(const ModelUse& lora) const {
        Graph::Position at = graph_.find(lora.node_id);
        if (at == Graph::kNone || is_switched_off(at)) {
            return nullptr;
        }
        for (std::size_t steps = 0; steps < graph_.size(); ++steps) {
            const Graph::Link* link = graph_.link(at, "model");
            if (link == nullptr || !takes_one_model(at) || link->source == Graph::kNone) {
                return nullptr;
            }
            at = link->source;
            if (!gives_model(at, link->slot)) {
                return nullptr;
            }
            std::vector<const ModelUse*> loaded;
            for (const ModelUse& use : uses_) {
                if (use.node_id == graph_[at].id && is_base(use)) {
                    loaded.push_back(&use);
                }
            }
            if (!loaded.empty()) {
                return loaded.size() == 1 && graph_.link(at, "model") == nullptr ? loaded.front()
                                                                                 : nullptr;
            }
        }
        return nullptr;
    }

    bool is_switched_off(Graph::Position at) const {
        const json::value* strength = json::find(*graph_[at].inputs, "strength_model");
        return strength != nullptr && strength->is_number() && strength->to_number<double>() == 0;
    }

    // Of several it may give the other one, or a mixture.
    bool takes_one_model(Graph::Position at) const {
        const workflow::NodeDefinition* definition = catalogue_.find(graph_[at].class_type);
        if (definition == nullptr) {
            return false;
        }
        int models = 0;
        for (const Graph::Link& link : graph_.links(at)) {
            const workflow::InputDefinition* input =
                definition->find_input(link.input, *graph_[at].inputs);
            const bool may_be_anything = input == nullptr || input->type.starts_with('*') ||
                                         input->type.find(',') != std::string::npos;
            if (may_be_anything) {
                return false;
            }
            models += input->type == "MODEL" ? 1 : 0;
        }
        return models == 1;
    }

    bool gives_model(Graph::Position at, int slot) const {
        const workflow::NodeDefinition* definition = catalogue_.find(graph_[at].class_type);
        return definition != nullptr && slot >= 0 &&
               static_cast<std::size_t>(slot) < definition->outputs().size() &&
               definition->outputs()[static_cast<std::size_t>(slot)] == "MODEL";
    }

    const ModelRules& rules_;
    const workflow::Catalogue& catalogue_;
    std::shared_ptr<const models::Register> registered_;
    const Graph graph_;
    std::vector<ModelUse> uses_;
    std::vector<MissingFile> unfit_;
};

}  // namespace

std::vector<MissingFile> find_unfit_models(
    const ModelRules& rules, const json::object& graph, const workflow::Catalogue& catalogue
) {
    const auto registered = rules.registered ? rules.registered() : nullptr;
    const bool knows_any = (registered && registered->contents() > 0) ||
                           (rules.files != nullptr && !rules.files->empty());
    return knows_any ? Judge(rules, graph, catalogue).run() : std::vector<MissingFile>();
}

json::object unfit_warning(const MissingFile& unfit) {
    return {
        {"event", "execution.warning"},
        {"code", "MODEL_UNFIT"},
        {"message", unfit.unfit},
        {"node_id", unfit.node_id},
        {"class_type", unfit.class_type},
        {"input", unfit.input},
        {"from", unfit.value},
        {"to", unfit.value},
    };
}

}  // namespace comfyd::admission
