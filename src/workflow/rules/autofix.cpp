#include "workflow/rules/autofix.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/models.hpp"

namespace comfyd::workflow {
namespace {

constexpr int kRoundsMax = 3;  // one fix may uncover another slip in the same node
constexpr std::size_t kSlipMax = 2;

std::optional<double> number_in(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '+')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && std::isfinite(number)
               ? std::optional(number)
               : std::nullopt;
}

// A number of the type that the input wants.
std::optional<json::value> as_number(double number, std::string_view type) {
    constexpr double kExact = 9007199254740992.0;
    if (type == "FLOAT") {
        return json::value(number);
    }
    if (type == "INT" && std::abs(number) <= kExact) {
        return json::value(static_cast<std::int64_t>(std::trunc(number)));
    }
    return std::nullopt;
}

class Fixer {
public:
    Fixer(json::object& workflow, const Catalogue& catalogue)
        : workflow_(workflow), catalogue_(catalogue) {}

    // True: something was changed.
    bool fix(const Issue& issue) {
        const auto node = workflow_.find(issue.node_id);
        json::object* members = node == workflow_.end() ? nullptr : node->value().if_object();
        json::value* inputs = members != nullptr ? members->if_contains("inputs") : nullptr;
        const NodeDefinition* definition = catalogue_.find(issue.class_type);
        if (inputs == nullptr || !inputs->is_object() || definition == nullptr) {
            return false;
        }
        const InputDefinition* known = definition->find_input(issue.input, inputs->get_object());
        if (known == nullptr) {
            return false;
        }
        const json::value* now = inputs->get_object().if_contains(issue.input);
        auto better = find_better(issue, *known, now);
        if (!better || (now != nullptr && *now == *better)) {
            return false;
        }
        Fix made;
        made.code = issue.code;
        made.node_id = issue.node_id;
        made.class_type = issue.class_type;
        made.input = issue.input;
        made.from = now != nullptr ? shortened(*now) : json::value();
        made.to = shortened(*better);
        made.message = "node " + issue.node_id + " (" + issue.class_type + "), input '" +
                       issue.input + "' was " +
                       (now != nullptr ? json::serialize(made.from) : "missing") + " and is now " +
                       json::serialize(made.to);
        inputs->get_object()[issue.input] = std::move(*better);
        fixes_.push_back(std::move(made));
        return true;
    }

    std::vector<Fix> take() { return std::move(fixes_); }

private:
    static const json::value* option(const InputDefinition& known, const char* name) {
        return known.options != nullptr ? json::find(*known.options, name) : nullptr;
    }

    static std::optional<json::value> find_better(
        const Issue& issue, const InputDefinition& known, const json::value* now
    ) {
        if (issue.code == "MISSING_REQUIRED_INPUT") {
            return find_default(issue, known);
        }
        if (now == nullptr) {
            return std::nullopt;
        }
        if (issue.code == "VALUE_OUT_OF_RANGE") {
            const json::value* limit =
                option(known, issue.reason == "value_smaller_than_min" ? "min" : "max");
            return limit != nullptr ? std::optional(*limit) : std::nullopt;
        }
        if (issue.code == "INVALID_INPUT_VALUE" && now->is_string()) {
            const auto number = number_in(view(now->get_string()));
            return number ? as_number(*number, known.type) : std::nullopt;
        }
        if (issue.code == "VALUE_NOT_IN_LIST" && now->is_string()) {
            return find_choice(issue, known, view(now->get_string()));
        }
        return std::nullopt;
    }

    // One that was given under a wrong name is not missing: its value would be lost.
    static std::optional<json::value> find_default(
        const Issue& issue, const InputDefinition& known
    ) {
        const json::value* otherwise = option(known, "default");
        const bool is_plain = known.type == "INT" || known.type == "FLOAT" ||
                              known.type == "BOOLEAN" || known.type == "COMBO" ||
                              known.type == "STRING";
        if (otherwise == nullptr || !is_plain || known.takes_upload() ||
            issue.details.contains("given_as") ||
            (known.type == "COMBO" && known.choices != nullptr && !known.offers(*otherwise))) {
            return std::nullopt;
        }
        return *otherwise;
    }

    static std::optional<json::value> find_choice(
        const Issue& issue, const InputDefinition& known, std::string_view now
    ) {
        const json::value* distance = json::find(issue.details, "edit_distance");
        const json::value* is_sure = json::find(issue.details, "is_sure");
        if (issue.suggestion.empty() || distance == nullptr || is_sure == nullptr ||
            !is_sure->as_bool()) {
            return std::nullopt;
        }
        const json::value better(issue.suggestion);
        const auto slips = distance->to_number<std::size_t>();
        const bool is_file = known.takes_upload() || is_model_file(issue.suggestion) ||
                             model_kind(issue.class_type, known.name).has_value();
        // Another file is another picture; only one that differs in nothing but upper and lower
        // case, or the kind of slash, is the same.
        const bool is_safe = is_file ? slips == 0 && now.size() == issue.suggestion.size()
                                     : slips <= kSlipMax && slips * 3 <= now.size();
        return is_safe && known.offers(better) ? std::optional(better) : std::nullopt;
    }

    json::object& workflow_;
    const Catalogue& catalogue_;
    std::vector<Fix> fixes_;
};

}  // namespace

json::object Fix::to_json() const {
    return {
        {"event", "execution.warning"},
        {"code", code},
        {"message", message},
        {"node_id", node_id},
        {"class_type", class_type},
        {"input", input},
        {"from", from},
        {"to", to},
    };
}

Fixed validate_and_fix(
    json::object& workflow, const Catalogue& catalogue, const ValidationOptions& options
) {
    Fixed made{validate(workflow, catalogue, options), {}};
    Fixer fixer(workflow, catalogue);
    for (int round = 0; round < kRoundsMax; ++round) {
        bool changed = false;
        for (const Issue& issue : made.validation.at(Stage::semantic).issues) {
            changed = fixer.fix(issue) || changed;
        }
        if (!changed) {
            break;
        }
        made.validation = validate(workflow, catalogue, options);
    }
    made.fixes = fixer.take();
    return made;
}

}  // namespace comfyd::workflow
