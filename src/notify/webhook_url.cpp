#include "notify/webhook_url.hpp"

#include "net/client.hpp"

namespace comfyd::notify {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;

tl::unexpected<Error> refused(Code code, const std::string& why) {
    return fail(code, "the webhook URL cannot be used: " + why, {{"field", "url"}});
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
    if (net::is_private_host(parsed->host)) {
        return refused(
            Code::address_refused,
            parsed->host + " is an address of a private network, which this server does not call"
        );
    }
    return {};
}

}  // namespace comfyd::notify
