// Files of the folders input, output and temp.
#include <utility>

#include "standalone/backend.hpp"
#include "standalone/files.hpp"
#include "standalone/pictures.hpp"

namespace comfyd::standalone {
namespace {

namespace server = comfy::server;

// Waits in memory until it has its name: how large it may be is a limit of the server.
class Bytes final : public server::NewFile {
public:
    Result<> append(std::string_view piece) override {
        bytes += piece;
        return {};
    }

    std::string bytes{};
};

}  // namespace

Task<Result<server::ShownFile>> EngineBackend::find_file(FileName name) {
    auto path = co_await core_.pool.run([&core = core_, &name] {
        return standalone::find_file(core.folders, name);
    });
    if (!path) {
        co_return fail(std::move(path.error()));
    }
    co_return server::ShownFile{std::move(*path)};
}

Task<std::vector<std::string>> EngineBackend::file_names(std::string type) {
    auto names = co_await core_.pool.run([&core = core_, &type] {
        const std::filesystem::path* folder = folder_of(core.folders, type);
        return folder == nullptr ? std::vector<std::string>() : list_newest_first(*folder);
    });
    co_return names;
}

Result<std::unique_ptr<server::NewFile>> EngineBackend::begin_file(std::string /*content_type*/) {
    return std::make_unique<Bytes>();
}

Task<Result<FileName>> EngineBackend::keep_file(
    std::unique_ptr<server::NewFile> file, FileName wanted, bool overwrite
) {
    const std::string& bytes = static_cast<const Bytes&>(*file).bytes;
    auto kept = co_await core_.pool.run([&core = core_, &wanted, &bytes, overwrite] {
        return store_upload(core.folders, wanted, bytes, overwrite);
    });
    co_return kept;
}

Task<Result<std::string>> EngineBackend::take_bytes(
    std::unique_ptr<server::NewFile> file, FileName /*name*/
) {
    co_return std::move(static_cast<Bytes&>(*file).bytes);
}

Task<Result<std::string>> EngineBackend::convert_picture(
    std::string picture, server::PictureForm form
) {
    auto made = co_await core_.pool.run([&picture, &form] {
        return standalone::convert_picture(picture, form);
    });
    co_return made;
}

Task<Result<std::string>> EngineBackend::replace_alpha(std::string picture, std::string mask) {
    auto made = co_await core_.pool.run([&picture, &mask] {
        return standalone::replace_alpha(picture, mask);
    });
    co_return made;
}

}  // namespace comfyd::standalone
