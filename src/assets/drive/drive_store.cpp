#include "assets/drive/drive_store.hpp"

#include <filesystem>
#include <utility>

#include "assets/store_options.hpp"
#include "base/cancellable_hop.hpp"
#include "base/disk.hpp"

namespace comfyd::assets::drive {
namespace {

constexpr std::uint64_t kCredentialBytesMax = 64 * 1024;
constexpr std::string_view kScopes = "https://www.googleapis.com/auth/";

}  // namespace

Result<DriveSettings> read_settings(const std::map<std::string, std::string>& options) {
    StoreOptionReader reader(options);
    DriveSettings settings;
    settings.drive.folder = reader.take("folder");
    settings.drive.drive_id = reader.take("drive_id");
    settings.drive.shares = reader.take_one_of("share", {"none", "anyone"}) == "anyone";
    settings.drive.ca_file = reader.take("ca_file");
    if (std::string url = reader.take("endpoint"); !url.empty()) {
        settings.drive.endpoint = std::move(url);
    }
    settings.credentials_file = reader.take("credentials_file");
    settings.subject = reader.take("subject");
    Person person{
        reader.take("client_id"), reader.take("client_secret"), reader.take("refresh_token")
    };
    settings.identity.scope =
        std::string(kScopes) + reader.take_one_of("scope", {"drive", "drive.file"});
    if (std::string url = reader.take("token_endpoint"); !url.empty()) {
        settings.identity.token_url = std::move(url);
    }
    if (auto finished = reader.finish(); !finished) {
        return fail(std::move(finished.error()));
    }
    if (settings.drive.folder.empty()) {
        settings.drive.folder = settings.drive.drive_id;  // the root of a shared drive has its id
    }
    if (settings.drive.folder.empty()) {
        return fail(Code::config_invalid, "folder: the id of the folder is missing");
    }
    const bool has_person = !person.refresh_token.empty() && !person.client_id.empty();
    if (has_person == !settings.credentials_file.empty()) {
        return fail(
            Code::config_invalid,
            "credentials_file: give it, or client_id, client_secret and refresh_token"
        );
    }
    if (has_person) {
        settings.identity.person = std::move(person);
    }
    return settings;
}

DriveStore::DriveStore(DriveSettings settings, Clock& clock, Pool& pool)
    : settings_(std::move(settings)), clock_(clock), pool_(pool), thread_("drive") {}

DriveStore::~DriveStore() {
    thread_.stop();
}

Result<> DriveStore::open() {
    Identity identity = settings_.identity;
    if (!settings_.credentials_file.empty()) {
        std::error_code error;
        const auto path = std::filesystem::canonical(settings_.credentials_file, error);
        auto text = error ? fail(Code::config_invalid, "") : read_file(path, kCredentialBytesMax);
        if (!text) {
            return fail(
                Code::config_invalid,
                "credentials_file: '" + settings_.credentials_file + "' cannot be read"
            );
        }
        auto found = read_identity(*text);
        if (!found) {
            return fail(std::move(found.error()));
        }
        found->scope = identity.scope;
        identity = std::move(*found);
    }
    if (identity.account) {
        identity.account->subject = settings_.subject;
    }
    drive_ = std::make_unique<Drive>(
        thread_.executor(), settings_.drive, std::move(identity), clock_, pool_
    );
    thread_.start();
    return {};
}

Task<Result<std::string>> DriveStore::put(std::string key, Source source) {
    return await_cancellable_on(thread_.executor(), drive_->put(std::move(key), std::move(source)));
}

Task<Result<std::optional<Place>>> DriveStore::find(std::string key, LinkTerms) {
    if (!settings_.drive.shares) {
        co_return Place(Streamed{});
    }
    auto url = co_await await_cancellable_on(thread_.executor(), drive_->link(std::move(key)));
    if (!url) {
        co_return url.error().code == Code::not_found ? Result<std::optional<Place>>(std::nullopt)
                                                      : fail(std::move(url.error()));
    }
    co_return *url ? Place(Redirect{std::move(**url)}) : Place(Streamed{});
}

Task<Result<std::string>> DriveStore::read(
    std::string key, std::uint64_t first, std::uint64_t length
) {
    return await_cancellable_on(thread_.executor(), drive_->read(std::move(key), first, length));
}

Task<Result<>> DriveStore::remove(std::string key) {
    return await_cancellable_on(thread_.executor(), drive_->remove(std::move(key)));
}

Task<Result<>> DriveStore::change_class(std::string, StorageClass) {
    co_return Result<>();
}

Task<Result<BlobStore::Page>> DriveStore::list(std::string after) {
    return await_cancellable_on(thread_.executor(), drive_->list(std::move(after)));
}

Task<Result<>> DriveStore::remove_unfinished(Time) {
    co_return Result<>();
}

}  // namespace comfyd::assets::drive
