// A real S3 service of a test's own: Ceph's gateway over a monitor and a store in memory, from
// Debian's packages. It checks signatures as AWS does. It ends with its owner.
//
// Starting it takes seconds: tests share one, each with a bucket of its own. All members from one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/certificate.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

class Radosgw {
public:
    static constexpr const char* kAccessKey = "TESTACCESSKEY";
    static constexpr const char* kSecretKey = "test/secret+key";
    // Buckets are also found under <bucket>.kDomain, whoever resolves that.
    static constexpr const char* kDomain = "s3.test";

    // Throws std::runtime_error with what is missing when it cannot be started.
    Radosgw();

    // One for all tests of this process, started when first asked for.
    static Radosgw& shared();

    std::uint16_t port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    // The same over TLS, with a certificate that signs itself.
    std::string tls_url() const { return "https://127.0.0.1:" + std::to_string(port_ + 2); }
    std::string ca_file() const { return certificate_.certificate; }
    // A new one, by s3cmd, which is nobody of ours.
    std::string make_bucket();
    // What s3cmd says. Throws std::runtime_error when it fails.
    std::string s3cmd(std::vector<std::string> words) const;

private:
    bool try_start();
    void write_configuration() const;
    std::string file(const std::string& name) const { return folder_ / name; }
    void run(std::vector<std::string> command) const;

    TempDir folder_;
    Certificate certificate_;
    std::uint16_t port_ = 0;  // the next is the monitor's, then that with TLS
    int buckets_ = 0;
    std::unique_ptr<Process> monitor_;
    std::unique_ptr<Process> osd_;
    std::unique_ptr<Process> gateway_;
};

}  // namespace comfyd::support
