// A bucket of an S3 service as a place for objects. Belongs to the executor of its requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assets/blob_store.hpp"
#include "assets/s3/requests.hpp"
#include "assets/s3/upload.hpp"

namespace comfyd::assets::s3 {

// The service's names for classes; empty: objects are left as they are.
struct StorageClasses {
    std::string standard{};
    std::string archive{};
    std::string glacier{};

    const std::string& of(StorageClass storage_class) const;
};
// As the service has them. AWS's GLACIER_IR is read at once; GLACIER and DEEP_ARCHIVE are not.
StorageClasses default_classes(const BucketName& name);

struct BucketOptions {
    std::string prefix{};  // of all keys: "comfyd/"; not seen outside
    StorageClasses classes{};
    std::string encryption{};  // "AES256", "aws:kms"; empty: as the bucket does by itself
    std::string kms_key{};
    // Removing takes all versions. Else what versions there are is the operator's wish.
    bool removes_versions = false;
    // Services take no smaller parts than of 5 MiB, and copy no more than 5 GiB at once; tests say
    // otherwise.
    std::uint64_t part_bytes = kPartBytes;
    std::uint64_t copy_bytes_max = 5ULL * 1024 * 1024 * 1024;
    std::uint64_t copy_part_bytes = 512ULL * 1024 * 1024;
    int restore_days = 7;
    // What lies under the prefix is ours, whatever its name; else only blobs are.
    bool owns_prefix = false;
};

struct ObjectInfo {
    std::uint64_t size_bytes = 0;
    std::string storage_class;  // "STANDARD" where the service says nothing
    enum class State { at_hand, archived, restoring } state = State::at_hand;
};

class Bucket {
public:
    Bucket(std::unique_ptr<Requests> requests, BucketOptions options);

    // As Requests::send(), and as BlobStore says.
    Task<Result<>> put(std::string key, Source source);
    Task<Result<ObjectInfo>> head(std::string key);
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length);
    Task<Result<>> remove(std::string key);
    Task<Result<>> change_class(std::string key, StorageClass to);
    // Asks for an archived one to be brought back for some days. Done as well when that is on its
    // way.
    Task<Result<>> restore(std::string key);
    Task<Result<BlobStore::Page>> list(std::string after);
    Task<Result<>> remove_unfinished(Time before);
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms);

private:
    net::Headers object_headers(const std::string& storage_class) const;
    Task<Result<>> put_whole(std::string key, Source source);
    Task<Result<>> copy_onto_itself(std::string key, std::string to, std::uint64_t size);
    Task<Result<>> remove_versions(std::string key);
    std::string name_of(const std::string& key) const { return options_.prefix + key; }

    std::unique_ptr<Requests> requests_;
    const BucketOptions options_;
};

}  // namespace comfyd::assets::s3
