#include <filesystem>

#include "comfy/client.hpp"
#include "net/lines.hpp"

namespace comfyd::comfy {

Result<std::string> server_name(std::string_view base_url) {
    constexpr std::string_view kUnix = "unix:";
    if (base_url.starts_with(kUnix)) {
        const std::filesystem::path socket(base_url.substr(kUnix.size()));
        if (socket.is_absolute() && socket.has_filename()) {
            return socket.stem().string();
        }
    } else if (auto name = net::line_name(base_url)) {
        return *name;
    } else if (const auto url = net::Url::parse(base_url);
               url && (url->scheme == "http" || url->scheme == "https")) {
        return url->host + ":" + std::to_string(url->port);
    }
    return fail(
        Code::invalid_argument,
        "'" + std::string(base_url) +
            "' is no URL of a worker; it must look like http://host:8188, unix:/path/of.sock or "
            "worker://name"
    );
}

}  // namespace comfyd::comfy
