#include "auth/session_cookies.hpp"

#include "base/text.hpp"

namespace comfyd::auth {

std::string SessionCookies::name(Purpose purpose) const {
    const std::string plain = purpose == Purpose::session ? "comfyd" : "comfyd-login";
    return options_.are_secure ? "__Host-" + plain : plain;
}

std::string SessionCookies::read(const net::Headers& headers, Purpose purpose) const {
    const std::string wanted = name(purpose);
    std::string found;
    int count = 0;
    for (const auto& [header, value] : headers.all()) {
        if (!net::equal_ignoring_case(header, "Cookie")) {
            continue;
        }
        for (std::string_view rest = value; !rest.empty();) {
            const auto end = std::min(rest.find(';'), rest.size());
            const std::string_view cookie = trim(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
            const auto equals = cookie.find('=');
            if (equals != std::string_view::npos && cookie.substr(0, equals) == wanted) {
                found = cookie.substr(equals + 1);
                ++count;
            }
        }
    }
    return count == 1 ? found : std::string();
}

std::string SessionCookies::make(Purpose purpose, std::string_view value) const {
    return name(purpose) + "=" + std::string(value) + "; Path=/; HttpOnly; SameSite=Lax" +
           (options_.are_secure ? "; Secure" : "");
}

std::string SessionCookies::keep_session(std::string_view token) const {
    return make(Purpose::session, token);
}

std::string SessionCookies::keep_login(std::string_view secret, std::chrono::seconds life) const {
    return make(Purpose::login, secret) + "; Max-Age=" + std::to_string(life.count());
}

std::string SessionCookies::forget(Purpose purpose) const {
    return make(purpose, "") + "; Max-Age=0";
}

bool SessionCookies::is_own_origin(const net::Request& request) const {
    const std::string_view origin = request.headers.get("Origin");
    const std::string own = options_.origin.empty()
                                ? request.scheme + "://" + std::string(request.headers.get("Host"))
                                : options_.origin;
    return !origin.empty() && net::equal_ignoring_case(origin, own);
}

bool SessionCookies::is_own_page(const net::Request& request) const {
    const std::string_view site = request.headers.get("Sec-Fetch-Site");
    return site.empty() ? is_own_origin(request) : site == "same-origin" || site == "none";
}

}  // namespace comfyd::auth
