// What the workers of all domains can run, shared among nodes by notes in the ledger: who leads
// writes down its workers and the documents that describe their node classes; the others read them.
// So every node checks workflows alike, whoever is connected to the workers.
//
// Lives on the core executor, but for catalogue().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "fleet/class_cache.hpp"
#include "jobs/notebook.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::app {

class ClassBoard {
public:
    static constexpr Millis kLookEvery{2'000};
    static constexpr Millis kWriteEvery{250};

    // All outlive it. `software`: that machines of a pool are made with, as it is configured now;
    // what others of the pool could run tells nothing of it.
    ClassBoard(
        Executor core,
        jobs::Notebook& notebook,
        Pool& pool,
        std::vector<std::string> domains,
        std::map<std::string, std::string> software = {}
    );
    ~ClassBoard();

    // For the cache's OnRead. Any thread.
    void keep(std::string name, std::shared_ptr<const fleet::ClassCache::Told> told);

    // `cache` outlives it, too.
    void start(fleet::ClassCache& cache);
    // Writes down what is not yet. Sources still tell.
    Task<> stop();
    // Reads what was written down before, of domains that this node does not lead.
    Task<> recall();

    // This node leads the domain, from now on or no more: its workers are those that `source` says.
    using Source = std::function<std::shared_ptr<const workflow::Catalogue>()>;
    void set_led(const std::string& domain, Source source);
    void set_not_led(const std::string& domain);

    // Of all domains. Any thread.
    std::shared_ptr<const workflow::Catalogue> catalogue() const;

private:
    using Entries = std::vector<workflow::Catalogue::Entry>;

    Task<> write();
    Task<> write_once();
    Task<> write_documents();
    Task<> write_workers(std::string domain);
    Task<> look();
    Task<> read_workers(std::string domain);
    Task<std::shared_ptr<const workflow::NodeClasses>> read_classes(std::string name);
    void update();

    bool is_of_other_software(const workflow::Catalogue::Entry& entry) const;

    struct Led {
        Source source;
        std::shared_ptr<const workflow::Catalogue> seen;
        // A leader is connected before its workers have said what they can run. Until then what
        // its predecessor wrote down holds, here and for the other nodes.
        bool has_told = false;
        std::string written;  // what stands in its note
    };
    struct NotLed {
        std::string read;  // its note
        Entries workers;
    };

    Executor core_;
    jobs::Notebook& notebook_;
    Pool& pool_;  // documents are megabytes
    const std::vector<std::string> domains_;
    const std::map<std::string, std::string> software_;  // by pool
    fleet::ClassCache* cache_ = nullptr;
    std::map<std::string, Led> led_;
    std::map<std::string, NotLed> not_led_;
    std::set<std::string> documents_;  // that stand in a note
    TaskGroup tasks_;

    mutable Mutex mutex_;
    std::map<std::string, std::shared_ptr<const fleet::ClassCache::Told>> to_write_
        COMFYD_GUARDED_BY(mutex_);
    std::shared_ptr<const workflow::Catalogue> catalogue_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::app
