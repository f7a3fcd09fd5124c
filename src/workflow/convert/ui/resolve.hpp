// Follows a link back to what it really brings: through reroutes, bypassed nodes, named links and
// the borders of subgraphs. Without recursion and bounded. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "workflow/convert/ui/instances.hpp"

namespace comfyd::workflow::ui {

struct Resolved {
    enum class Kind {
        nothing,
        output,     // of a node
        value,      // of a widget that a host shows
        no_link,    // the input names a link that does not exist
        no_origin,  // the link comes from a node that does not exist
        endless,    // it never ends, or is too long
    };
    Kind kind = Kind::nothing;
    std::size_t instance = 0;
    std::size_t node = 0;
    std::int64_t slot = 0;
    const json::value* value = nullptr;
};

class Resolver {
public:
    Resolver(const Document& document, const Instances& instances);

    Resolved resolve(std::size_t instance, std::size_t node, std::size_t input);

private:
    struct Place;
    bool step(Place& at, Resolved& into) const;
    bool from_input(Place& at, Resolved& into) const;
    bool from_host_input(Place& at, Resolved& into, std::size_t port) const;
    bool into_host(Place& at, Resolved& into) const;
    bool to_setter(Place& at) const;

    const Document& document_;
    const Instances& instances_;
    std::unordered_map<std::string, std::size_t> setters_;  // "graph name"
    std::size_t steps_left_;
};

}  // namespace comfyd::workflow::ui
