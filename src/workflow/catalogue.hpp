// What the fleet can run: the node classes of every worker, as one immutable snapshot that any
// thread may read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

struct NodeClass {
    bool output_node = false;
    std::vector<std::string> required_inputs;
    std::size_t output_count = 0;
};

// The node classes of one worker, from its /object_info. Equal documents share one object.
class NodeClasses {
public:
    // Entries that are not as they should be are left out; a document that is no object is refused
    // (Code::protocol_error).
    static Result<std::shared_ptr<const NodeClasses>> from_object_info(
        const json::value& object_info
    );

    const NodeClass* find(std::string_view class_type) const;
    std::size_t size() const { return classes_.size(); }
    // `requirement`: class names, one a line.
    bool has_all(std::string_view requirement) const;

private:
    std::map<std::string, NodeClass, std::less<>> classes_;
};

class Catalogue {
public:
    struct Entry {
        std::string worker;
        std::shared_ptr<const NodeClasses> classes;
    };
    explicit Catalogue(std::vector<Entry> workers) : workers_(std::move(workers)) {}

    // False until the first worker said what it has: then only the syntax of a workflow can be
    // checked.
    bool knows_workers() const { return !workers_.empty(); }
    const std::vector<Entry>& workers() const { return workers_; }
    // The class on the first worker that has it.
    const NodeClass* find(std::string_view class_type) const;
    // Some worker has them all.
    bool can_run(std::string_view requirement) const;
    // What the worker that comes nearest lacks.
    struct Nearest {
        std::string worker;
        std::vector<std::string> missing;
    };
    std::optional<Nearest> nearest(std::string_view requirement) const;

private:
    std::vector<Entry> workers_;
};

}  // namespace comfyd::workflow
