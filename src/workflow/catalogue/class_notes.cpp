#include "workflow/catalogue/class_notes.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

std::vector<std::string> texts_of(const json::object& in, std::string_view key) {
    std::vector<std::string> texts;
    const json::value* list = json::find(in, key);
    if (list == nullptr || !list->is_array()) {
        return texts;
    }
    for (const json::value& item : list->get_array()) {
        if (item.is_string()) {
            texts.emplace_back(view(item.get_string()));
        }
    }
    return texts;
}

bool is_true(const json::object& in, std::string_view key) {
    const json::value* value = json::find(in, key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace

void ClassNotes::read(const json::object& answer) {
    const json::value* checks = json::find(answer, "own_checks");
    if (checks == nullptr || !checks->is_object()) {
        return;
    }
    told = true;
    for (const auto& entry : checks->get_object()) {
        const json::object* about = entry.value().if_object();
        if (about == nullptr) {
            continue;
        }
        OwnCheck check;
        check.inputs = texts_of(*about, "inputs");
        check.all_inputs = is_true(*about, "all_inputs");
        check.link_types = is_true(*about, "link_types");
        own_checks.emplace(view(entry.key()), std::move(check));
    }
    for (std::string& name : texts_of(answer, "changing")) {
        changing.insert(std::move(name));
    }
}

}  // namespace comfyd::workflow
