// GET /view, uploads, and the names of files.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "comfy/members.hpp"
#include "comfy/replies.hpp"
#include "engine/files.hpp"
#include "net/static_files.hpp"
#include "standalone/files.hpp"
#include "standalone/pictures.hpp"
#include "standalone/routes.hpp"

namespace comfyd::standalone {
namespace {

namespace fs = std::filesystem;

constexpr int kQualityDefault = 90;

// Types that a browser would run as a page of this server.
bool is_active(std::string_view name, std::string_view content_type) {
    constexpr std::array<std::string_view, 7> kActive{
        "text/html",
        "text/javascript",
        "application/javascript",
        "text/css",
        "text/xml",
        "application/xml",
        "application/xhtml+xml",
    };
    const std::string_view type = content_type.substr(0, content_type.find(';'));
    return type.ends_with("+xml") || name.ends_with(".xml") ||
           std::ranges::find(kActive, type) != kActive.end();
}

std::string disposition(std::string_view kind, std::string_view name) {
    std::string plain;
    bool is_plain = true;
    for (const char c : name) {
        const bool fits = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        is_plain = is_plain && fits;
        plain += fits ? c : '_';
    }
    std::string header(kind);
    header += "filename=\"" + plain + "\"";
    return is_plain ? header : header + "; filename*=UTF-8''" + net::percent_encode(name);
}

struct Form {
    Channel channel = Channel::rgba;
    PictureFormat format = PictureFormat::png;
    int quality = kQualityDefault;

    std::string content_type() const {
        switch (format) {
            case PictureFormat::webp:
                return "image/webp";
            case PictureFormat::jpeg:
                return "image/jpeg";
            case PictureFormat::png:
                break;
        }
        return "image/png";
    }
};

// nullopt: the file as it is.
std::optional<Form> wanted_form(const Call& call) {
    Form form;
    const std::string_view channel = call.query_value("channel");
    if (call.has_query("preview")) {
        const std::string_view preview = call.query_value("preview");
        const auto semicolon = std::min(preview.find(';'), preview.size());
        const bool jpeg =
            preview.substr(0, semicolon) == "jpeg" && channel.find('a') == std::string_view::npos;
        form.format = jpeg ? PictureFormat::jpeg : PictureFormat::webp;
        const std::string_view number = preview.substr(std::min(semicolon + 1, preview.size()));
        int quality = 0;
        std::from_chars(number.data(), number.data() + number.size(), quality);
        form.quality = quality > 0 ? std::min(quality, 100) : kQualityDefault;
        return form;
    }
    if (channel == "rgb") {
        form.channel = Channel::rgb;
        return form;
    }
    if (channel == "a") {
        form.channel = Channel::alpha;
        return form;
    }
    return std::nullopt;
}

Result<std::string> make_form(const fs::path& path, const Form& form) {
    auto bytes = engine::read_file(path);
    if (!bytes) {
        return bytes;
    }
    return convert_picture(*bytes, form.channel, form.format, form.quality);
}

Task<> send_form(Call& call, Core& core, fs::path path, Form form) {
    auto made = co_await core.pool.run([path, form] { return make_form(path, form); });
    if (!made) {
        co_await answer(call, encode_error(made.error()));
        co_return;
    }
    net::Response response;
    response.headers.set("Content-Type", form.content_type());
    response.headers.set("Content-Disposition", disposition("", path.filename().string()));
    response.headers.set("X-Content-Type-Options", "nosniff");
    response.body = std::move(*made);
    co_await answer(call, std::move(response));
}

// The fields of an upload.
struct Upload {
    const net::FormPart* image = nullptr;
    FileName file{"", "", "input"};
    bool overwrite = false;
    std::optional<std::string> original;
};

Upload read_upload(const std::vector<net::FormPart>& parts) {
    Upload upload;
    for (const net::FormPart& part : parts) {
        if (part.name == "image") {
            upload.image = &part;
        } else if (part.name == "type") {
            upload.file.type = part.data;
        } else if (part.name == "subfolder") {
            upload.file.subfolder = part.data;
        } else if (part.name == "overwrite") {
            upload.overwrite = part.data == "true" || part.data == "1";
        } else if (part.name == "original_ref") {
            upload.original = part.data;
        }
    }
    if (upload.image != nullptr) {
        upload.file.name = upload.image->filename.value_or(std::string());
    }
    return upload;
}

net::Response describe(const FileName& file) {
    json::object body;
    body["name"] = file.name;
    body["subfolder"] = file.subfolder;
    body["type"] = file.type;
    return comfy::json_reply(200, body);
}

// What is stored for an upload; nullopt: nothing, and the answer is as if it were.
using Content =
    std::function<Result<std::optional<std::string>>(const Core& core, const Upload& upload)>;

Result<std::optional<std::string>> plain_content(const Core& /*core*/, const Upload& upload) {
    return std::optional(upload.image->data);
}

Result<std::optional<std::string>> masked_content(const Core& core, const Upload& upload) {
    auto original = json::parse_object(upload.original.value_or(std::string()));
    if (!original) {
        return fail(
            Code::invalid_argument,
            "original_ref must be a JSON object with the filename of the picture"
        );
    }
    FileName name{comfy::text_of(*original, "filename"), comfy::text_of(*original, "subfolder")};
    if (auto type = comfy::maybe_text(*original, "type")) {
        name.type = std::move(*type);
    }
    auto path = find_file(core.folders, std::move(name));
    if (!path) {
        return path.error().code == Code::not_found
                   ? Result<std::optional<std::string>>(std::nullopt)
                   : fail(std::move(path.error()));
    }
    auto picture = engine::read_file(*path);
    if (!picture) {
        return fail(std::move(picture.error()));
    }
    auto made = replace_alpha(*picture, upload.image->data);
    if (!made) {
        return fail(std::move(made.error()));
    }
    return std::optional(std::move(*made));
}

// On a thread of the pool.
net::Response store(
    const Core& core, const std::string& content_type, const std::string& body, const Content& of
) {
    const auto parts = net::parse_multipart(content_type, body);
    if (!parts) {
        return encode_error(parts.error());
    }
    Upload upload = read_upload(*parts);
    if (upload.image == nullptr || upload.file.name.empty() ||
        folder_of(core.folders, upload.file.type) == nullptr) {
        return comfy::empty_reply(400);
    }
    auto content = of(core, upload);
    if (!content) {
        return encode_error(content.error());
    }
    if (!*content) {
        return describe(upload.file);
    }
    auto stored = store_upload(core.folders, upload.file, **content, upload.overwrite);
    if (!stored) {
        return stored.error().code == Code::invalid_argument ? comfy::empty_reply(400)
                                                             : encode_error(stored.error());
    }
    return describe(*stored);
}

Task<> take_upload(Call& call, Core& core, Content content) {
    auto body = co_await read_bytes(call, core);
    if (!body) {
        co_return;
    }
    const std::string type(call.request().headers.get("Content-Type"));
    auto response = co_await core.pool.run([&core, &type, &body = *body, &content] {
        return store(core, type, body, content);
    });
    co_await answer(call, std::move(response));
}

}  // namespace

Task<> get_view(Call& call, Core& core) {
    if (!call.has_query("filename")) {
        co_await answer(call, comfy::empty_reply(404));
        co_return;
    }
    FileName file;
    file.name = std::string(call.query_value("filename"));
    file.subfolder = std::string(call.query_value("subfolder"));
    if (call.has_query("type")) {
        file.type = std::string(call.query_value("type"));
    }
    auto path = find_file(core.folders, std::move(file));
    if (!path) {
        const Code code = path.error().code;
        const int status = code == Code::invalid_argument ? 400
                           : code == Code::forbidden      ? 403
                                                          : 404;
        co_await answer(call, comfy::empty_reply(status));
        co_return;
    }
    if (const auto form = wanted_form(call)) {
        co_await send_form(call, core, *path, *form);
        co_return;
    }
    net::Response head;
    const std::string name = path->filename().string();
    const std::string type(net::content_type_of(name));
    const bool active = is_active(name, type);
    head.headers.set("Content-Type", active ? "application/octet-stream" : type);
    head.headers.set("Content-Disposition", disposition(active ? "attachment; " : "", name));
    head.headers.set("X-Content-Type-Options", "nosniff");
    head.headers.set("Vary", "Sec-Fetch-Dest");
    if (active) {
        head.headers.set("Cache-Control", "no-store");
    }
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), std::move(*path));
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, comfy::empty_reply(404));
    }
}

Task<> upload_image(Call& call, Core& core) {
    co_await take_upload(call, core, plain_content);
}

Task<> upload_mask(Call& call, Core& core) {
    co_await take_upload(call, core, masked_content);
}

Task<> get_folder_files(Call& call, Core& core) {
    const std::string type = call.parameters.at(0);
    const fs::path* folder = folder_of(core.folders, type);
    if (folder == nullptr) {
        co_await answer(call, comfy::error_reply(400, "the folders are input, output and temp"));
        co_return;
    }
    auto names = co_await core.pool.run([folder] { return list_newest_first(*folder); });
    json::array list;
    for (const std::string& name : names) {
        list.emplace_back(name + " [" + type + "]");
    }
    co_await answer(call, comfy::json_reply(200, list));
}

}  // namespace comfyd::standalone
