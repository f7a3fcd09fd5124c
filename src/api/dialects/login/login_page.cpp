// A page without scripts that works in any browser. Whatever comes into it is escaped.
#include "api/dialects/login/login.hpp"
#include "notify/mail/mime.hpp"

namespace comfyd::api::login {
namespace {

using notify::mail::escape_html;

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'";

constexpr std::string_view kStyle = R"css(:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto; padding: 0 1.2rem; }
h1 { font-weight: 650; letter-spacing: -0.02em; }
label { display: block; margin-bottom: 0.3rem; }
input, button { font: inherit; width: 100%; box-sizing: border-box; padding: 0.5rem 0.8rem; border-radius: 8px; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); }
button { margin-top: 0.8rem; cursor: pointer; }
.message { padding: 0.6rem 0.8rem; border-radius: 8px; background: color-mix(in srgb, currentColor 8%, transparent); }
)css";

// A link and no form: form-action lets no form lead elsewhere.
std::string provider_link(const Page& page) {
    const auto url = net::Url::parse(page.provider);
    return "<p><a href=\"/login/oidc?next=" + escape_html(net::percent_encode(page.next)) +
           "\">Log in at " + escape_html(url ? url->host : page.provider) + "</a></p>\n";
}

std::string key_form(const Page& page) {
    return "<form method=\"post\" action=\"/login\">\n"
           "<label for=\"key\">API key</label>\n"
           "<input id=\"key\" name=\"key\" type=\"password\" autocomplete=\"off\" required>\n"
           "<input name=\"next\" type=\"hidden\" value=\"" +
           escape_html(page.next) +
           "\">\n"
           "<button>Log in</button>\n</form>\n";
}

std::string logout_form(const Page& page) {
    return "<p>You are " + escape_html(page.who) +
           ".</p>\n<form method=\"post\" action=\"/logout\">\n"
           "<input name=\"csrf_token\" type=\"hidden\" value=\"" +
           escape_html(page.page_token) + "\">\n<button>Log out</button>\n</form>\n";
}

}  // namespace

net::Response show(const Page& page) {
    std::string body =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>comfyd login</title>\n"
        "<link rel=\"stylesheet\" href=\"/login/style.css\">\n</head>\n<body>\n"
        "<h1>comfyd</h1>\n";
    if (!page.message.empty()) {
        body += "<p class=\"message\">" + escape_html(page.message) + "</p>\n";
    }
    if (!page.leave_at.empty()) {
        body += "<p><a href=\"" + escape_html(page.leave_at) +
                "\">Log out of the login provider as well</a></p>\n";
    }
    body += page.who.empty() ? key_form(page) : logout_form(page);
    if (page.who.empty() && !page.provider.empty()) {
        body += provider_link(page);
    }
    body += "</body>\n</html>\n";
    net::Response response;
    response.status = page.status;
    response.headers.set("Content-Type", "text/html; charset=utf-8");
    response.headers.set("Content-Security-Policy", kPolicy);
    response.headers.set("X-Frame-Options", "DENY");
    response.headers.set("Cache-Control", "no-store");
    // With "no-referrer" a browser hides from its own server where a form comes from.
    response.headers.set("Referrer-Policy", "same-origin");
    if (!page.leave_at.empty()) {
        response.headers.set("Refresh", "0; url=" + page.leave_at);
    }
    response.body = std::move(body);
    return response;
}

net::Response style() {
    net::Response response;
    response.headers.set("Content-Type", "text/css; charset=utf-8");
    response.headers.set("Cache-Control", "public, max-age=3600");
    response.body = kStyle;
    return response;
}

Page page_of(const LoginServices& services, const Error& error) {
    Page page;
    page.status = info(error.code).http_status;
    page.message = error.message;
    page.provider = services.provider != nullptr ? services.provider->issuer() : "";
    return page;
}

}  // namespace comfyd::api::login
