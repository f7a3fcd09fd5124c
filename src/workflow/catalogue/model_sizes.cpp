#include "workflow/catalogue/model_sizes.hpp"

#include <memory>
#include <unordered_map>
#include <utility>

#include "workflow/rules/security.hpp"

namespace comfyd::workflow {
namespace {

// Windows workers name files with backslashes.
std::string_view file_of(std::string_view name) {
    const std::size_t folder = name.find_last_of("/\\");
    return folder == std::string_view::npos ? name : name.substr(folder + 1);
}

struct Known {
    std::unordered_map<std::string, std::uint64_t> names;
    std::vector<KnownModel> patterns;

    std::optional<std::uint64_t> find(std::string_view name) const {
        const std::string_view file = file_of(name);
        for (const std::string_view form : {name, file}) {
            if (const auto found = names.find(std::string(form)); found != names.end()) {
                return found->second;
            }
        }
        for (const KnownModel& known : patterns) {
            if (matches_pattern(known.name, name) || matches_pattern(known.name, file)) {
                return known.bytes;
            }
        }
        return std::nullopt;
    }
};

}  // namespace

ModelSizes known_sizes(std::vector<KnownModel> models) {
    auto known = std::make_shared<Known>();
    for (KnownModel& model : models) {
        if (model.name.find('*') == std::string::npos) {
            known->names.emplace(std::move(model.name), model.bytes);
        } else {
            known->patterns.push_back(std::move(model));
        }
    }
    return [kept = std::shared_ptr<const Known>(std::move(known)
            )](ModelKind, std::string_view name) { return kept->find(name); };
}

}  // namespace comfyd::workflow
