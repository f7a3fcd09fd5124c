#include "models/web.hpp"

#include <utility>

#include "base/text.hpp"
#include "net/location.hpp"

namespace comfyd::models {
namespace {

constexpr int kRedirectsMax = 8;

net::ClientOptions client_options(const WebOptions& options, net::AddressPolicy policy) {
    net::ClientOptions made;
    made.policy = policy;
    made.ca_file = options.ca_file;
    made.idle_per_origin_max = 0;
    return made;
}

// As it stands in the settings, with its port where that is not the scheme's own.
std::string name_of(const net::Url& url) {
    return lower(url.host_header());
}

bool is_same_place(const net::Url& a, const net::Url& b) {
    return a.scheme == b.scheme && lower(a.host) == lower(b.host) && a.port == b.port;
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

Web::Web(Executor executor, WebOptions options)
    : options_(std::move(options)),
      strangers_(executor, client_options(options_, net::AddressPolicy::public_only)),
      trusted_(executor, client_options(options_, net::AddressPolicy::any)) {}

bool Web::is_trusted(const net::Url& url) const {
    return options_.trusted.contains(name_of(url));
}

Result<> Web::check(const net::Url& url) const {
    if (!url.is_tls() && !is_trusted(url)) {
        return fail(
            Code::address_refused,
            url.host_header() +
                ": models come over https only, but from hosts that COMFYD_MODELS_TRUSTED names"
        );
    }
    return {};
}

Task<Result<Web::Answer>> Web::open(
    std::string method, net::Url url, net::Headers headers, bool only_own, bool is_peer
) {
    const net::Url first = url;
    const auto token = options_.tokens.find(name_of(first));
    bool is_first_host = true;
    for (int hops = 0; hops <= kRedirectsMax; ++hops) {
        const bool is_known = is_trusted(url) || (is_peer && is_first_host);
        auto checked = is_known ? Result<>() : check(url);
        if (!checked) {
            co_return fail(std::move(checked.error()));
        }
        net::ClientRequest request;
        request.method = method;
        request.url = url.to_string();
        request.headers = headers;
        request.timeout = options_.stall;
        if (is_first_host && token != options_.tokens.end()) {
            request.headers.set("Authorization", "Bearer " + token->second);
        }
        net::Client& client = is_known ? trusted_ : strangers_;
        auto passage = co_await client.pass(std::move(request), 0);
        if (!passage) {
            co_return fail(std::move(passage.error()));
        }
        auto head = co_await (*passage)->head();
        if (!head) {
            co_return fail(std::move(head.error()));
        }
        const std::string location(head->headers.get("Location"));
        if (!is_redirect(head->status) || location.empty()) {
            co_return Answer{std::move(url), std::move(*head), std::move(*passage)};
        }
        auto next = net::follow_redirect(url, location);
        if (!next) {
            co_return fail(std::move(next.error()));
        }
        // Who was left once gets nothing any more, also where the way leads back.
        is_first_host = is_first_host && is_same_place(first, *next);
        if (only_own && !is_first_host) {
            co_return Answer{std::move(url), std::move(*head), std::move(*passage)};
        }
        url = std::move(*next);
    }
    co_return fail(
        Code::upstream_error,
        first.host_header() + " redirects more than " + std::to_string(kRedirectsMax) + " times"
    );
}

Task<Result<std::string>> Web::read(Answer& answer, std::size_t bytes_max) {
    std::string all;
    while (true) {
        auto piece = co_await answer.body->read();
        if (!piece) {
            co_return fail(std::move(piece.error()));
        }
        if (piece->empty()) {
            co_return all;
        }
        all += *piece;
        if (all.size() > bytes_max) {
            co_return fail(
                Code::upstream_error, answer.url.host_header() + " answers with too much"
            );
        }
    }
}

}  // namespace comfyd::models
