#include "net/location.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace comfyd::net {
namespace {

// "/a/b/../c/." -> "/a/c/". `path` begins with a slash.
std::string without_dots(std::string_view path) {
    std::vector<std::string_view> kept;
    bool ends_open = false;  // with a slash
    while (!path.empty()) {
        path.remove_prefix(1);
        const auto end = std::min(path.find('/'), path.size());
        const auto segment = path.substr(0, end);
        path.remove_prefix(end);
        const bool is_dots = segment == "." || segment == "..";
        if (segment == ".." && !kept.empty()) {
            kept.pop_back();
        }
        ends_open = path.empty() && (is_dots || segment.empty());
        if (!is_dots && !(path.empty() && segment.empty())) {
            kept.push_back(segment);
        }
    }
    std::string joined;
    for (const auto segment : kept) {
        joined.append("/").append(segment);
    }
    return ends_open || joined.empty() ? joined + "/" : joined;
}

}  // namespace

Result<Url> resolve_location(const Url& base, std::string_view reference) {
    reference = reference.substr(0, reference.find('#'));
    const auto colon = reference.find(':');
    if (colon != std::string_view::npos && colon < reference.find_first_of("/?")) {
        return Url::parse(reference);
    }
    if (reference.starts_with("//")) {
        return Url::parse(base.scheme + ":" + std::string(reference));
    }
    const std::string origin = base.scheme + "://" + base.host_header();
    if (reference.empty() || reference.starts_with('/')) {
        return Url::parse(origin + (reference.empty() ? base.target : std::string(reference)));
    }
    const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
    if (reference.starts_with('?')) {
        return Url::parse(origin + std::string(path) + std::string(reference));
    }
    const auto query = std::min(reference.find('?'), reference.size());
    const std::string merged =
        std::string(path.substr(0, path.rfind('/') + 1)) + std::string(reference.substr(0, query));
    return Url::parse(origin + without_dots(merged) + std::string(reference.substr(query)));
}

Result<Url> follow_redirect(const Url& from, std::string_view location) {
    auto next = resolve_location(from, location);
    if (!next || (next->scheme != "http" && next->scheme != "https")) {
        return fail(Code::upstream_error, "the address redirects to what is no web address");
    }
    if (from.is_tls() && !next->is_tls()) {
        return fail(
            Code::address_refused,
            "the address redirects from https to http, at " + next->host + ", which is not followed"
        );
    }
    return next;
}

}  // namespace comfyd::net
