#include "admission/good_shapes.hpp"

namespace comfyd::admission {

GoodShapes& GoodShapes::here(const std::shared_ptr<const workflow::Catalogue>& catalogue) {
    thread_local GoodShapes shapes;
    if (shapes.catalogue_ != catalogue) {
        shapes.shapes_.clear();
        shapes.catalogue_ = catalogue;
    }
    return shapes;
}

}  // namespace comfyd::admission
