#include "api/route_table.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace comfyd::api {
namespace {

constexpr std::size_t kSegmentsMax = 64;

bool is_parameter(std::string_view segment) {
    return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

bool is_rest(std::string_view segment) {
    return is_parameter(segment) && segment[segment.size() - 2] == '*';
}

std::vector<std::string_view> split(std::string_view path) {
    std::vector<std::string_view> parts;
    path.remove_prefix(1);
    while (true) {
        const auto slash = path.find('/');
        parts.push_back(path.substr(0, slash));
        if (slash == std::string_view::npos) {
            return parts;
        }
        path.remove_prefix(slash + 1);
    }
}

const Route* find_method(const std::vector<const Route*>& routes, net::Method method) {
    const auto found = std::find_if(routes.begin(), routes.end(), [method](const Route* route) {
        return route->method == method;
    });
    return found == routes.end() ? nullptr : *found;
}

}  // namespace

std::optional<std::vector<std::string>> split_path(std::string_view path) {
    if (path.empty() || path.front() != '/' ||
        static_cast<std::size_t>(std::count(path.begin(), path.end(), '/')) > kSegmentsMax) {
        return std::nullopt;
    }
    std::vector<std::string> segments;
    for (const std::string_view part : split(path)) {
        auto decoded = net::percent_decode(part);
        if (!decoded) {
            return std::nullopt;
        }
        segments.push_back(std::move(*decoded));
    }
    return segments;
}

std::vector<std::string> parameter_names(std::string_view pattern) {
    std::vector<std::string> names;
    for (const std::string_view segment : split(pattern)) {
        if (is_rest(segment)) {
            names.emplace_back(segment.substr(1, segment.size() - 3));
        } else if (is_parameter(segment)) {
            names.emplace_back(segment.substr(1, segment.size() - 2));
        }
    }
    return names;
}

void RouteTable::add(Route route) {
    COMFYD_ASSERT(!route.pattern.empty() && route.pattern.front() == '/');
    COMFYD_ASSERT(route.handler != nullptr);
    if (!route.encode_error) {
        route.encode_error = encode_error;
    }
    routes_.push_back(std::make_unique<const Route>(std::move(route)));
    const Route* added = routes_.back().get();
    const auto segments = split(added->pattern);
    Node* node = &root_;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const std::string_view segment = segments[i];
        if (is_rest(segment)) {
            COMFYD_ASSERT(i + 1 == segments.size());
            COMFYD_ASSERT(find_method(node->rest, added->method) == nullptr);
            node->rest.push_back(added);
            return;
        }
        auto& next = is_parameter(segment) ? node->parameter : node->literals[std::string(segment)];
        if (!next) {
            next = std::make_unique<Node>();
        }
        node = next.get();
    }
    COMFYD_ASSERT(find_method(node->here, added->method) == nullptr);
    node->here.push_back(added);
}

struct RouteTable::Search {
    net::Method method;
    const std::vector<std::string>& segments;
    std::vector<std::string> parameters;
    Match match;

    bool take(const std::vector<const Route*>& routes) {
        const Route* found = find_method(routes, method);
        if (found == nullptr && method == net::Method::head) {
            found = find_method(routes, net::Method::get);
        }
        match.others.insert(match.others.end(), routes.begin(), routes.end());
        if (found == nullptr) {
            return false;
        }
        match.route = found;
        match.parameters = parameters;
        return true;
    }
};

bool RouteTable::search(const Node& node, std::size_t index, Search& search) {
    if (index == search.segments.size()) {
        return search.take(node.here);
    }
    const std::string& segment = search.segments[index];
    if (const auto literal = node.literals.find(segment); literal != node.literals.end()) {
        if (RouteTable::search(*literal->second, index + 1, search)) {
            return true;
        }
    }
    if (node.parameter && !segment.empty()) {
        search.parameters.push_back(segment);
        if (RouteTable::search(*node.parameter, index + 1, search)) {
            return true;
        }
        search.parameters.pop_back();
    }
    if (node.rest.empty()) {
        return false;
    }
    std::string rest = segment;
    for (std::size_t i = index + 1; i < search.segments.size(); ++i) {
        rest += '/';
        rest += search.segments[i];
    }
    search.parameters.push_back(std::move(rest));
    const bool found = search.take(node.rest);
    search.parameters.pop_back();
    return found;
}

RouteTable::Match RouteTable::match(net::Method method, const std::vector<std::string>& segments)
    const {
    Search state{method, segments, {}, {}};
    search(root_, 0, state);
    return std::move(state.match);
}

}  // namespace comfyd::api
