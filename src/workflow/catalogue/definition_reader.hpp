// How a definition is read from /object_info: private to NodeDefinition.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "workflow/catalogue/definition.hpp"

namespace comfyd::workflow {

// One input with whatever it brings along.
struct NodeDefinition::Item {
    enum class Kind { plain, combo, growing, slot };
    struct Option {
        const json::value* key = nullptr;
        std::vector<Item> items;
    };

    Kind kind = Kind::plain;
    InputDefinition input;
    std::vector<Item> items;      // growing: all that may come; slot: those that come with a value
    std::vector<Option> choices;  // combo: those that come with each choice
};

// Fills a definition from its info_.
class NodeDefinition::Reader {
public:
    static Result<> read(NodeDefinition& into);

private:
    class Work;
};

}  // namespace comfyd::workflow
