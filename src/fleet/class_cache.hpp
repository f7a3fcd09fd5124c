// Node classes by the document that they were read from, so that workers with equal documents share
// one object. Any thread; hashing and parsing run on the pool.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/crypto.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class ClassCache {
public:
    explicit ClassCache(Pool& pool) : pool_(pool) {}

    // What a worker told of its classes, as the text and the members of its answers.
    struct Told {
        std::string object_info;
        json::object described;  // by the node pack
        json::object replacements;
    };
    // Code::protocol_error.
    Task<Result<std::shared_ptr<const workflow::NodeClasses>>> read(Told told);

private:
    std::shared_ptr<const workflow::NodeClasses> find(const Digest& digest);

    Pool& pool_;
    Mutex mutex_;
    std::map<Digest, std::weak_ptr<const workflow::NodeClasses>> known_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::fleet
