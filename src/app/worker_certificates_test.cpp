#include "app/worker_certificates.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "net/test_support.hpp"
#include "net/tls_test_server.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;
using net::test::TlsServer;

template <class Predicate>
bool comes_true(Predicate predicate) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!predicate() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(Millis(20));
    }
    return predicate();
}

class WorkerCertificatesTest : public testing::Test {
protected:
    WorkerCertificatesTest() { fs::create_directory(folder_); }
    ~WorkerCertificatesTest() override {
        loop_.run(done(certificates_.stop()));
        fs::remove_all(folder_);
    }

    static Task<bool> done(Task<> task) {
        co_await std::move(task);
        co_return true;
    }
    void put(const TlsServer& of) {
        put(of.path, "worker.pem");
        put(of.key_path, "worker.key");
    }
    // In one moment, as whoever renews certificates should.
    void put(const std::string& file, const std::string& name) {
        fs::copy_file(file, folder_ / "next", fs::copy_options::overwrite_existing);
        fs::rename(folder_ / "next", folder_ / name);
    }
    bool is_let_in() {
        net::ClientRequest request;
        request.url = worker_.url("localhost");
        return loop_.run(client_.send(std::move(request))).has_value();
    }

    TlsServer worker_{
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        TlsServer::Clients::with_its_certificate
    };
    TlsServer other_;
    const fs::path folder_ = worker_.path + ".folder";
    net::test::Loop loop_;
    net::Client client_{loop_.executor(), {}};
    WorkerCertificates certificates_{
        loop_.executor(),
        {{loop_.executor(), client_}},
        {{worker_.url("localhost"), folder_ / "worker.pem", folder_ / "worker.key", worker_.path}}
    };
};

TEST_F(WorkerCertificatesTest, AreTakenIntoUseWhenTheirFilesChange) {
    put(other_);
    ASSERT_TRUE(certificates_.use());
    loop_.run(done(certificates_.start()));
    EXPECT_FALSE(is_let_in()) << "it knows another one";
    put(worker_);
    EXPECT_TRUE(comes_true([this] { return is_let_in(); })) << "without a restart";
    put(other_);
    EXPECT_TRUE(comes_true([this] { return !is_let_in(); }));
}

TEST_F(WorkerCertificatesTest, WhatCannotBeUsedChangesNothing) {
    put(worker_);
    ASSERT_TRUE(certificates_.use());
    EXPECT_TRUE(is_let_in());
    put(other_.key_path, "worker.key");
    loop_.run(done(certificates_.start()));  // looks at once
    EXPECT_TRUE(is_let_in()) << "the key is not that of the certificate";
    fs::remove(folder_ / "worker.pem");
    EXPECT_TRUE(is_let_in());
    put(other_);
    EXPECT_TRUE(comes_true([this] { return !is_let_in(); })) << "both have changed";
}

TEST_F(WorkerCertificatesTest, ThatCannotBeUsedAtFirstAreTold) {
    const auto used = certificates_.use();
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().code, Code::config_invalid);
}

}  // namespace
}  // namespace comfyd::app
