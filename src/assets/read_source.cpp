#include "assets/read_source.hpp"

#include "assets/files.hpp"

namespace comfyd::assets {

Result<std::string> read_source(const Source& source, std::uint64_t first, std::uint64_t length) {
    const auto* file = std::get_if<std::filesystem::path>(&source.bytes);
    if (file == nullptr) {
        return std::get<1>(source.bytes)->substr(first, length);
    }
    auto bytes = read_part(*file, first, length);
    if (!bytes || bytes->size() != length) {
        return fail(
            Code::storage_unavailable,
            "'" + file->string() +
                "' cannot be sent: " + (bytes ? "it has become shorter" : bytes.error().message)
        );
    }
    return bytes;
}

}  // namespace comfyd::assets
