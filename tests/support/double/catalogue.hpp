// The node classes that a double knows, in the form of GET /object_info. Owned by one double.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::support {

extern const char* const kBuiltInNodes;
extern const char* const kBatchPackNodes;

class Catalogue {
public:
    // `models` are added to the file lists of the loaders; `nodes_json` is an object_info document
    // or empty. Throws std::runtime_error when it is neither.
    Catalogue(
        const std::vector<std::string>& models, std::string_view nodes_json, bool batch_pack = false
    );

    // The lists of checkpoints and LoRAs are those from the start and what lies in these folders
    // now.
    void look_at_models(const std::string& folder);

    const json::object* find(std::string_view name) const;
    bool is_output(std::string_view name) const;
    // See DoubleOptions::nodes_json; nullptr: the class has none.
    const json::object* own_check(std::string_view name) const;
    const json::object& own_checks() const { return own_checks_; }
    // All classes, with the list of LoadImage filled in.
    json::object with_inputs(const std::vector<std::string>& input_files) const;

private:
    void add_batch_pack();

    json::object classes_;
    json::object own_checks_;  // by class
    json::object lists_;       // of files, from the start; by class
};

// The [type, options] of an input, required or optional; nullptr when the class does not have it.
const json::value* find_input(const json::object& node_class, std::string_view name);

}  // namespace comfyd::support
