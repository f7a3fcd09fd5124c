// Blobs as files of a folder in Google Drive. A blob's key is the id that Drive gave to its file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "assets/blob_store.hpp"
#include "assets/drive/drive.hpp"
#include "net/io_threads.hpp"

namespace comfyd::assets::drive {

struct DriveSettings {
    DriveOptions drive{};
    std::string credentials_file{};  // empty: `identity` is known already
    Identity identity{};
    std::string subject{};  // for the service account of the file
};

// Out of the words of the configuration: folder, drive_id, credentials_file, subject; or client_id,
// client_secret, refresh_token; share (none, anyone), scope (drive, drive.file), endpoint,
// token_endpoint, ca_file. Code::config_invalid names the one that is wrong.
Result<DriveSettings> read_settings(const std::map<std::string, std::string>& options);

class DriveStore final : public BlobStore {
public:
    // `clock` and `pool` outlive it.
    DriveStore(DriveSettings settings, Clock& clock, Pool& pool);
    ~DriveStore() override;  // REQUIRES: nobody waits for it any more

    // Reads the credentials. Code::config_invalid.
    Result<> open() override;
    Task<Result<std::string>> put(std::string key, Source source) override;
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) override;
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length)
        override;
    Task<Result<>> remove(std::string key) override;
    // Drive has no classes.
    Task<Result<>> change_class(std::string key, StorageClass to) override;
    Task<Result<Page>> list(std::string after) override;
    // Drive forgets them by itself after a week.
    Task<Result<>> remove_unfinished(Time before) override;

private:
    DriveSettings settings_;
    Clock& clock_;
    Pool& pool_;
    net::IoThread thread_;
    std::unique_ptr<Drive> drive_;  // on the thread, from open() on
};

}  // namespace comfyd::assets::drive
