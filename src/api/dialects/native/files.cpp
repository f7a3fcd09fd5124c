// The caller's files: uploads, and what its jobs made.
#include <utility>

#include "admission/tenant_files.hpp"
#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/names.hpp"
#include "api/job_wait.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

constexpr std::uint64_t kPictureBytesMax = 256ULL * 1024 * 1024;
constexpr std::uint64_t kLiveBytesMax = 256ULL * 1024 * 1024;
constexpr Millis kStoringTimeMax{5'000};
constexpr int kRecentJobs = 200;

Task<Result<server::ShownFile>> show_stored(const Services& services, assets::Asset asset) {
    server::ShownFile file;
    file.content_type = asset.content_type;
    file.etag = asset.hash.substr(asset.hash.find(':') + 1);
    file.caching = "private, max-age=86400";
    auto content = co_await services.assets.content(asset);
    if (!content) {
        co_return fail(Code::not_found, "the file is not there any more");
    }
    if (auto* path = std::get_if<std::filesystem::path>(&*content)) {
        file.content = std::move(*path);
    } else if (auto* bytes = std::get_if<std::string>(&*content)) {
        file.content = std::move(*bytes);
    } else {  // ComfyUI's clients are not used to being sent elsewhere
        auto fetched = co_await services.assets.read(std::move(asset), kLiveBytesMax);
        if (!fetched) {
            co_return fail(std::move(fetched.error()));
        }
        file.content = std::move(*fetched);
    }
    co_return file;
}

// A running job's file is read from its worker, and from the store once the job has ended.
Task<Result<server::ShownFile>> show_live(
    const Services& services,
    std::string tenant,
    admission::FileQuery query,
    admission::FoundFile found
) {
    auto bytes = co_await services.jobs.read_output(tenant, found.job, found.live, kLiveBytesMax);
    if (bytes) {
        co_return server::ShownFile{.content = std::move(*bytes), .caching = "no-store"};
    }
    if (bytes.error().code != Code::conflict) {
        co_return fail(Code::not_found, "the worker does not show the file");
    }
    auto ended = co_await wait_for_end(services, tenant, found.job, Deadline::in(kStoringTimeMax));
    static_cast<void>(ended);
    auto stored = co_await admission::find_file(services, std::move(tenant), std::move(query));
    if (!stored || !*stored || !(*stored)->asset) {
        co_return fail(Code::not_found, "the job has left no such file");
    }
    auto shown = co_await show_stored(services, std::move(*(*stored)->asset));
    co_return shown;
}

class NewAssetFile final : public server::NewFile {
public:
    NewAssetFile(std::unique_ptr<assets::BlobWriter> into, std::string type)
        : writer(std::move(into)), content_type(std::move(type)) {}

    Result<> append(std::string_view piece) override { return writer->append(piece); }

    std::unique_ptr<assets::BlobWriter> writer;
    std::string content_type;
};

Task<Result<assets::Asset>> store(
    const Services& services,
    std::string tenant,
    std::unique_ptr<server::NewFile> file,
    std::string name
) {
    auto& made = static_cast<NewAssetFile&>(*file);
    assets::NewAsset asset;
    asset.tenant = std::move(tenant);
    asset.file_path = std::move(name);
    if (made.content_type != "application/octet-stream") {
        asset.content_type = std::move(made.content_type);
    }
    auto added = co_await services.assets.finish(std::move(made.writer), std::move(asset));
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    co_return std::move(added->asset);
}

}  // namespace

Task<Result<server::ShownFile>> Gateway::find_file(server::FileName name) {
    const Services& services = context_.services;
    admission::FileQuery query{
        std::move(name.name), std::move(name.subfolder), std::move(name.type)
    };
    auto found = co_await admission::find_file(services, tenant(), query);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found) {
        co_return fail(Code::not_found, "there is no such file");
    }
    if ((*found)->asset) {
        auto stored = co_await show_stored(services, std::move(*(*found)->asset));
        co_return stored;
    }
    auto live = co_await show_live(services, tenant(), std::move(query), std::move(**found));
    co_return live;
}

Task<std::vector<std::string>> Gateway::file_names(std::string type) {
    std::vector<std::string> names;
    if (type != "input") {
        jobs::ListQuery query;
        query.tenant = tenant();
        query.states = {jobs::State::completed, jobs::State::failed, jobs::State::expired};
        query.limit = kRecentJobs;
        auto page = co_await context_.services.jobs.list(std::move(query));
        for (std::size_t i = 0; page && i < page->jobs.size(); ++i) {
            const jobs::Job& job = page->jobs[i];
            for (const jobs::Output& output : job.outputs) {
                if (output.folder == type) {
                    names.push_back(outer_subfolder(job.id, output.subfolder) + "/" + output.name);
                }
            }
        }
    }
    auto uploaded = co_await context_.services.files->list(tenant(), std::move(type));
    names.insert(names.end(), uploaded.begin(), uploaded.end());
    co_return names;
}

Result<std::unique_ptr<server::NewFile>> Gateway::begin_file(std::string content_type) {
    auto writer = context_.services.assets.write();
    if (!writer) {
        return fail(std::move(writer.error()));
    }
    return std::make_unique<NewAssetFile>(std::move(*writer), std::move(content_type));
}

Task<Result<server::FileName>> Gateway::keep_file(
    std::unique_ptr<server::NewFile> file, server::FileName wanted, bool overwrite
) {
    auto asset = co_await store(context_.services, tenant(), std::move(file), wanted.name);
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    const std::string folder =
        wanted.type + "/" + (wanted.subfolder.empty() ? "" : wanted.subfolder + "/");
    auto path = co_await context_.services.files->put(
        tenant(), folder + wanted.name, admission::NamedFile{asset->id, asset->hash}, overwrite
    );
    if (!path) {
        co_return fail(std::move(path.error()));
    }
    wanted.name = path->substr(folder.size());
    co_return wanted;
}

Task<Result<std::string>> Gateway::take_bytes(
    std::unique_ptr<server::NewFile> file, server::FileName name
) {
    auto asset = co_await store(context_.services, tenant(), std::move(file), std::move(name.name));
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    auto bytes = co_await context_.services.assets.read(std::move(*asset), kPictureBytesMax);
    co_return bytes;
}

Task<Result<std::string>> Gateway::convert_picture(std::string picture, server::PictureForm form) {
    const auto& convert = context_.parts.convert_picture;
    if (!convert) {
        co_return fail(Code::invalid_argument, "pictures are shown as they are");
    }
    auto pass = co_await context_.picture_turns.enter(tenant());
    if (!pass) {
        co_return fail(std::move(pass.error()));
    }
    auto made = co_await context_.parts.media.run([&convert, &picture, &form] {
        return convert(picture, form);
    });
    co_return made;
}

Task<Result<std::string>> Gateway::replace_alpha(std::string picture, std::string mask) {
    const auto& replace = context_.parts.replace_alpha;
    if (!replace) {
        co_return fail(Code::invalid_argument, "pictures are kept as they are");
    }
    auto pass = co_await context_.picture_turns.enter(tenant());
    if (!pass) {
        co_return fail(std::move(pass.error()));
    }
    auto made = co_await context_.parts.media.run([&replace, &picture, &mask] {
        return replace(picture, mask);
    });
    co_return made;
}

}  // namespace comfyd::api::native
