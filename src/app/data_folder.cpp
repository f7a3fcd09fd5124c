#include "app/data_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "app/config/settings.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

bool has_files(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator entries(folder, error);
    return !error && std::any_of(fs::begin(entries), fs::end(entries), [](const auto& entry) {
        std::error_code ignored;
        return entry.is_regular_file(ignored);
    });
}

}  // namespace

Result<> make_data_folder(const fs::path& data) {
    std::error_code error;
    fs::create_directories(data, error);
    if (error) {
        return fail(
            Code::storage_unavailable,
            "cannot make the data folder '" + data.string() + "': " + error.message()
        );
    }
    fs::permissions(data, fs::perms::owner_all, error);
    return {};
}

Result<> check_database(const fs::path& data, bool accepts_empty) {
    const fs::path database = data / kDatabaseFile;
    std::error_code error;
    const auto size = fs::file_size(database, error);
    const bool is_there = !error && size > 0;
    if (is_there || !has_files(data / kAssetsFolder)) {
        return {};
    }
    const std::string what = "the database '" + database.string() + "' is " +
                             (error ? "missing" : "empty") + ", but there are files in '" +
                             (data / kAssetsFolder).string() + "'";
    if (!accepts_empty) {
        return fail(
            Code::storage_unavailable,
            what +
                ": jobs and uploads would be unknown. Restore the database from a backup, or "
                "choose another data folder, or begin anew with --set "
                "accept_empty_database=true"
        );
    }
    log::warning(what + ": beginning anew, as accept_empty_database says");
    return {};
}

Result<> check_storage(const Config& config) {
    if (!is_clustered(config)) {
        return check_database(config.data, config.accept_empty_database);
    }
    if (config.cluster_secret.size() < kClusterSecretMin) {
        return fail(
            Code::config_invalid,
            "with 'ledger' nodes need a 'cluster.secret' of " + std::to_string(kClusterSecretMin) +
                " characters or more, the same on each: make one by openssl rand -hex 32"
        );
    }
    for (const std::string& entry : config.cluster_domains) {
        const std::size_t equals = entry.find('=');
        if (equals == std::string::npos || !is_pool_name(entry.substr(0, equals)) ||
            !is_pool_name(entry.substr(equals + 1))) {
            return fail(
                Code::config_invalid,
                "'cluster.domains' has entries like pool=domain, not '" + entry + "'"
            );
        }
    }
    const std::vector<std::string> domains = domains_of(config);
    for (const std::string& domain : config.cluster_leads) {
        if (std::ranges::find(domains, domain) == domains.end()) {
            return fail(
                Code::config_invalid,
                "'cluster.leads' names '" + domain +
                    "', which is no domain: those are main and what 'cluster.domains' has"
            );
        }
    }
    return {};
}

Result<std::string> load_key(const Config& config, const std::string& name) {
    if (!is_clustered(config)) {
        return load_key(fs::path(config.data) / (name + ".key"));
    }
    const Digest key = hmac_sha256(config.cluster_secret, "comfyd/" + name);
    return std::string(key.begin(), key.end());
}

Result<std::string> load_key(const fs::path& file) {
    constexpr std::size_t kKeyBytes = 32;
    {
        std::ifstream in(file, std::ios::binary);
        std::string key((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        if (key.size() == kKeyBytes) {
            return key;
        }
    }
    std::string key(kKeyBytes, '\0');
    random_bytes(key.data(), key.size());
    const fs::path temporary = file.string() + ".new";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = fd >= 0 &&
                         ::write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()) &&
                         ::fsync(fd) == 0;
    if (fd >= 0) {
        ::close(fd);
    }
    std::error_code error;
    if (written) {
        fs::rename(temporary, file, error);
    }
    if (!written || error) {
        return fail(Code::storage_unavailable, "cannot write '" + file.string() + "'");
    }
    return key;
}

}  // namespace comfyd::app
