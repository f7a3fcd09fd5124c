#include "net/host_rules.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/ip/address.hpp>

#include "net/http.hpp"

namespace comfyd::net {
namespace {

bool is_loopback_name(std::string_view name) {
    if (equal_ignoring_case(name, "localhost")) {
        return true;
    }
    if (name.starts_with('[') && name.ends_with(']')) {
        name = name.substr(1, name.size() - 2);
    }
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(std::string(name), error);
    return !error && address.is_loopback();
}

}  // namespace

HostRules::HostRules(std::vector<std::string> names)
    : any_(std::ranges::find(names, "*") != names.end()), names_(std::move(names)) {}

bool HostRules::allows(std::string_view host) const {
    const std::string_view name = without_port(host);
    return any_ || host.empty() || is_loopback_name(name) ||
           std::ranges::any_of(names_, [name](const std::string& known) {
               return equal_ignoring_case(without_port(known), name);
           });
}

std::string_view without_port(std::string_view host) {
    const auto bracket = host.rfind(']');
    const auto colon = host.rfind(':');
    const bool has_port =
        colon != std::string_view::npos &&
        (bracket == std::string_view::npos ? host.find(':') == colon : colon > bracket);
    return has_port ? host.substr(0, colon) : host;
}

}  // namespace comfyd::net
