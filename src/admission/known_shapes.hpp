// What was found of workflows, by their shapes, so that one that comes again with other texts and
// seeds is not looked at again: it is good, names no file, and needs and is expected to take what
// it did. Each thread has its own, a bounded number of them, for the catalogue that it was asked
// with last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/lru_map.hpp"
#include "base/requirement.hpp"
#include "jobs/job.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::admission {

using PolicyPtr = std::shared_ptr<const workflow::SecurityPolicy>;

struct KnownShape {
    PolicyPtr policy{};  // that it was judged by: as long as it is held, no other has its address
    Requirement requirement{};
    scheduler::ProfilePtr profile{};  // null: it names no models
};

class KnownShapes {
public:
    static constexpr std::size_t kShapesMax = 128;
    static constexpr std::size_t kKeyBytesMax = 16 * 1024;  // larger ones are not kept

    // Those of the calling thread.
    static KnownShapes& here(const std::shared_ptr<const workflow::Catalogue>& catalogue);

    // nullptr: it is not known. Good until the next call of a member.
    const KnownShape* find(std::string_view key);
    void add(std::string_view key, KnownShape shape);
    std::size_t size() const { return shapes_.size(); }

private:
    std::shared_ptr<const workflow::Catalogue> catalogue_;
    LruMap<KnownShape> shapes_{kShapesMax};
};

// What else was found follows from: the workflow's shape, who may do what, what the request says of
// the worker, and what is known of model files (`files`, a number that is another when that is).
std::string key_of_shape(
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    const PolicyPtr& policy,
    const Requirement& asked,
    bool may_be_merged,
    std::uint64_t files
);

}  // namespace comfyd::admission
