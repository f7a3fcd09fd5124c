// The files of ComfyUI's editor, from a folder that the configuration names.
#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "api/dialects/native/routes.hpp"
#include "base/disk.hpp"
#include "net/static_files.hpp"

namespace comfyd::api::native {
namespace {

namespace fs = std::filesystem;

struct Found {
    std::uint64_t size = 0;
    std::string etag;
};

// A regular file that lies in the folder also when links are followed.
std::optional<Found> find_static(const fs::path& root, const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    const fs::path base = error ? fs::path() : fs::canonical(root, error);
    if (error || real.lexically_relative(base).string().starts_with("..")) {
        return std::nullopt;
    }
    struct stat about{};
    if (::stat(real.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return std::nullopt;
    }
    char tag[64];
    std::snprintf(
        tag,
        sizeof tag,
        "\"%llx-%llx\"",
        static_cast<unsigned long long>(about.st_mtim.tv_sec) * 1'000'000'000ULL +
            static_cast<unsigned long long>(about.st_mtim.tv_nsec),
        static_cast<unsigned long long>(about.st_size)
    );
    return Found{static_cast<std::uint64_t>(about.st_size), tag};
}

std::string static_type(const std::string& name) {
    // Module scripts must have a type of JavaScript, whatever the table says.
    if (name.ends_with(".js") || name.ends_with(".mjs")) {
        return "text/javascript; charset=utf-8";
    }
    if (name.ends_with(".html")) {
        return "text/html; charset=utf-8";
    }
    if (name.ends_with(".css")) {
        return "text/css; charset=utf-8";
    }
    if (name.ends_with(".woff2")) {
        return "font/woff2";
    }
    return std::string(net::content_type_of(name));
}

}  // namespace

Task<> get_frontend(Call& call, Context& context) {
    std::string name = call.path_parameters.empty() ? "" : call.path_parameters.at(0);
    if (name.empty()) {
        name = "index.html";
    }
    const fs::path root = context.parts.frontend;
    const auto path = confined(root, name);
    std::optional<Found> found;
    if (path) {
        found = co_await context.parts.pool.run([root, path = *path] {
            return find_static(root, path);
        });
    }
    if (!found) {
        co_await send(call, empty_reply(404));
        co_return;
    }
    net::Response head;
    head.headers.set("Content-Type", static_type(name));
    head.headers.set("ETag", found->etag);
    head.headers.set("X-Content-Type-Options", "nosniff");
    // Asset names carry a hash of their content; the page that names them does not.
    const bool is_page = name.ends_with(".html");
    head.headers.set("Cache-Control", is_page ? "no-store, must-revalidate" : "no-cache");
    if (net::matches_etag(call.request.headers.get("If-None-Match"), found->etag)) {
        head.status = 304;
        co_await send(call, std::move(head));
        co_return;
    }
    auto sent = co_await call.exchange.send_file(
        std::move(head), net::FileBody{path->string(), 0, found->size}
    );
    if (!sent && !call.exchange.answered()) {
        co_await send(call, empty_reply(404));
    }
}

}  // namespace comfyd::api::native
