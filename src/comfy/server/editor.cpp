// The files of ComfyUI's editor.
#include <algorithm>
#include <utility>

#include "comfy/server/routes.hpp"
#include "net/static_files.hpp"

namespace comfyd::comfy::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kExtensionsMax = 10'000;

json::array list_extensions(const fs::path& editor) {
    std::vector<std::string> found;
    std::error_code error;
    fs::recursive_directory_iterator entry(editor / "extensions", error);
    for (const fs::recursive_directory_iterator end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".js" && found.size() < kExtensionsMax) {
            found.push_back("/" + entry->path().lexically_relative(editor).generic_string());
        }
    }
    std::ranges::sort(found);
    return json::array(found.begin(), found.end());
}

}  // namespace

Task<> get_editor_file(Call& call, Backend& backend) {
    const net::Request& request = call.request();
    const bool readable = request.method == net::Method::get || request.method == net::Method::head;
    const fs::path editor = backend.editor();
    std::optional<fs::path> path;
    if (!editor.empty() && readable) {
        path = co_await backend.disk().run([&editor, &request] {
            return net::find_static(editor, request.path);
        });
    }
    if (!path) {
        co_await answer(call, empty_reply(404));
        co_return;
    }
    net::Response head;
    head.headers.set("X-Content-Type-Options", "nosniff");
    // Names of other files carry a hash of their content; the page that names them does not.
    const bool is_page = path->extension() == ".html";
    head.headers.set("Cache-Control", is_page ? "no-store, must-revalidate" : "no-cache");
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), std::move(*path));
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, empty_reply(404));
    }
}

Task<> get_extensions(Call& call, Backend& backend) {
    const fs::path editor = backend.editor();
    json::array list;
    if (!editor.empty()) {
        list = co_await backend.disk().run([&editor] { return list_extensions(editor); });
    }
    co_await answer(call, json_reply(200, list));
}

}  // namespace comfyd::comfy::server
