// The compiled routes: a tree of path segments. Filled before serving, read by any thread after.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/router.hpp"

namespace comfyd::api {

// "/a/b%20c" -> {"a", "b c"}; "/" -> {""}. nullopt: not absolute, a broken escape, or more segments
// than any route could have use for.
std::optional<std::vector<std::string>> split_path(std::string_view path);

// The parameter names of a pattern in order, without the star of "{rest*}".
std::vector<std::string> parameter_names(std::string_view pattern);

class RouteTable {
public:
    // REQUIRES: a pattern that starts with '/', and no earlier route with the same method and
    // shape.
    void add(Route route);

    struct Match {
        const Route* route = nullptr;  // null: the path or the method is unknown
        std::vector<std::string> parameters;
        // Routes of other methods on this path; empty with a null route: the path is unknown.
        std::vector<const Route*> others;
    };
    // Literal segments win over parameters, parameters over "{rest*}"; a path that fits several
    // patterns goes to the first of them that has the method. HEAD falls back to GET.
    Match match(net::Method method, const std::vector<std::string>& segments) const;

    const std::vector<std::unique_ptr<const Route>>& routes() const { return routes_; }

private:
    struct Node {
        std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
        std::unique_ptr<Node> parameter;
        std::vector<const Route*> here;
        std::vector<const Route*> rest;  // "{rest*}" below this node
    };
    struct Search;

    static bool search(const Node& node, std::size_t index, Search& search);

    Node root_;
    std::vector<std::unique_ptr<const Route>> routes_;
};

}  // namespace comfyd::api
