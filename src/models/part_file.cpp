#include "models/part_file.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNotesBytesMax = 64 * 1024;
constexpr std::size_t kReadBytes = 1024 * 1024;
constexpr std::uint64_t kRereadBytes = 64 * 1024 * 1024;

fs::path notes_path(const fs::path& part) {
    return part.native() + ".json";
}

// Which start of the computer this is. Without one, nothing is from before.
std::string boot() {
    std::string id(64, '\0');
    const net::Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    const ssize_t count = file ? ::read(file.number(), id.data(), id.size()) : 0;
    id.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return std::string(trim(id, " \n"));
}

// Whether the file at the path is still the one that was opened.
bool is_same(int fd, const fs::path& path) {
    struct stat here{};
    struct stat there{};
    return ::fstat(fd, &here) == 0 && ::lstat(path.c_str(), &there) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

Result<> sync_folder(const fs::path& folder) {
    const net::Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!at || ::fsync(at.number()) != 0) {
        return disk_error(folder, errno);
    }
    return {};
}

Error not_right(const Error& why) {
    return Error(Code::hash_mismatch, why.message);
}

}  // namespace

void PartFile::Hash::operator()(EVP_MD_CTX* context) const {
    EVP_MD_CTX_free(context);
}

PartFile::~PartFile() = default;
PartFile::PartFile(PartFile&&) noexcept = default;
PartFile& PartFile::operator=(PartFile&&) noexcept = default;

Result<PartFile> PartFile::open(const fs::path& folder, std::string_view key) {
    PartFile part;
    part.path_ = folder / (std::string(key) + ".part");
    while (true) {
        part.file_ = net::Descriptor(
            ::open(part.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
        );
        if (!part.file_) {
            return disk_error(part.path_, errno);
        }
        if (::flock(part.file_.number(), LOCK_EX | LOCK_NB) != 0) {
            return fail(Code::conflict, "another process fetches this file");
        }
        if (is_same(part.file_.number(), part.path_)) {
            break;  // else who had it has made it whole, or given it up, meanwhile
        }
    }
    struct stat about{};
    if (::fstat(part.file_.number(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return disk_error(part.path_, errno);
    }
    part.size_ = static_cast<std::uint64_t>(about.st_size);
    const auto text = read_file(notes_path(part.path_), kNotesBytesMax);
    const auto kept = text ? json::parse_object(*text) : Result<json::object>(fail(text.error()));
    if (!kept) {
        return part;
    }
    const auto source = json::find_string(*kept, "source");
    const auto etag = json::find_string(*kept, "etag");
    const auto total = json::find_int(*kept, "total");
    const auto started = json::find_string(*kept, "boot");
    if (source && etag && total && started && source->has_value()) {
        part.notes_ = PartNotes{**source, etag->value_or(""), std::nullopt};
        if (*total && **total >= 0) {
            part.notes_->total = static_cast<std::uint64_t>(**total);
        }
        part.is_from_before_ = started->value_or("") != boot();
    }
    return part;
}

Result<> PartFile::start_over(bool checks) {
    checks_ = checks;
    hashed_ = 0;
    hash_.reset(EVP_MD_CTX_new());
    if (hash_ == nullptr || EVP_DigestInit_ex(hash_.get(), EVP_sha256(), nullptr) != 1) {
        return fail(Code::internal, "no hash can be made");
    }
    reader_.reset();
    if (checks && notes_ && notes_->total) {
        reader_.emplace(*notes_->total);
    }
    return {};
}

Result<> PartFile::begin(const PartNotes& notes, bool checks) {
    // First what is there is taken away: it must never stand beside notes that are not of it.
    if (::ftruncate(file_.number(), 0) != 0) {
        return disk_error(path_, errno);
    }
    size_ = 0;
    notes_ = notes;
    is_from_before_ = false;
    json::object kept{{"source", notes.source}, {"etag", notes.etag}, {"boot", boot()}};
    if (notes.total) {
        kept["total"] = *notes.total;
    }
    if (auto written = write_file(notes_path(path_), json::serialize(kept)); !written) {
        return written;
    }
    return start_over(checks);
}

void PartFile::resume(bool checks) {
    auto begun = start_over(checks);
    static_cast<void>(begun);  // without a hash, digest() fails
}

Result<bool> PartFile::reread() {
    std::string room(kReadBytes, '\0');
    const std::uint64_t until = hashed_ + kRereadBytes;
    while (hashed_ < size_ && hashed_ < until) {
        const ssize_t count =
            ::pread(file_.number(), room.data(), room.size(), static_cast<off_t>(hashed_));
        if (count <= 0) {
            return disk_error(path_, count < 0 ? errno : EIO);
        }
        const std::string_view bytes(room.data(), static_cast<std::size_t>(count));
        if (auto digested = digest(bytes); !digested) {
            return fail(std::move(digested.error()));
        }
    }
    return hashed_ >= size_;
}

Result<> PartFile::digest(std::string_view bytes) {
    if (hash_ == nullptr || EVP_DigestUpdate(hash_.get(), bytes.data(), bytes.size()) != 1) {
        return fail(Code::internal, "no hash can be made");
    }
    hashed_ += bytes.size();
    if (reader_ && !reader_->is_done()) {
        if (auto read = reader_->put(bytes); !read) {
            return fail(not_right(read.error()));
        }
    }
    return {};
}

// A lock on that range of the file: the kernel gives it back with the file, also where the process
// is killed, and tells others how long it is.
void PartFile::claim(std::uint64_t total) {
    struct flock all{};
    all.l_type = F_UNLCK;
    all.l_whence = SEEK_SET;
    struct flock range = all;
    range.l_type = F_WRLCK;
    range.l_len = static_cast<off_t>(total);
    has_claimed_ = ::fcntl(file_.number(), F_OFD_SETLK, &all) == 0 &&
                   ::fcntl(file_.number(), F_OFD_SETLK, &range) == 0;
}

std::uint64_t PartFile::claimed_by(const fs::path& file) {
    const net::Descriptor at(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    const bool is_known = at && ::fcntl(at.number(), F_OFD_GETLK, &range) == 0;
    return is_known && range.l_type != F_UNLCK
               ? static_cast<std::uint64_t>(range.l_start + range.l_len)
               : 0;
}

void PartFile::give_back() {
    if (file_) {
        static_cast<void>(::ftruncate(file_.number(), static_cast<off_t>(size_)));
    }
}

Result<> PartFile::reserve(std::uint64_t total) {
    if (total <= size_) {
        return {};
    }
    // Behind the end, so that the size stays what has come. A file system that cannot do it finds
    // out while it writes.
    const int failed = ::fallocate(
        file_.number(),
        FALLOC_FL_KEEP_SIZE,
        static_cast<off_t>(size_),
        static_cast<off_t>(total - size_)
    );
    if (failed != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
        return disk_error(path_, errno);
    }
    return {};
}

Result<> PartFile::append(std::string_view bytes) {
    std::string_view left = bytes;
    std::uint64_t at = size_;
    while (!left.empty()) {
        const ssize_t count =
            ::pwrite(file_.number(), left.data(), left.size(), static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return disk_error(path_, count < 0 ? errno : ENOSPC);
        }
        at += static_cast<std::uint64_t>(count);
        left.remove_prefix(static_cast<std::size_t>(count));
    }
    size_ = at;
    return digest(bytes);
}

Result<PartFile::Content> PartFile::judge() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned digits = 0;
    if (hash_ == nullptr || hashed_ != size_ ||
        EVP_DigestFinal_ex(hash_.get(), digest.data(), &digits) != 1) {
        return fail(Code::internal, "not all of the file was hashed");
    }
    hash_.reset();
    Content content{to_hex(digest.data(), digits), size_, std::nullopt};
    if (checks_) {
        auto info = reader_ ? reader_->info() : read_safetensors(path_);
        if (!info) {
            return fail(not_right(info.error()));
        }
        if (info->bytes != size_) {
            return fail(Code::hash_mismatch, "the file is not as long as it was to be");
        }
        content.info = std::move(*info);
    }
    return content;
}

Result<> PartFile::publish(const fs::path& name) {
    constexpr mode_t kReadOnly = 0444;
    // Nobody writes into what was found to be right; what was reserved too much is given back.
    if (::ftruncate(file_.number(), static_cast<off_t>(size_)) != 0 ||
        ::fchmod(file_.number(), kReadOnly) != 0 || ::fsync(file_.number()) != 0 ||
        ::rename(path_.c_str(), name.c_str()) != 0) {
        return disk_error(path_, errno);
    }
    ::unlink(notes_path(path_).c_str());
    return sync_folder(name.parent_path());
}

void PartFile::discard() {
    ::unlink(notes_path(path_).c_str());
    ::unlink(path_.c_str());
    file_.reset();
}

}  // namespace comfyd::models
