#include "app/shared_folder.hpp"

#include <optional>
#include <string>
#include <utility>

#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/shared_lines.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

constexpr char kNote[] = "shared-folder";
constexpr char kMark[] = "comfyd.cluster";
constexpr std::uint64_t kMarkBytesMax = 256;

std::string new_mark() {
    std::string bytes(16, '\0');
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

// The mark that is there; where there is none, one that was just made. Of processes that look at
// once, one makes it.
Result<std::string> read_or_make(const fs::path& file) {
    const auto turn = SharedLines(file).take_turn();
    if (!turn) {
        return fail(turn.error());
    }
    auto found = read_file(file, kMarkBytesMax);
    if (found || found.error().code != Code::not_found) {
        return found;
    }
    std::string made = new_mark();
    if (auto written = write_file(file, made); !written) {
        return fail(std::move(written.error()));
    }
    return made;
}

Result<> compare(const std::string& stored, const fs::path& folder) {
    const auto found = read_file(folder / kMark, kMarkBytesMax);
    if (found && *found == stored) {
        return {};
    }
    if (!found && found.error().code != Code::not_found) {
        return fail(found.error());
    }
    return fail(
        Code::config_invalid,
        "the folder '" + folder.string() +
            "' is not the one that the other nodes of this cluster have their files in: mount that "
            "one on every node, and name it by cluster.files"
    );
}

}  // namespace

Task<Result<>> check_shared_folder(jobs::Notebook& notebook, fs::path folder, Pool& pool) {
    auto stored = co_await notebook.read_note(kNote);
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    if (!*stored) {
        auto mark = co_await pool.run([folder] { return read_or_make(folder / kMark); });
        if (!mark) {
            co_return fail(std::move(mark.error()));
        }
        auto written = co_await notebook.write_note(kNote, *mark);
        if (!written) {
            co_return written;
        }
        stored = std::optional(std::move(*mark));
    }
    auto compared = co_await pool.run([mark = **stored, folder] { return compare(mark, folder); });
    co_return compared;
}

}  // namespace comfyd::app
