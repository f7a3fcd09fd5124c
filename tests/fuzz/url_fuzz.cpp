// Addresses from clients, and where other servers send us: what is taken has no byte in it that
// could end a line of a request, names a host, and means the same when it is read again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http.hpp"
#include "net/location.hpp"

namespace {

using namespace comfyd;

constexpr std::uint64_t kFileBytes = 1'000;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool is_one_line(std::string_view text) {
    return std::ranges::none_of(text, [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == 0x7F;
    });
}

void check(const net::Url& url) {
    require(
        url.scheme == "http" || url.scheme == "https" || url.scheme == "ws" || url.scheme == "wss"
    );
    require(!url.host.empty() && is_one_line(url.host));
    require(url.target.starts_with('/') && is_one_line(url.target));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto url = net::Url::parse(text);
    if (url) {
        check(*url);
        const auto again = net::Url::parse(url->to_string());
        require(
            again && again->host == url->host && again->port == url->port &&
            again->target == url->target
        );
    }
    const auto base = net::Url::parse("https://a.example:8443/b/c?d");
    for (const auto& next :
         {net::resolve_location(*base, text), net::follow_redirect(*base, text)}) {
        if (next) {
            check(*next);
        }
    }
    const bool has_nul = text.find('\0') != std::string_view::npos;  // which is refused
    require(has_nul || net::percent_decode(net::percent_encode(text)) == text);
    net::parse_query(text);
    const auto range = net::parse_range(text, kFileBytes);
    require(!range || !*range || (*range)->first + (*range)->length <= kFileBytes);
    return 0;
}
