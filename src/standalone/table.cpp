#include "standalone/table.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace comfyd::standalone {
namespace {

constexpr std::size_t kSegmentsMax = 16;

std::vector<std::string> split(std::string_view path) {
    std::vector<std::string> segments;
    path.remove_prefix(path.starts_with('/') ? 1 : 0);
    for (;;) {
        const auto slash = std::min(path.find('/'), path.size());
        segments.emplace_back(path.substr(0, slash));
        if (slash == path.size() || segments.size() > kSegmentsMax) {
            return segments;
        }
        path.remove_prefix(slash + 1);
    }
}

std::string_view without_port(std::string_view host) {
    if (host.starts_with('[')) {
        return host.substr(0, std::min(host.find(']') + 1, host.size()));
    }
    return host.substr(0, host.find(':'));
}

bool is_loopback(std::string_view host) {
    return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

void Table::add(net::Method method, std::string_view pattern, Function function) {
    routes_.push_back({method, split(pattern), std::move(function)});
}

Table::Match Table::match(net::Method method, std::string_view path) const {
    const std::vector<std::string> segments = split(path);
    const net::Method wanted = method == net::Method::head ? net::Method::get : method;
    Match match;
    for (const Route& route : routes_) {
        const bool takes_rest = route.segments.back().ends_with("*}");
        if (takes_rest ? route.segments.size() > segments.size()
                       : route.segments.size() != segments.size()) {
            continue;
        }
        std::vector<std::string> parameters;
        bool fits = true;
        for (std::size_t i = 0; fits && i < route.segments.size(); ++i) {
            if (!route.segments[i].starts_with('{')) {
                fits = route.segments[i] == segments[i];
                continue;
            }
            auto decoded = net::percent_decode(segments[i]);
            fits = decoded && !decoded->empty();
            if (fits) {
                parameters.push_back(std::move(*decoded));
            }
        }
        if (!fits) {
            continue;
        }
        if (route.method == wanted) {
            match.function = &route.function;
            match.parameters = std::move(parameters);
            return match;
        }
        match.allow += (match.allow.empty() ? "" : ",") + std::string(to_string(route.method));
    }
    return match;
}

bool is_foreign(const net::Request& request) {
    if (request.headers.get("Sec-Fetch-Site") == "cross-site") {
        return true;
    }
    const std::string origin = lower(request.headers.get("Origin"));
    std::string_view host_and_port = request.headers.get("Host");
    const std::string host = lower(host_and_port);
    if (origin.empty() || host.empty() || !is_loopback(without_port(host))) {
        return false;
    }
    const auto scheme = origin.find("://");
    const std::string_view site = scheme == std::string::npos
                                      ? std::string_view()
                                      : std::string_view(origin).substr(scheme + 3);
    const bool has_port = without_port(site).size() != site.size();
    return site != (has_port ? std::string_view(host) : without_port(host));
}

}  // namespace comfyd::standalone
