// The forms in which credentials are written: files, answers, addresses.
#include <algorithm>
#include <array>

#include "assets/s3/credentials.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "net/http.hpp"

namespace comfyd::assets::s3 {

std::optional<Credentials> read_profile(std::string_view file, std::string_view profile) {
    Credentials found;
    bool is_ours = false;
    while (!file.empty()) {
        const auto end = std::min(file.find('\n'), file.size());
        const std::string_view line = trim(file.substr(0, end), " \t\r");
        file.remove_prefix(std::min(end + 1, file.size()));
        if (line.empty() || line[0] == '#' || line[0] == ';') {
            continue;
        }
        if (line[0] == '[') {
            is_ours = line.ends_with(']') && trim(line.substr(1, line.size() - 2)) == profile;
            continue;
        }
        const auto equals = line.find('=');
        if (!is_ours || equals == std::string_view::npos) {
            continue;
        }
        const std::string name = lower(trim(line.substr(0, equals)));
        const std::string value(trim(line.substr(equals + 1)));
        if (name == "aws_access_key_id") {
            found.access_key = value;
        } else if (name == "aws_secret_access_key") {
            found.secret_key = value;
        } else if (name == "aws_session_token") {
            found.session_token = value;
        }
    }
    const bool is_whole = !found.access_key.empty() && !found.secret_key.empty();
    return is_whole ? std::optional(std::move(found)) : std::nullopt;
}

Result<Credentials> read_role_answer(std::string_view text) {
    const auto unusable = [] {
        return fail(
            Code::storage_unavailable, "the answer with the credentials of this machine is unusable"
        );
    };
    const auto answer = json::parse_object(text);
    if (!answer) {
        return unusable();
    }
    const auto member = [&](std::string_view name) {
        const auto value = json::find_string(*answer, name);
        return value && *value ? **value : std::string();
    };
    Credentials found{member("AccessKeyId"), member("SecretAccessKey"), member("Token")};
    found.expires_at = parse_rfc3339(member("Expiration"));
    if (found.access_key.empty() || found.secret_key.empty()) {
        return unusable();
    }
    return found;
}

bool is_container_address(std::string_view text) {
    constexpr std::array<std::string_view, 6> kHosts = {
        "127.0.0.1", "localhost", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"
    };
    const auto url = net::Url::parse(text);
    return url && (url->scheme == "https" ||
                   (url->scheme == "http" && std::ranges::find(kHosts, url->host) != kHosts.end()));
}

}  // namespace comfyd::assets::s3
