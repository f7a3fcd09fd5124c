// A file on its way: what has come so far, beside where it will be, with a note of what it is the
// beginning of. It gets its final name only when its bytes are known to be the right ones and are
// on disk; before that nobody takes it for the file, whenever this process ends.
//
//   FOLDER/KEY.part       the bytes; its size is what has come, whatever was reserved behind it
//   FOLDER/KEY.part.json  of which source and version they are
//
// Blocks: for a pool. One caller at a time, and one process: who has it open holds its lock, and
// another one that is as long as the file will be.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "models/safetensors.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {

struct PartNotes {
    std::string source{};
    std::string etag{};                    // strong; empty: the server has none
    std::optional<std::uint64_t> total{};  // of the whole file, where it is told

    friend bool operator==(const PartNotes&, const PartNotes&) = default;
};

class PartFile {
public:
    // Code::conflict: another process has it. Those of the disk.
    static Result<PartFile> open(const std::filesystem::path& folder, std::string_view key);
    ~PartFile();
    PartFile(PartFile&&) noexcept;
    PartFile& operator=(PartFile&&) noexcept;

    std::uint64_t size() const { return size_; }
    // Of what is there; nullopt: it is not known what it is of, or the computer was started anew
    // meanwhile, so that what was written last may never have reached the disk.
    const std::optional<PartNotes>& notes() const { return notes_; }
    bool is_from_before() const { return is_from_before_; }

    // Begins from nothing. `checks`: as a safetensors file, where `total` is known from the first
    // bytes on, otherwise at the end.
    Result<> begin(const PartNotes& notes, bool checks);
    // Goes on with what is there, which is read first: reread() until it says true.
    void resume(bool checks);
    Result<bool> reread();

    // The name of its file in the folder.
    std::string name() const { return path_.filename(); }
    // That it will become so large others see as long as this one is open, also under its final
    // name. Where the file system has no locks of that kind nobody does.
    void claim(std::uint64_t total);
    bool has_claimed() const { return has_claimed_; }
    // What somebody who has the file open has claimed for it; 0: nobody has.
    static std::uint64_t claimed_by(const std::filesystem::path& file);

    // Room for a file of so many bytes. Code::storage_full.
    Result<> reserve(std::uint64_t total);
    // What was reserved and has not come.
    void give_back();
    // Code::hash_mismatch: the head of a safetensors file that does not fit its size. Those of the
    // disk.
    Result<> append(std::string_view bytes);

    struct Content {
        std::string sha256;
        std::uint64_t bytes = 0;
        std::optional<SafetensorsInfo> info{};
    };
    // All has come: what it is. Code::hash_mismatch: it is no whole safetensors file.
    Result<Content> judge();
    // On disk, under its name, read only. REQUIRES: judge() said yes.
    Result<> publish(const std::filesystem::path& name);
    // Nothing of it stays.
    void discard();

private:
    struct Hash {
        void operator()(EVP_MD_CTX* context) const;
    };

    PartFile() = default;
    Result<> start_over(bool checks);
    Result<> digest(std::string_view bytes);

    std::filesystem::path path_;
    net::Descriptor file_;
    std::uint64_t size_ = 0;
    std::uint64_t hashed_ = 0;
    std::optional<PartNotes> notes_{};
    bool is_from_before_ = false;
    bool checks_ = false;
    bool has_claimed_ = false;
    std::unique_ptr<EVP_MD_CTX, Hash> hash_;
    std::optional<SafetensorsReader> reader_{};
};

}  // namespace comfyd::models
