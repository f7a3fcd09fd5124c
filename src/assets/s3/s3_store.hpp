// Blobs in a bucket of AWS S3, Backblaze B2, Cloudflare R2, MinIO, Ceph or another service that
// speaks S3. It has a thread of its own, so that what is encrypted and sent in bulk does not hold
// up the sockets of workers and clients.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "assets/blob_store.hpp"
#include "assets/s3/bucket.hpp"
#include "base/pool.hpp"
#include "net/io_threads.hpp"

namespace comfyd::assets::s3 {

struct S3Settings {
    RequestOptions requests{};
    CredentialSettings credentials{};
    BucketOptions bucket{};
    bool gives_links = true;  // else clients get the bytes through comfyd
};

// Out of the words of the configuration: bucket, endpoint, region, style (auto, path, virtual),
// prefix, storage_class, archive_class, glacier_class, sse, kms_key, access_key, secret_key,
// session_token, profile, links (signed, streamed), public_endpoint, versions (keep, remove),
// ca_file. Code::config_invalid names the one that is wrong.
Result<S3Settings> read_settings(const std::map<std::string, std::string>& options);

class S3Store final : public BlobStore {
public:
    // Code::config_invalid. `clock` and `pool` outlive it.
    static Result<std::unique_ptr<S3Store>> make(S3Settings settings, Clock& clock, Pool& pool);
    ~S3Store() override;  // REQUIRES: nobody waits for it any more

    Result<> open() override { return {}; }
    Task<Result<std::string>> put(std::string key, Source source) override;
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) override;
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length)
        override;
    Task<Result<>> remove(std::string key) override;
    Task<Result<>> change_class(std::string key, StorageClass to) override;
    Task<Result<Page>> list(std::string after) override;
    Task<Result<>> remove_unfinished(Time before) override;

private:
    explicit S3Store(bool gives_links);

    const bool gives_links_;
    net::IoThread thread_;
    std::unique_ptr<Bucket> bucket_;  // on the thread
};

}  // namespace comfyd::assets::s3
