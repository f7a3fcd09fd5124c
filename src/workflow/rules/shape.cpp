#include "workflow/rules/shape.hpp"

#include <algorithm>

#include "base/find_mark.hpp"
#include "base/text.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/graph/content_key.hpp"
#include "workflow/plan/fingerprint.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::workflow {
namespace {

// No value begins with one of these (ContentKey).
constexpr char kNode = 'n';
constexpr char kInputs = 'i';
constexpr char kAnyText = 't';
constexpr char kAnySeed = 's';

// Neither an address nor a path.
bool is_plain_name(std::string_view text) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '%' || c == ' ';
    };
    return std::ranges::all_of(text, is_plain);
}

class Shape {
public:
    explicit Shape(const Catalogue& catalogue) : catalogue_(catalogue) {}

    std::string of(const json::object& workflow) {
        for (const auto& node : workflow) {
            key_.add_text(node.key());
            if (const json::object* members = node.value().if_object()) {
                add_node(*members);
            } else {
                key_.add_value(node.value());
            }
        }
        return std::move(key_.text());
    }

private:
    void add_node(const json::object& node) {
        key_.add_mark(kNode);
        key_.add_size(node.size());
        const json::value* type = node.if_contains("class_type");
        const bool has_class = type != nullptr && type->is_string();
        const NodeDefinition* definition =
            has_class ? catalogue_.find(view(type->get_string())) : nullptr;
        for (const auto& member : node) {
            key_.add_text(member.key());
            const json::object* inputs =
                member.key() == "inputs" ? member.value().if_object() : nullptr;
            if (inputs == nullptr) {
                key_.add_value(member.value());
                continue;
            }
            key_.add_mark(kInputs);
            key_.add_size(inputs->size());
            for (const auto& input : *inputs) {
                key_.add_text(input.key());
                const std::string_view class_type =
                    has_class ? view(type->get_string()) : std::string_view();
                add_input({class_type, definition, *inputs}, view(input.key()), input.value());
            }
        }
    }

    struct Node {
        std::string_view class_type;
        const NodeDefinition* definition;
        const json::object& inputs;
    };

    void add_input(const Node& node, std::string_view name, const json::value& value) {
        const bool is_seed = name == "seed" || name == "noise_seed";
        if (!value.is_string() && !(is_seed && (value.is_int64() || value.is_uint64()))) {
            key_.add_value(value);
        } else if (is_free(node, name, value)) {
            key_.add_mark(value.is_string() ? kAnyText : kAnySeed);
        } else {
            key_.add_value(value);
        }
    }

    bool is_free(const Node& node, std::string_view name, const json::value& value) const {
        const InputDefinition* known =
            node.definition != nullptr ? node.definition->find_input(name, node.inputs) : nullptr;
        // As long as nobody knows the classes, nothing but links is looked at.
        const bool is_good =
            !catalogue_.knows_workers() ||
            (node.definition != nullptr && !node.definition->has_dynamic_inputs() &&
             catalogue_.own_check(*node.definition) == nullptr &&
             is_good_whatever_it_is(known, value));
        return is_good && (!value.is_string() || says_nothing(node, name, known, value));
    }

    // To whoever looks for addresses, paths and files, and for what a job needs.
    bool says_nothing(
        const Node& node,
        std::string_view name,
        const InputDefinition* known,
        const json::value& value
    ) const {
        const std::string_view text = view(value.get_string());
        return is_batchable(name, value, nullptr) && !holds_mark(text, "embedding:") &&
               (is_prose(known, name) || is_plain_name(text)) &&
               !may_name_file(node.class_type, name, text, node.inputs, catalogue_);
    }

    // As good as any other value for which this is true.
    static bool is_good_whatever_it_is(const InputDefinition* input, const json::value& value) {
        if (input == nullptr || input->choices != nullptr) {
            return false;
        }
        if (value.is_string()) {
            return input->type == "STRING";
        }
        return input->type == "INT" && is_within(*input, value);
    }
    // Only what is so without a doubt: limits and numbers beyond 53 bits are not compared.
    static bool is_within(const InputDefinition& input, const json::value& value) {
        constexpr double kExact = 9'007'199'254'740'992.0;
        const auto number = value.to_number<double>();
        const auto limit = [&input](std::string_view name) {
            const json::value* found =
                input.options == nullptr ? nullptr : json::find(*input.options, name);
            return found != nullptr && found->is_number() ? found : nullptr;
        };
        const json::value* min = limit("min");
        const json::value* max = limit("max");
        return number >= 0 && number <= kExact &&
               (min == nullptr || number >= min->to_number<double>()) &&
               (max == nullptr || number <= max->to_number<double>());
    }

    const Catalogue& catalogue_;
    ContentKey key_;
};

}  // namespace

std::string shape_of(const json::object& workflow, const Catalogue& catalogue) {
    return Shape(catalogue).of(workflow);
}

}  // namespace comfyd::workflow
