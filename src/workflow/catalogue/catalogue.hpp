// What the fleet can run: the node classes of every worker, as one immutable snapshot that any
// thread may read. Equal classes of several workers are one object; what is made of all of them
// together is made when it is first asked for, and shared by snapshots with the same classes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/requirement.hpp"
#include "workflow/catalogue/class_notes.hpp"
#include "workflow/catalogue/definition.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

inline constexpr std::string_view kDefaultPool = "default";

// The node classes of one worker, from its /object_info. Equal documents share one object.
class NodeClasses {
public:
    // Entries that are not as they should be are left out; a document that is no object is refused
    // (Code::protocol_error).
    static Result<std::shared_ptr<const NodeClasses>> from_object_info(
        const json::value& object_info, ClassNotes notes = {}
    );

    const NodeDefinition* find(std::string_view class_type) const;
    std::size_t size() const { return classes_.size(); }
    // In the order of the document.
    const std::vector<std::shared_ptr<const NodeDefinition>>& all() const { return classes_; }

    const ClassNotes& notes() const { return notes_; }

    // An empty input: the class alone. Also choices that nobody is shown.
    bool has(std::string_view class_type, std::string_view input, std::string_view value) const;
    // A pool and a machine are not the business of classes.
    bool has_all(const Requirement& requirement) const;

private:
    std::vector<std::shared_ptr<const NodeDefinition>> classes_;
    std::unordered_map<std::string_view, const NodeDefinition*> index_;  // names of classes_
    // Of classes with choices that nobody is shown (workflow/files/address_names.hpp), with those.
    std::unordered_map<std::string, std::shared_ptr<const NodeDefinition>> whole_;
    ClassNotes notes_;
};

// An answer of GET /object_info.
struct ObjectInfo {
    std::string text;
    std::string etag;  // without quotes; the same for the same text
};

class Catalogue : public PromptClasses {
public:
    struct Entry {
        std::string worker;
        std::shared_ptr<const NodeClasses> classes;
        std::string pool{kDefaultPool};
        // Where comfyd made it: a mark of what is on it, the same for those that can run the same.
        std::string software{};
        std::string gpu{};
        std::string region{};
        std::uint64_t gpu_memory_bytes = 0;
        // It stands for a pool that has no worker now: what its machines are is for prospects.
        bool is_memory = false;
        // Model files that it lacks can be brought there.
        bool fetches_models = false;

        bool operator==(const Entry&) const = default;
        MachineFacts facts() const { return {pool, gpu, region, gpu_memory_bytes}; }
    };
    // Machines that a pool may have one day, whether it has some now or not.
    struct Prospect {
        std::string pool;
        std::string gpu{};     // empty: any
        std::string region{};  // likewise
        bool is_here = false;  // on this computer: without a region that is told it has none

        bool operator==(const Prospect&) const = default;
        bool allows(const Requirement& requirement) const;
    };
    explicit Catalogue(std::vector<Entry> workers, std::vector<Prospect> prospects = {});

    // False until the first worker said what it has: then only the syntax of a workflow can be
    // checked.
    bool knows_workers() const { return !workers_.empty(); }
    const std::vector<Entry>& workers() const { return workers_; }
    const std::vector<Prospect>& prospects() const { return prospects_; }

    // The class as the workers that have it take it together: every choice that one of them
    // offers, required only what all require.
    const NodeDefinition* find(std::string_view class_type) const override;
    // As the first worker tells that has the class and the node pack.
    const OwnCheck* own_check(const NodeDefinition& definition) const override;
    bool tells_own_checks(const NodeDefinition& definition) const override;
    // Some node has a check of its own that only a worker can make. Files that clients upload are
    // checked here.
    bool needs_worker_to_judge(const json::object& workflow) const;
    // As GET /node_replacements of one server that is all workers.
    const json::object& replacements() const;
    // As GET /object_info of one server that is all workers. Never nullptr.
    std::shared_ptr<const ObjectInfo> object_info() const;
    // As GET /object_info/{class}: {} where there is none.
    std::string object_info(std::string_view class_type) const;

    // What the nodes of a workflow need of a worker: their classes, and the choices that only some
    // of the workers with the class offer.
    Requirement requirement_of(const json::object& workflow) const;
    // Some worker, of its pool where it names one, has it all; or may have, once it is there.
    bool can_run(const Requirement& requirement) const;
    // The pools that have a worker which could run it, were the pool not asked for; sorted.
    std::vector<std::string> pools_for(const Requirement& requirement) const;
    bool has_pool(std::string_view pool) const;
    // What the worker that comes nearest, of its pool where it names one, lacks.
    struct Nearest {
        std::string worker;
        std::vector<std::string> missing;          // in words
        std::vector<std::string> missing_classes;  // those of them that are classes
        json::array missing_files;                 // the others: {"class_type","input","value"}
    };
    std::optional<Nearest> nearest(const Requirement& requirement) const;
    // The GPUs and regions that there are and may be, of the pool where one is named, each once; at
    // most kMachinesTold: {"pool","gpu_type","memory_gb","region","is_offer"}.
    static constexpr std::size_t kMachinesTold = 32;
    json::array machines(const Requirement& requirement) const;

private:
    bool may_run(const Prospect& prospect, const Requirement& requirement) const;
    struct Together;
    const ClassNotes* notes_of(std::string_view class_type) const;

    std::vector<Entry> workers_;
    std::vector<Prospect> prospects_;
    std::shared_ptr<Together> together_;
};

}  // namespace comfyd::workflow
