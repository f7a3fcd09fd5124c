// Shapes of workflows in which no fault was found, so that a workflow that comes again with other
// texts and seeds is not judged again. Each thread has its own, a bounded number of them, for the
// catalogue that it was asked with last.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/lru_map.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::admission {

class GoodShapes {
public:
    static constexpr std::size_t kShapesMax = 128;
    static constexpr std::size_t kShapeBytesMax = 16 * 1024;  // larger ones are not kept

    // Those of the calling thread.
    static GoodShapes& here(const std::shared_ptr<const workflow::Catalogue>& catalogue);

    bool contains(const std::string& shape) const { return shapes_.find(shape) != nullptr; }
    void add(const std::string& shape) {
        if (shape.size() <= kShapeBytesMax) {
            shapes_.use(shape) = true;
        }
    }
    std::size_t size() const { return shapes_.size(); }

private:
    std::shared_ptr<const workflow::Catalogue> catalogue_;
    LruMap<bool> shapes_{kShapesMax};
};

}  // namespace comfyd::admission
