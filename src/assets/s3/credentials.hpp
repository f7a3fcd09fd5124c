// Where the credentials of a store come from, and their renewal: configuration, environment,
// credentials file, container, instance, in this order.
//
// Belongs to one executor. The addresses of containers and instances are link-local, and only ever
// asked by a client of its own, never by the one for addresses that users name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "assets/s3/signature.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::assets::s3 {

// A variable of the process; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

struct CredentialSettings {
    Credentials given{};    // by the configuration; without an access key: not
    std::string profile{};  // of the credentials file, instead of what the environment says
    Environment environment = process_environment();
};

class CredentialSource {
public:
    // `clock` and `pool` outlive it.
    CredentialSource(Executor executor, CredentialSettings settings, Clock& clock, Pool& pool);
    ~CredentialSource();
    CredentialSource(const CredentialSource&) = delete;
    CredentialSource& operator=(const CredentialSource&) = delete;

    // Good for some minutes more. Those that expire are renewed five minutes before; while that
    // fails they are used up to their end. Code::config_invalid: there are none anywhere;
    // Code::storage_unavailable, Code::cancelled.
    Task<Result<Credentials>> get();
    // A service calls them worn out: the next get() asks again.
    void refuse(const Credentials& worn_out);

private:
    class Impl;
    std::shared_ptr<Impl> impl_;  // shared with those who wait
};

// The keys of one profile of a credentials file; nullopt when it has none.
std::optional<Credentials> read_profile(std::string_view file, std::string_view profile);
// What containers and instances answer: {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}.
Result<Credentials> read_role_answer(std::string_view json);
// Whether the keys of a container may be asked for there: https, or this machine, or one of the
// addresses that clusters reserve for it.
bool is_container_address(std::string_view url);

}  // namespace comfyd::assets::s3
