#include "app/worker_certificates.hpp"

#include <fstream>
#include <utility>

#include "base/hop.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr std::size_t kFileBytesMax = 1024 * 1024;

std::string beginning_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string content(kFileBytesMax, '\0');
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(file.gcount()));
    return content;
}

Digest digest_of(const std::vector<net::ClientIdentity>& identities) {
    std::string all;
    for (const net::ClientIdentity& identity : identities) {
        for (const std::string& path : {identity.certificate, identity.key, identity.ca_file}) {
            all += to_hex(sha256(path.empty() ? "" : beginning_of(path)));
        }
    }
    return sha256(all);
}

}  // namespace

WorkerCertificates::WorkerCertificates(
    Executor executor, std::vector<fleet::Lane> clients, std::vector<net::ClientIdentity> identities
)
    : executor_(executor),
      clients_(std::move(clients)),
      identities_(std::move(identities)),
      tasks_(executor) {}

Result<> WorkerCertificates::use() {
    in_use_ = digest_of(identities_);
    for (const fleet::Lane& lane : clients_) {
        if (auto identified = lane.http.identify(identities_); !identified) {
            return identified;
        }
    }
    return {};
}

Task<> WorkerCertificates::start() {
    return work_on(executor_, [this] {
        if (!identities_.empty()) {
            tasks_.spawn("worker certificates", keep_looking());
        }
    });
}

Task<> WorkerCertificates::stop() {
    co_await work_on(executor_, [this] { tasks_.cancel(); });
    co_await await_on(executor_, tasks_.join());
}

Task<> WorkerCertificates::keep_looking() {
    bool goes_on = true;
    while (goes_on) {
        co_await look();
        goes_on = co_await sleep_for(kLookEvery);
    }
}

// The first client finds out whether they can be used.
Task<> WorkerCertificates::look() {
    const Digest found = digest_of(identities_);
    if (found == in_use_) {
        co_return;
    }
    for (const fleet::Lane& lane : clients_) {
        auto identified = co_await call_on(lane.executor, [this, &lane] {
            lane.http.close_idle();
            return lane.http.identify(identities_);
        });
        if (!identified) {
            if (complaint_ != identified.error().message) {
                complaint_ = identified.error().message;
                log::warning(
                    "the certificates for workers cannot be renewed; those before stay in use",
                    {{"error", complaint_}}
                );
            }
            co_return;
        }
    }
    in_use_ = found;
    complaint_.clear();
    log::info("renewed certificates for workers are in use");
}

}  // namespace comfyd::app
