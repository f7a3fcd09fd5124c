#include "workflow/catalogue/definition_reader.hpp"

#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kInputsMax = 20'000;  // of one class, dynamic ones counted with every value
constexpr std::size_t kGrowthMax = 1'000;   // ComfyUI's own limit is 100
constexpr std::size_t kNestingMax = 16;     // dynamic inputs inside dynamic inputs
constexpr std::size_t kOutputsMax = 10'000;
constexpr std::size_t kIndexedFrom = 16;  // choices

bool is_true(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_bool() && found->get_bool();
}

const json::object* object_at(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr ? found->if_object() : nullptr;
}

const json::array* array_at(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr ? found->if_array() : nullptr;
}

std::optional<std::size_t> count_at(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    if (found == nullptr || !found->is_int64() || found->get_int64() < 0) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found->get_int64());
}

std::optional<Need> need_of(std::string_view section) {
    if (section == "required") {
        return Need::required;
    }
    if (section == "optional") {
        return Need::optional;
    }
    return std::nullopt;
}

InputDefinition describe(std::string flat_name, Need need, bool nested, const json::value& config) {
    InputDefinition input;
    input.name = std::move(flat_name);
    input.need = need;
    input.nested = nested;
    input.config = &config;
    // What cannot be understood takes anything: the worker that has the class will judge.
    input.type = "*";
    const json::array* pair = config.if_array();
    if (pair == nullptr || pair->empty()) {
        return input;
    }
    if (pair->size() > 1) {
        input.options = (*pair)[1].if_object();
    }
    input.lazy = input.options != nullptr && is_true(*input.options, "lazy");
    const json::value& type = pair->front();
    if (type.is_array()) {
        input.type = "COMBO";
        input.combo_v1 = true;
        input.choices = &type.get_array();
    } else if (type.is_string()) {
        input.type = std::string(view(type.get_string()));
        if (input.type == "COMBO" && input.options != nullptr) {
            input.choices = array_at(*input.options, "options");
        }
    }
    return input;
}

}  // namespace

class NodeDefinition::Reader::Work {
public:
    explicit Work(NodeDefinition& into) : into_(into) {}

    Result<> read() {
        const json::object& info = into_.info_;
        into_.output_node_ = is_true(info, "output_node");
        into_.input_is_list_ = is_true(info, "is_input_list") || is_true(info, "input_is_list");
        auto outputs = read_outputs();
        if (!outputs) {
            return outputs;
        }
        const json::value* input = json::find(info, "input");
        if (input == nullptr) {
            return {};
        }
        if (!input->is_object()) {
            return refuse("'input' is not an object");
        }
        auto items = read_sections(input->get_object(), "", 0);
        if (!items) {
            return fail(std::move(items.error()));
        }
        into_.items_ = std::move(*items);
        read_hidden(input->get_object());
        return {};
    }

private:
    tl::unexpected<Error> refuse(std::string_view what) const {
        return fail(Code::protocol_error, "node class '" + into_.name_ + "': " + std::string(what));
    }

    Result<> read_outputs() {
        const json::value* output = json::find(into_.info_, "output");
        if (output == nullptr) {
            return {};
        }
        if (!output->is_array() || output->get_array().size() > kOutputsMax) {
            return refuse("'output' is not a list of types");
        }
        into_.output_types_ = &output->get_array();
        for (const json::value& type : *into_.output_types_) {
            into_.outputs_.emplace_back(
                type.is_string()  ? view(type.get_string())
                : type.is_array() ? "COMBO"
                                  : "*"
            );
        }
        into_.output_lists_ = array_at(into_.info_, "output_is_list");
        return {};
    }

    void read_hidden(const json::object& sections) {
        const json::object* hidden = object_at(sections, "hidden");
        if (hidden == nullptr) {
            return;
        }
        for (const auto& entry : *hidden) {
            const json::value* type = &entry.value();
            if (type->is_array() && !type->get_array().empty()) {
                type = &type->get_array().front();
            }
            if (type->is_string() && type->get_string() == "UNIQUE_ID") {
                into_.hides_unique_id_ = true;
            }
        }
    }

    // {"required": {...}, "optional": {...}}
    Result<std::vector<Item>> read_sections(
        const json::object& sections, const std::string& prefix, std::size_t depth
    ) {
        std::vector<Item> items;
        for (const auto& section : sections) {
            const auto need = need_of(view(section.key()));
            if (!need || section.value().is_null()) {
                continue;
            }
            if (!section.value().is_object()) {
                return refuse("its inputs are not an object");
            }
            for (const auto& entry : section.value().get_object()) {
                auto item =
                    read_item(prefix + std::string(view(entry.key())), *need, entry.value(), depth);
                if (!item) {
                    return fail(std::move(item.error()));
                }
                items.push_back(std::move(*item));
            }
        }
        return items;
    }

    Result<Item> read_item(
        std::string flat_name, Need need, const json::value& config, std::size_t depth
    ) {
        if (++count_ > kInputsMax) {
            return refuse("it has too many inputs");
        }
        if (depth > kNestingMax) {
            return refuse("its inputs are nested too deeply");
        }
        Item item;
        item.input = describe(std::move(flat_name), need, depth > 0, config);
        if (item.input.choices != nullptr && item.input.choices->size() > kIndexedFrom) {
            item.input.choice_index = index_of(*item.input.choices);
        }
        Result<> read;
        if (item.input.type == "COMFY_DYNAMICCOMBO_V3") {
            item.kind = Item::Kind::combo;
            read = read_choices(item, depth);
        } else if (item.input.type == "COMFY_AUTOGROW_V3") {
            item.kind = Item::Kind::growing;
            read = read_growth(item, depth);
        } else if (item.input.type == "COMFY_DYNAMICSLOT_V3") {
            item.kind = Item::Kind::slot;
            read = read_slot(item, depth);
        }
        into_.dynamic_ = into_.dynamic_ || item.kind != Item::Kind::plain;
        if (!read) {
            return fail(std::move(read.error()));
        }
        return item;
    }

    Result<> read_choices(Item& item, std::size_t depth) {
        const json::array* options =
            item.input.options != nullptr ? array_at(*item.input.options, "options") : nullptr;
        if (options == nullptr) {
            return {};
        }
        for (const json::value& option : *options) {
            const json::object* fields = option.if_object();
            const json::value* key = fields != nullptr ? fields->if_contains("key") : nullptr;
            if (key == nullptr) {
                return refuse("a choice of its input '" + item.input.name + "' has no key");
            }
            Item::Option choice{key, {}};
            if (const json::object* inputs = object_at(*fields, "inputs")) {
                auto items = read_sections(*inputs, item.input.name + ".", depth + 1);
                if (!items) {
                    return fail(std::move(items.error()));
                }
                choice.items = std::move(*items);
            }
            item.choices.push_back(std::move(choice));
        }
        return {};
    }

    Result<> read_slot(Item& item, std::size_t depth) {
        const json::object* inputs =
            item.input.options != nullptr ? object_at(*item.input.options, "inputs") : nullptr;
        if (inputs == nullptr) {
            return {};
        }
        auto items = read_sections(*inputs, item.input.name + ".", depth + 1);
        if (!items) {
            return fail(std::move(items.error()));
        }
        item.items = std::move(*items);
        return {};
    }

    // The template is the first input of its sections; it is required where the section is, and
    // then only the first `min` times.
    Result<> read_growth(Item& item, std::size_t depth) {
        const json::object* form =
            item.input.options != nullptr ? object_at(*item.input.options, "template") : nullptr;
        const json::object* sections = form != nullptr ? object_at(*form, "input") : nullptr;
        if (sections == nullptr) {
            return refuse("its input '" + item.input.name + "' has no template");
        }
        const json::value* config = nullptr;
        Need need = Need::required;
        for (const auto& section : *sections) {
            const json::object* inputs = section.value().if_object();
            const auto section_need = need_of(view(section.key()));
            if (config == nullptr && section_need && inputs != nullptr && !inputs->empty()) {
                config = &inputs->begin()->value();
                need = *section_need;
            }
        }
        auto names = growth_names(*form);
        if (config == nullptr || !names) {
            return refuse("the template of its input '" + item.input.name + "' is not complete");
        }
        const std::size_t min = count_at(*form, "min").value_or(0);
        for (std::size_t i = 0; i < names->size(); ++i) {
            auto grown = read_item(
                item.input.name + "." + (*names)[i],
                i < min ? need : Need::optional,
                *config,
                depth + 1
            );
            if (!grown) {
                return fail(std::move(grown.error()));
            }
            item.items.push_back(std::move(*grown));
        }
        return {};
    }

    static std::optional<std::vector<std::string>> growth_names(const json::object& form) {
        std::vector<std::string> names;
        if (const json::array* given = array_at(form, "names")) {
            if (given->size() > kGrowthMax) {
                return std::nullopt;
            }
            for (const json::value& name : *given) {
                if (!name.is_string()) {
                    return std::nullopt;
                }
                names.emplace_back(view(name.get_string()));
            }
            return names;
        }
        const json::value* prefix = json::find(form, "prefix");
        const auto max = count_at(form, "max");
        if (prefix == nullptr || !prefix->is_string() || !max || *max > kGrowthMax) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < *max; ++i) {
            names.push_back(std::string(view(prefix->get_string())) + std::to_string(i));
        }
        return names;
    }

    // Copies of one input, such as those of a growing one, share it.
    std::shared_ptr<const std::unordered_set<std::string_view>> index_of(const json::array& choices
    ) {
        auto& known = indexes_[&choices];
        if (known == nullptr) {
            auto made = std::make_shared<std::unordered_set<std::string_view>>();
            for (const json::value& choice : choices) {
                if (choice.is_string()) {
                    made->insert(view(choice.get_string()));
                }
            }
            known = std::move(made);
        }
        return known;
    }

    NodeDefinition& into_;
    std::size_t count_ = 0;
    std::map<const json::array*, std::shared_ptr<const std::unordered_set<std::string_view>>>
        indexes_;
};

Result<> NodeDefinition::Reader::read(NodeDefinition& into) {
    return Work(into).read();
}

}  // namespace comfyd::workflow
