#include "api/dashboard.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "net/static_files.hpp"

namespace comfyd::api {
namespace {

// Nothing comes from elsewhere but pictures, where the operator has put a CDN before them; nothing
// is a script that is not one of the files; and no script makes markup of text.
std::string policy_of(const ApiOptions& options) {
    std::string pictures;
    if (const auto cdn = net::Url::parse(options.cdn_url)) {
        pictures = " " + cdn->scheme + "://" + cdn->host_header();
    }
    return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "img-src 'self'" +
           pictures + "; media-src 'self'" + pictures +
           "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
           "require-trusted-types-for 'script'; trusted-types 'none'";
}

net::Response head_of(const DashboardFile& file) {
    net::Response head;
    head.headers.set("Content-Type", std::string(file.content_type));
    head.headers.set("ETag", '"' + std::string(file.hash) + '"');
    head.headers.set("X-Content-Type-Options", "nosniff");
    return head;
}

Task<> send_file(Call& call, const DashboardFile& file, net::Response head) {
    auto sent = co_await net::send_bytes(call.exchange, std::move(head), std::string(file.bytes));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

Task<> send_page(Call& call, const std::string& policy) {
    const DashboardFile& page = kDashboardFiles.back();
    net::Response head = head_of(page);
    head.headers.set("Cache-Control", "no-cache");  // it names the files of this version
    head.headers.set("Content-Security-Policy", policy);
    head.headers.set("X-Frame-Options", "DENY");
    head.headers.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()");
    return send_file(call, page, std::move(head));
}

Task<> send_named(Call& call) {
    const std::string& name = call.path_parameters.front();
    const auto files = kDashboardFiles.first(kDashboardFiles.size() - 1);
    const auto found = std::ranges::find(files, name, &DashboardFile::name);
    if (found == files.end()) {
        return send(
            call,
            encode_error(Error(Code::not_found, "the dashboard has no such file; reload its page"))
        );
    }
    net::Response head = head_of(*found);
    head.headers.set("Cache-Control", "public, max-age=31536000, immutable");
    // A picture of the dashboard by itself runs no scripts either.
    head.headers.set("Content-Security-Policy", "default-src 'none'");
    return send_file(call, *found, std::move(head));
}

Task<> send_to_page(Call& call) {
    net::Response response;
    response.status = 302;
    response.headers.set("Location", "/ui/");
    return send(call, std::move(response));
}

}  // namespace

void add_dashboard(Router& router, const ApiOptions& options) {
    const auto add = [&router](const char* pattern, Handler handler) {
        router.add(
            Route{net::Method::get, pattern, std::move(handler), encode_error, Access::open, {}}
        );
    };
    add("/ui", send_to_page);
    add("/ui/{path*}",
        [policy = policy_of(options)](Call& call) { return send_page(call, policy); });
    add("/ui/assets/{name*}", send_named);
}

}  // namespace comfyd::api
