// GET /view and the uploads.
#include <algorithm>
#include <charconv>
#include <utility>

#include "admission/tenant_files.hpp"
#include "api/dialects/asset_content.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/job_wait.hpp"
#include "api/multipart_receive.hpp"
#include "base/disk.hpp"
#include "base/hop.hpp"
#include "comfy/members.hpp"
#include "workflow/files/named_files.hpp"

namespace comfyd::api::native {
namespace {

constexpr std::uint64_t kPictureBytesMax = 256ULL * 1024 * 1024;
constexpr std::uint64_t kLiveBytesMax = 256ULL * 1024 * 1024;
constexpr std::size_t kFieldBytesMax = 64 * 1024;
constexpr Millis kStoringTimeMax{5'000};

bool is_folder(std::string_view name) {
    return name == "input" || name == "output" || name == "temp";
}

bool has_query(const Call& call, std::string_view name) {
    return std::any_of(call.query.begin(), call.query.end(), [name](const auto& entry) {
        return entry.first == name;
    });
}

// What the request names, or the status that refuses it.
tl::expected<admission::FileQuery, int> decode_view(const Call& call) {
    if (!has_query(call, "filename")) {
        return tl::unexpected(404);
    }
    admission::FileQuery query;
    query.name = std::string(call.query_value("filename"));
    if (const auto folder = call.query_value("type"); !folder.empty()) {
        query.folder = std::string(folder);
    }
    workflow::split_annotation(query.name, query.folder);
    if (query.name.empty() || query.name.front() == '/' ||
        query.name.find("..") != std::string::npos || !is_folder(query.folder)) {
        return tl::unexpected(400);
    }
    query.subfolder = std::string(call.query_value("subfolder"));
    if (!query.subfolder.empty() && !confined("/", query.subfolder)) {
        return tl::unexpected(403);
    }
    while (query.subfolder.ends_with('/')) {
        query.subfolder.pop_back();
    }
    const auto slash = query.name.rfind('/');
    if (slash != std::string::npos) {
        query.name.erase(0, slash + 1);
    }
    return query;
}

// preview=webp;90 and channel=rgb|a ask for the picture in another form.
std::optional<PictureRequest> decode_form(const Call& call) {
    PictureRequest request;
    if (const auto preview = call.query_value("preview"); !preview.empty()) {
        const auto semicolon = std::min(preview.find(';'), preview.size());
        request.format = preview.substr(0, semicolon) == "jpeg" ? "jpeg" : "webp";
        const auto number = preview.substr(std::min(semicolon + 1, preview.size()));
        int quality = 0;
        std::from_chars(number.data(), number.data() + number.size(), quality);
        request.quality = quality > 0 ? std::min(quality, 100) : 90;
        return request;
    }
    const auto channel = call.query_value("channel");
    request.format = "png";
    if (channel == "rgb") {
        request.channel = PictureRequest::Channel::rgb;
        return request;
    }
    if (channel == "a") {
        request.channel = PictureRequest::Channel::alpha;
        return request;
    }
    return std::nullopt;
}

net::Response bytes_reply(std::string bytes, std::string content_type, const std::string& name) {
    net::Response response;
    response.headers.set("Content-Type", std::move(content_type));
    response.headers.set("X-Content-Type-Options", "nosniff");
    response.headers.set("Cache-Control", "no-store");
    response.headers.set("Content-Disposition", content_disposition(name, false));
    response.body = std::move(bytes);
    return response;
}

Task<> send_form(Call& call, Context& context, PictureRequest request, std::string name) {
    const std::string type = "image/" + request.format;
    if (!context.parts.convert_picture) {
        co_await send(call, trouble());
        co_return;
    }
    auto pass = co_await context.picture_turns.enter(call.caller.tenant);
    if (!pass) {
        co_await send(call, encode_native_error(pass.error()));
        co_return;
    }
    auto made = co_await context.parts.media.run([&convert = context.parts.convert_picture,
                                                  request = std::move(request)] {
        return convert(request);
    });
    co_await send(call, made ? bytes_reply(std::move(*made), type, name) : trouble());
}

// A running job's file is read from its worker, and from the store once the job has ended.
Task<Result<std::string>> read_found(
    Context& context, std::string tenant, admission::FileQuery query, admission::FoundFile found
) {
    const Services& services = context.services;
    if (!found.asset) {
        auto bytes =
            co_await services.jobs.read_output(tenant, found.job, found.live, kLiveBytesMax);
        if (bytes || bytes.error().code != Code::conflict) {
            co_return bytes;
        }
        auto ended = co_await wait_for_end(services, tenant, found.job, kStoringTimeMax);
        static_cast<void>(ended);
        auto stored = co_await admission::find_file(services, std::move(tenant), std::move(query));
        if (!stored || !*stored || !(*stored)->asset) {
            co_return fail(Code::not_found, "the job has left no such file");
        }
        found = std::move(**stored);
    }
    auto bytes = co_await services.assets.read(*found.asset, kPictureBytesMax);
    co_return bytes;
}

std::string safe_type(std::string_view name) {
    const std::string type(net::content_type_of(name));
    return is_active_type(type) ? "application/octet-stream" : type;
}

// One upload: the file into the store, the fields into memory.
class Upload final : public PartSink {
public:
    explicit Upload(assets::Store& store) : store_(store) {}

    Result<> begin_part(PartHead head) override {
        field_ = head.name;
        in_file_ = head.name == "image" && head.filename.has_value();
        text_image_ = text_image_ || (head.name == "image" && !head.filename);
        if (!in_file_) {
            return {};
        }
        filename = *head.filename;
        content_type = std::move(head.content_type);
        auto writer = store_.write();
        if (!writer) {
            return fail(std::move(writer.error()));
        }
        file = std::move(*writer);
        return {};
    }
    Result<> part_data(std::string_view piece) override {
        if (in_file_) {
            return file->append(piece);
        }
        std::string& value = fields[field_];
        if (fields.size() > 16 || value.size() + piece.size() > kFieldBytesMax) {
            return fail(Code::invalid_argument, "a field of the form is too long");
        }
        value += piece;
        return {};
    }
    Result<> end_part() override { return {}; }

    bool has_text_image() const { return text_image_; }
    std::string field(const std::string& name) const {
        const auto found = fields.find(name);
        return found == fields.end() ? std::string() : found->second;
    }

    std::unique_ptr<assets::BlobWriter> file;
    std::string filename;
    std::string content_type;
    std::map<std::string, std::string> fields;

private:
    assets::Store& store_;
    std::string field_;
    bool in_file_ = false;
    bool text_image_ = false;
};

struct Place {
    std::string folder;
    std::string subfolder;
    std::string name;

    std::string path() const {
        return folder + "/" + (subfolder.empty() ? "" : subfolder + "/") + name;
    }
};

// Where the upload is to lie, or the status that refuses it.
tl::expected<Place, int> place_of(const Upload& upload) {
    if (upload.has_text_image() && !upload.file) {
        return tl::unexpected(500);
    }
    const std::string type = upload.field("type");
    Place place{type.empty() ? "input" : type, upload.field("subfolder"), upload.filename};
    if (!is_folder(place.folder)) {
        return tl::unexpected(500);
    }
    const auto slash = place.name.find_last_of("/\\");
    if (slash != std::string::npos) {
        place.name.erase(0, slash + 1);
    }
    if (!upload.file || place.name.empty() || place.name == "." || place.name == ".." ||
        !confined("/", place.name)) {
        return tl::unexpected(400);
    }
    if (!place.subfolder.empty()) {
        const auto inner = confined("/", place.subfolder);
        if (!inner) {
            return tl::unexpected(400);
        }
        place.subfolder = inner->relative_path().string();
        while (place.subfolder.ends_with('/') || place.subfolder == ".") {
            place.subfolder.pop_back();
        }
    }
    return place;
}

// Gives the stored bytes their name and answers with it.
Task<> keep_and_answer(
    Call& call, Context& context, Place place, assets::Asset asset, bool overwrite
) {
    admission::NamedFile file{asset.id, asset.hash};
    auto path = co_await context.services.files->put(
        call.caller.tenant, place.path(), std::move(file), overwrite
    );
    if (!path) {
        co_await send(call, encode_native_error(path.error()));
        co_return;
    }
    const json::object body{
        {"name", path->substr(path->rfind('/') + 1)},
        {"subfolder", place.subfolder},
        {"type", place.folder},
    };
    co_await send(call, json_reply(200, body));
}

assets::NewAsset new_asset(const Call& call, const Upload& upload, const Place& place) {
    assets::NewAsset asset;
    asset.tenant = call.caller.tenant;
    asset.file_path = place.name;
    if (upload.content_type != "application/octet-stream") {
        asset.content_type = upload.content_type;
    }
    return asset;
}

bool wants_overwrite(const Upload& upload) {
    const std::string value = upload.field("overwrite");
    return value == "true" || value == "1";
}

Task<Result<Place>> receive_place(Call& call, Context& context, Upload& upload) {
    const std::uint64_t bytes_max = context.services.options.upload_bytes_max;
    auto received = co_await receive_multipart(
        call,
        upload,
        bytes_max,
        "Maximum request body size " + std::to_string(bytes_max) + " exceeded."
    );
    if (!received && received.error().code == Code::unsupported_media_type) {
        co_await send(call, empty_reply(400));
        co_return fail(std::move(received.error()));
    }
    if (!received) {
        co_await send(call, encode_native_error(received.error()));
        co_return fail(std::move(received.error()));
    }
    auto place = place_of(upload);
    if (!place) {
        co_await send(call, place.error() == 500 ? trouble() : empty_reply(place.error()));
        co_return fail(Code::invalid_argument, "the upload was refused");
    }
    co_return *place;
}

}  // namespace

Task<> get_view(Call& call, Context& context) {
    const auto query = decode_view(call);
    if (!query) {
        co_await send(call, empty_reply(query.error()));
        co_return;
    }
    auto found = co_await admission::find_file(context.services, call.caller.tenant, *query);
    if (!found) {
        co_await send(call, encode_native_error(found.error()));
        co_return;
    }
    if (!*found) {
        co_await send(call, empty_reply(404));
        co_return;
    }
    auto form = decode_form(call);
    if (!form && (*found)->asset) {
        assets::Asset asset = *(*found)->asset;
        auto sent = co_await send_asset(call, context.services, std::move(asset));
        if (!sent) {
            co_await send(call, empty_reply(404));
        }
        co_return;
    }
    auto bytes = co_await read_found(context, call.caller.tenant, *query, **found);
    if (!bytes) {
        co_await send(call, empty_reply(404));
        co_return;
    }
    if (form) {
        form->bytes = std::move(*bytes);
        co_await send_form(call, context, std::move(*form), query->name);
        co_return;
    }
    co_await send(call, bytes_reply(std::move(*bytes), safe_type(query->name), query->name));
}

Task<> upload_image(Call& call, Context& context) {
    Upload upload(context.services.assets);
    auto place = co_await receive_place(call, context, upload);
    if (!place) {
        co_return;
    }
    auto added = co_await context.services.assets.finish(
        std::move(upload.file), new_asset(call, upload, *place)
    );
    if (!added) {
        co_await send(call, encode_native_error(added.error()));
        co_return;
    }
    co_await keep_and_answer(
        call, context, std::move(*place), std::move(added->asset), wants_overwrite(upload)
    );
}

// The alpha of the uploaded picture replaces that of another one of the tenant's.
Task<> upload_mask(Call& call, Context& context) {
    Upload upload(context.services.assets);
    auto place = co_await receive_place(call, context, upload);
    if (!place) {
        co_return;
    }
    const auto reference = json::parse_object(upload.field("original_ref"));
    if (!reference || !context.parts.replace_alpha) {
        co_await send(call, trouble());
        co_return;
    }
    admission::FileQuery query;
    query.name = comfy::text_of(*reference, "filename");
    query.subfolder = comfy::text_of(*reference, "subfolder");
    query.folder = comfy::maybe_text(*reference, "type").value_or("output");
    workflow::split_annotation(query.name, query.folder);
    auto mask = co_await context.services.assets.finish(
        std::move(upload.file), new_asset(call, upload, *place)
    );
    if (!mask) {
        co_await send(call, encode_native_error(mask.error()));
        co_return;
    }
    auto found = co_await admission::find_file(context.services, call.caller.tenant, query);
    if (!found || !*found) {
        // As ComfyUI: the answer names a file that was not written.
        const json::object body{
            {"name", place->name}, {"subfolder", place->subfolder}, {"type", place->folder}
        };
        co_await send(call, json_reply(200, body));
        co_return;
    }
    auto original = co_await read_found(context, call.caller.tenant, std::move(query), **found);
    auto alpha = co_await context.services.assets.read(mask->asset, kPictureBytesMax);
    if (!original || !alpha) {
        co_await send(call, trouble());
        co_return;
    }
    auto pass = co_await context.picture_turns.enter(call.caller.tenant);
    if (!pass) {
        co_await send(call, encode_native_error(pass.error()));
        co_return;
    }
    auto made = co_await context.parts.media.run([&replace = context.parts.replace_alpha,
                                                  picture = std::move(*original),
                                                  mask_bytes = std::move(*alpha)] {
        return replace(picture, mask_bytes);
    });
    if (!made) {
        co_await send(call, trouble());
        co_return;
    }
    assets::NewAsset asset = new_asset(call, upload, *place);
    asset.content_type = "image/png";
    auto added = co_await context.services.assets.add(std::move(*made), std::move(asset));
    if (!added) {
        co_await send(call, encode_native_error(added.error()));
        co_return;
    }
    co_await keep_and_answer(
        call, context, std::move(*place), std::move(added->asset), wants_overwrite(upload)
    );
}

// Names, newest first: "a.png [output]".
Task<> get_file_names(Call& call, Context& context) {
    constexpr int kRecentJobs = 200;
    const std::string folder = call.path_parameters.at(0);
    if (!is_folder(folder)) {
        co_await send(call, json_reply(400, json::object{{"error", "Invalid directory type"}}));
        co_return;
    }
    json::array names;
    const std::string ending = " [" + folder + "]";
    if (folder != "input") {
        jobs::ListQuery query;
        query.tenant = call.caller.tenant;
        query.states = {jobs::State::completed};
        query.limit = kRecentJobs;
        auto page = co_await context.services.jobs.list(std::move(query));
        for (std::size_t i = 0; page && i < page->jobs.size(); ++i) {
            for (const jobs::Output& output : page->jobs[i].outputs) {
                if (output.folder == folder) {
                    const JobId& job = page->jobs[i].id;
                    names.emplace_back(
                        outer_subfolder(job, output.subfolder) + "/" + output.name + ending
                    );
                }
            }
        }
    }
    auto uploaded = co_await context.services.files->list(call.caller.tenant, folder);
    for (const std::string& name : uploaded) {
        names.emplace_back(name + ending);
    }
    co_await send(call, json_reply(200, names));
}

}  // namespace comfyd::api::native
