// The cache of models: files by their SHA-256, links to them in ComfyUI's folders, and a note of
// where each came from and when it was last used. Over its limit it gives up the least recently
// used, never one that is pinned or that a program has open.
//
//   FOLDER/<sha256>     a content, read only; it has this name only when it is right and on disk
//   FOLDER/KEY.part     one that is on its way (models/part_file.hpp)
//   FOLDER/index.json   the notes; without them nothing is lost but what they say
//
// Blocks: for a pool. Any thread, and any process: each change is made under a lock of the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "models/part_file.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {

struct ContentsOptions {
    std::filesystem::path folder;  // of the cache
    std::filesystem::path models;  // ComfyUI's
    std::uint64_t bytes_max = 0;   // of the cache; 0: as the disk has room
    // Whose pins these are, where several use one cache: a folder that is gone when he is.
    std::filesystem::path owner{};
    std::set<std::string> pinned{};  // "checkpoints/a.safetensors"
};

// Where a source led last time.
struct Origin {
    std::string sha256;
    std::string etag;
};

class Contents {
public:
    explicit Contents(ContentsOptions options) : options_(std::move(options)) {}

    // Makes the folder, writes down the pins, removes what was begun a week ago and never ended.
    Result<> open();

    const std::filesystem::path& folder() const { return options_.folder; }
    std::filesystem::path path_of(const std::string& sha256) const;
    // Whether it is here; that is a use of it.
    std::optional<std::uint64_t> find(const std::string& sha256);
    std::optional<Origin> origin(const std::string& source) const;
    // What is known of a content; empty: nothing.
    json::object about(const std::string& sha256) const;

    // Room for this part to become so large, which counts as taken from now on, for all who use
    // the cache, as long as the part is open. False: it is promised to others that are on their
    // way, and may be there when those have ended; never to a part that has been given room
    // before. Code::storage_full: all that is here is needed.
    Result<bool> make_room(PartFile& part, std::uint64_t total);
    // A file of the cache, that publish() has named, and where it is from.
    Result<> note(
        const PartFile::Content& content, const std::string& source, const std::string& etag
    );
    // In ComfyUI's folder; takes the place of a link that was made here. Code::conflict: a file of
    // somebody else's has the name. Code::storage_full: it was given up for another meanwhile.
    Result<> link(const std::string& folder, const std::string& name, const std::string& sha256);

    // The file that has the name and is none of ours: its hash is read once and kept.
    struct Foreign {
        std::uint64_t bytes = 0;
        std::string sha256{};  // empty: it was not asked for
    };
    // nullopt: there is none. `stop`: asked now and then, gives up (Code::cancelled).
    Result<std::optional<Foreign>> find_foreign(
        const std::string& folder,
        const std::string& name,
        bool with_hash,
        const std::function<bool()>& stop
    );

private:
    struct Entry {
        std::string file;  // in the folder
        std::uint64_t bytes = 0;
        std::int64_t used_ms = 0;
        bool is_part = false;
        std::uint64_t claimed = 0;  // PartFile::claimed_by()
        std::uint64_t on_disk = 0;  // with what is reserved for it
    };

    Result<net::Descriptor> lock() const;
    json::object read_index() const;
    Result<> write_index(const json::object& index) const;
    std::vector<Entry> entries(const json::object& index) const;
    bool is_pinned(const json::object& index, const std::string& sha256) const;
    bool give_up(const Entry& entry, json::object& index) const;
    std::uint64_t free(std::vector<Entry> entries, json::object& index, std::uint64_t needed) const;

    ContentsOptions options_;
};

}  // namespace comfyd::models
