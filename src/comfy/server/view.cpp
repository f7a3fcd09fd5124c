// GET /view, and the names of files.
#include <utility>

#include "comfy/server/picture_bytes.hpp"
#include "comfy/server/routes.hpp"
#include "net/safe_content.hpp"
#include "net/static_files.hpp"

namespace comfyd::comfy::server {
namespace {

std::string disposition(bool attachment, std::string_view name) {
    std::string plain;
    bool is_plain = true;
    for (const char c : name) {
        const bool fits = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        is_plain = is_plain && fits;
        plain += fits ? c : '_';
    }
    std::string header = attachment ? "attachment; " : "";
    header += "filename=\"" + plain + "\"";
    return is_plain ? header : header + "; filename*=UTF-8''" + net::percent_encode(name);
}

// What a browser would run as a page of this server, or as a part of one.
bool is_active(std::string_view name, std::string_view content_type) {
    return net::is_active_type(content_type) || content_type.starts_with("text/css") ||
           name.ends_with(".xml");
}

// The name tells, as in ComfyUI; what was told of the file only where that says nothing.
std::string type_of(const FileName& name, const ShownFile& file) {
    constexpr std::string_view kAnything = "application/octet-stream";
    const std::string_view known = net::content_type_of(name.name);
    return std::string(known == kAnything ? net::sent_type(file.content_type) : known);
}

net::Response head_of(const Call& call, const FileName& name, const ShownFile& file) {
    const std::string type = type_of(name, file);
    const bool active = is_active(name.name, type);
    const std::string_view download = call.query_value("download");
    net::Response head;
    head.headers.set("Content-Type", active ? "application/octet-stream" : type);
    head.headers.set(
        "Content-Disposition",
        disposition(active || download == "1" || download == "true", name.name)
    );
    head.headers.set("X-Content-Type-Options", "nosniff");
    head.headers.set("Vary", "Sec-Fetch-Dest");
    if (active || !file.caching.empty()) {
        head.headers.set("Cache-Control", active ? "no-store" : file.caching);
    }
    if (!file.etag.empty()) {
        head.headers.set("ETag", '"' + file.etag + '"');
    }
    return head;
}

Task<> send_form(Call& call, Backend& backend, FileName name, ShownFile file, PictureForm form) {
    auto bytes = co_await picture_bytes(backend, std::move(file));
    if (!bytes) {
        co_await answer(call, empty_reply(404));
        co_return;
    }
    auto made = co_await backend.convert_picture(std::move(*bytes), form);
    if (!made) {
        const bool is_picture = made.error().code != Code::invalid_argument;
        co_await answer(call, is_picture ? encode_error(made.error()) : trouble());
        co_return;
    }
    net::Response response;
    response.headers.set("Content-Type", std::string(content_type_of(form.format)));
    response.headers.set("Content-Disposition", disposition(false, name.name));
    response.headers.set("X-Content-Type-Options", "nosniff");
    response.body = std::move(*made);
    co_await answer(call, std::move(response));
}

}  // namespace

Task<> get_view(Call& call, Backend& backend) {
    if (!call.has_query("filename")) {
        co_await answer(call, empty_reply(404));
        co_return;
    }
    FileName asked{
        std::string(call.query_value("filename")), std::string(call.query_value("subfolder"))
    };
    if (call.has_query("type")) {
        asked.type = call.query_value("type");
    }
    const auto name = check_shown(std::move(asked));
    if (!name) {
        co_await answer(call, empty_reply(name.error()));
        co_return;
    }
    auto file = co_await backend.find_file(*name);
    if (!file) {
        const bool missing = file.error().code == Code::not_found;
        co_await answer(call, missing ? empty_reply(404) : encode_error(file.error()));
        co_return;
    }
    if (const auto form = wanted_form(call)) {
        co_await send_form(call, backend, *name, std::move(*file), *form);
        co_return;
    }
    net::Response head = head_of(call, *name, *file);
    if (auto* bytes = std::get_if<std::string>(&file->content)) {
        auto sent = co_await net::send_bytes(call.exchange, std::move(head), std::move(*bytes));
        static_cast<void>(sent);
        co_return;
    }
    auto& path = std::get<std::filesystem::path>(file->content);
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), std::move(path));
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, empty_reply(404));
    }
}

// Names, newest first: "a.png [output]".
Task<> get_file_names(Call& call, Backend& backend) {
    const std::string type = call.parameters.at(0);
    if (!is_folder_type(type)) {
        co_await answer(call, error_reply(400, "Invalid directory type"));
        co_return;
    }
    auto names = co_await backend.file_names(type);
    json::array list;
    for (const std::string& name : names) {
        list.emplace_back(name + " [" + type + "]");
    }
    co_await answer(call, json_reply(200, list));
}

}  // namespace comfyd::comfy::server
