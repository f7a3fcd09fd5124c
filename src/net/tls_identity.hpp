// The certificate that a server shows, read from PEM files, and how it is replaced while the
// server runs. Connections that are open keep the one that they began with.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

namespace comfyd::net {

struct TlsFiles {
    std::string certificate;  // with the chain behind it
    std::string key;
};

class TlsIdentity {
public:
    // Code::config_invalid, with the file and what is wrong in it.
    static Result<std::shared_ptr<TlsIdentity>> load(TlsFiles files);

    // Reads the files again: true when they have changed and are in use now. What cannot be used
    // changes nothing. Any thread.
    Result<bool> reload();

    // For one connection. Any thread.
    std::shared_ptr<SSL_CTX> context() const;
    // When clients will no longer take it.
    Time expires_at() const;

private:
    struct Loaded {
        std::string certificate;
        std::string key;
        std::shared_ptr<SSL_CTX> context;
        Time expires_at;
    };
    TlsIdentity(TlsFiles files, Loaded loaded);
    static Result<Loaded> read(const TlsFiles& files);

    const TlsFiles files_;
    mutable Mutex mutex_;
    Loaded loaded_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::net
