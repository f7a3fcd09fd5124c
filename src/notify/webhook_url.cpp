#include "notify/webhook_url.hpp"

#include <boost/asio/ip/address.hpp>

#include "net/client.hpp"

namespace comfyd::notify {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;

tl::unexpected<Error> refused(Code code, const std::string& why) {
    return fail(code, "the webhook URL cannot be used: " + why, {{"field", "url"}});
}

// Names that mean this machine without any look-up; every other name is judged by what it resolves
// to, at connection.
bool is_local_name(const std::string& host) {
    std::string name = host;
    while (!name.empty() && name.back() == '.') {
        name.pop_back();
    }
    return net::equal_ignoring_case(name, "localhost") ||
           (name.size() > 10 &&
            net::equal_ignoring_case(std::string_view(name).substr(name.size() - 10), ".localhost")
           );
}

}  // namespace

Result<> check_webhook_url(const std::string& url, bool allow_private_addresses) {
    if (url.size() > kUrlBytesMax) {
        return refused(Code::invalid_argument, "it has more than 2048 characters");
    }
    const auto parsed = net::Url::parse(url);
    if (!parsed) {
        return refused(Code::invalid_argument, parsed.error().message);
    }
    if (parsed->scheme != "http" && parsed->scheme != "https") {
        return refused(Code::invalid_argument, "it must begin with http:// or https://");
    }
    if (allow_private_addresses) {
        return {};
    }
    boost::system::error_code not_an_address;
    boost::asio::ip::make_address(parsed->host, not_an_address);
    const bool is_private =
        not_an_address ? is_local_name(parsed->host) : net::is_private_address(parsed->host);
    if (is_private) {
        return refused(
            Code::address_refused,
            parsed->host + " is an address of a private network, which this server does not call"
        );
    }
    return {};
}

}  // namespace comfyd::notify
