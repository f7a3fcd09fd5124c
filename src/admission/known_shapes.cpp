#include "admission/known_shapes.hpp"

#include <utility>

#include "workflow/rules/shape.hpp"

namespace comfyd::admission {

KnownShapes& KnownShapes::here(const std::shared_ptr<const workflow::Catalogue>& catalogue) {
    thread_local KnownShapes shapes;
    if (shapes.catalogue_ != catalogue) {
        shapes.shapes_.clear();
        shapes.catalogue_ = catalogue;
    }
    return shapes;
}

const KnownShape* KnownShapes::find(std::string_view key) {
    return shapes_.find_used(key);
}

void KnownShapes::add(std::string_view key, KnownShape shape) {
    if (key.size() <= kKeyBytesMax) {
        shapes_.use(key) = std::move(shape);
    }
}

std::string key_of_shape(
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    const PolicyPtr& policy,
    const Requirement& asked,
    bool may_be_merged,
    std::uint64_t files
) {
    std::string key = workflow::shape_of(graph, catalogue);
    const workflow::SecurityPolicy* const by = policy.get();
    key.append(reinterpret_cast<const char*>(&by), sizeof by);
    key.append(reinterpret_cast<const char*>(&files), sizeof files);
    key += may_be_merged ? '+' : '-';
    key += asked.encoded();
    return key;
}

}  // namespace comfyd::admission
