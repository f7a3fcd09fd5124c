#include "app/commands/read_file.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>

namespace comfyd::app {
namespace {

constexpr std::size_t kFileBytesMax = 512 * 1024 * 1024;  // pictures hold more than the workflow

Result<std::string> read_bytes(std::istream& in, const std::string& name) {
    std::string bytes;
    std::string piece(1 << 16, '\0');
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
        bytes.append(piece, 0, static_cast<std::size_t>(in.gcount()));
        if (bytes.size() > kFileBytesMax) {
            return fail(Code::invalid_argument, "'" + name + "' is too large");
        }
    }
    return bytes;
}

}  // namespace

Result<std::string> read_given_file(const std::string& file) {
    if (file == "-") {
        return read_bytes(std::cin, "standard input");
    }
    std::error_code error;
    std::ifstream in(file, std::ios::binary);
    if (!in || std::filesystem::is_directory(file, error)) {
        return fail(Code::invalid_argument, "cannot read '" + file + "'");
    }
    return read_bytes(in, file);
}

}  // namespace comfyd::app
