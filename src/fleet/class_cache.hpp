// Node classes by the document that they were read from, so that workers with equal documents share
// one object. Any thread; hashing and parsing run on the pool.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/crypto.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class ClassCache {
public:
    // What a worker told of its classes, as the text and the members of its answers.
    struct Told {
        std::string object_info;
        json::object described;  // by the node pack
        json::object replacements;
    };
    // Called when a document was read that was not known, with its name; for those who keep it.
    using OnRead = std::function<void(std::string name, std::shared_ptr<const Told> told)>;
    explicit ClassCache(Pool& pool, OnRead on_read = {})
        : pool_(pool), on_read_(std::move(on_read)) {}

    // Code::protocol_error.
    Task<Result<std::shared_ptr<const workflow::NodeClasses>>> read(Told told);
    // The name of the document that they were read from; nullopt: of none here.
    std::optional<std::string> name_of(const workflow::NodeClasses& classes);

private:
    std::shared_ptr<const workflow::NodeClasses> find(const Digest& digest);
    std::shared_ptr<const workflow::NodeClasses> keep(
        const Digest& digest, std::shared_ptr<const workflow::NodeClasses> classes
    );

    Pool& pool_;
    const OnRead on_read_;
    Mutex mutex_;
    std::map<Digest, std::weak_ptr<const workflow::NodeClasses>> known_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::fleet
