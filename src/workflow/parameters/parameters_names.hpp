// Finds what the name of a parameter means: the inputs of a workflow that it sets (the order of
// meanings is in parameters.hpp). Made for one workflow, which does not change while it lives.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/parameters/parameters_roles.hpp"

namespace comfyd::workflow {

class ParameterNames {
public:
    struct Target {
        Graph::Position node;
        std::string input;

        bool operator==(const Target&) const = default;
    };
    using Targets = std::vector<Target>;

    // `declared` may be nullptr; it outlives this as the workflow does.
    ParameterNames(const json::object& workflow, const json::object* declared);

    const Graph& graph() const { return graph_; }

    // Code::invalid_argument, which lists the names that exist.
    Result<Targets> find(std::string_view name) const;
    // What a declaration as in BindOptions::declared means; at least one input.
    Result<Targets> read_declaration(std::string_view name, const json::value& declaration) const;

    // Titles of nodes, each once, in the order of the workflow.
    std::vector<std::string_view> titles() const;
    // "random" may be asked for there.
    bool is_seed(const Target& target) const;

private:
    using Position = Graph::Position;

    bool is_declared(std::string_view name) const;
    Result<Targets> find_dotted(std::string_view name) const;
    Result<std::optional<Position>> find_node(std::string_view name) const;
    Result<> add_declared(std::string_view name, const json::value& from, Targets& to) const;
    Result<Targets> find_titled(std::string_view name, const std::vector<Position>& nodes) const;
    Result<Targets> find_role(std::string_view name, Role role) const;

    std::string nodes() const;
    std::string inputs_of(Position at) const;
    std::string ids_of(const std::vector<Position>& nodes) const;
    std::string names(std::string_view wanted) const;

    Graph graph_;
    const json::object* declared_;
    std::unordered_map<std::string_view, std::vector<Position>> titles_;
    std::unordered_map<std::string_view, std::vector<Position>> classes_;
};

}  // namespace comfyd::workflow
