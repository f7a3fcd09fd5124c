#include "workflow/rules/shape.hpp"

#include "base/text.hpp"
#include "workflow/graph/content_key.hpp"

namespace comfyd::workflow {
namespace {

// No value begins with one of these (ContentKey).
constexpr char kNode = 'n';
constexpr char kInputs = 'i';
constexpr char kAnyText = 't';
constexpr char kAnySeed = 's';

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
                add_input(definition, *inputs, view(input.key()), input.value());
            }
        }
    }

    void add_input(
        const NodeDefinition* definition,
        const json::object& inputs,
        std::string_view name,
        const json::value& value
    ) {
        const bool is_seed = name == "seed" || name == "noise_seed";
        if (!value.is_string() && !(is_seed && (value.is_int64() || value.is_uint64()))) {
            key_.add_value(value);
            return;
        }
        // As long as nobody knows the classes, nothing but links is looked at.
        const bool is_free = !catalogue_.knows_workers() ||
                             (definition != nullptr && !definition->has_dynamic_inputs() &&
                              catalogue_.own_check(*definition) == nullptr &&
                              is_good_whatever_it_is(definition->find_input(name, inputs), value));
        if (is_free) {
            key_.add_mark(value.is_string() ? kAnyText : kAnySeed);
        } else {
            key_.add_value(value);
        }
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
