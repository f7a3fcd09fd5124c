#include "workflow/catalogue/definition.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/definition_reader.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::workflow {

bool InputDefinition::offers(const json::value& choice) const {
    if (choices == nullptr) {
        return false;
    }
    if (choice_index != nullptr && choice.is_string()) {
        return choice_index->contains(view(choice.get_string()));
    }
    return std::ranges::any_of(*choices, [&](const json::value& offered) {
        return python_equal(offered, choice);
    });
}

bool InputDefinition::takes_upload() const {
    return options != nullptr && std::ranges::any_of(*options, [](const auto& option) {
               return view(option.key()).ends_with("upload") && option.value().is_bool() &&
                      option.value().get_bool();
           });
}

NodeDefinition::NodeDefinition() = default;
NodeDefinition::~NodeDefinition() = default;

// Walks the items: those that a node has with its values, or all of them.
class NodeDefinition::Expander {
public:
    explicit Expander(const json::object* values) : values_(values) {}

    void walk(const std::vector<Item>& items) {
        for (const Item& item : items) {
            switch (item.kind) {
                case Item::Kind::plain:
                    add(item.input);
                    break;
                case Item::Kind::growing:
                    walk(item.items);
                    break;
                case Item::Kind::combo:
                    walk_choices(item);
                    break;
                case Item::Kind::slot:
                    if (values_ == nullptr || values_->contains(item.input.name)) {
                        add(item.input);
                        walk(item.items);
                    }
                    break;
            }
        }
    }

    std::vector<const InputDefinition*> take() {
        required_.insert(required_.end(), optional_.begin(), optional_.end());
        return std::move(required_);
    }

private:
    void add(const InputDefinition& input) {
        (input.need == Need::required ? required_ : optional_).push_back(&input);
    }

    void walk_choices(const Item& item) {
        if (values_ == nullptr) {
            add(item.input);
            for (const Item::Option& option : item.choices) {
                walk(option.items);
            }
            return;
        }
        const json::value* chosen = values_->if_contains(item.input.name);
        if (chosen == nullptr) {
            return;
        }
        for (const Item::Option& option : item.choices) {
            if (python_equal(*option.key, *chosen)) {
                add(item.input);
                walk(option.items);
                return;
            }
        }
    }

    const json::object* values_;
    std::vector<const InputDefinition*> required_;
    std::vector<const InputDefinition*> optional_;
};

Result<std::shared_ptr<const NodeDefinition>> NodeDefinition::from_object_info(
    std::string_view name, json::object info
) {
    std::shared_ptr<NodeDefinition> definition(new NodeDefinition());
    definition->name_ = std::string(name);
    definition->info_ = std::move(info);
    auto read = Reader::read(*definition);
    if (!read) {
        return fail(std::move(read.error()));
    }
    Expander all(nullptr);
    all.walk(definition->items_);
    definition->all_ = all.take();
    if (!definition->dynamic_) {
        definition->fixed_ = definition->all_;
    }
    return definition;
}

const json::value& NodeDefinition::output_type(std::size_t slot) const {
    return (*output_types_)[slot];
}

bool NodeDefinition::output_is_list(std::size_t slot) const {
    if (output_lists_ == nullptr || slot >= output_lists_->size()) {
        return false;
    }
    const json::value& flag = (*output_lists_)[slot];
    return flag.is_bool() && flag.get_bool();
}

bool NodeDefinition::is_v3() const {
    return info_.contains("output_matchtypes") || info_.contains("dev_only") ||
           info_.contains("price_badge");
}

bool NodeDefinition::is_custom() const {
    const json::value* module = json::find(info_, "python_module");
    return module != nullptr && module->is_string() &&
           view(module->get_string()).starts_with("custom_nodes.");
}

InputList NodeDefinition::inputs_for(const json::object& values) const {
    if (!dynamic_) {
        return InputList(fixed_);
    }
    Expander expander(&values);
    expander.walk(items_);
    return InputList(expander.take());
}

const InputDefinition* NodeDefinition::find_input(
    std::string_view flat_name, const json::object& values
) const {
    for (const InputDefinition& input : inputs_for(values)) {
        if (input.name == flat_name) {
            return &input;
        }
    }
    return nullptr;
}

}  // namespace comfyd::workflow
