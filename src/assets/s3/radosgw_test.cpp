// The store against a real service (Ceph's), read back by clients that are not ours: s3cmd and
// curl.
#include "support/radosgw.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "assets/s3/s3_store.hpp"
#include "assets/s3/test_support.hpp"
#include "assets/test_service.hpp"
#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "support/fault_proxy.hpp"

namespace comfyd::assets::s3 {
namespace {

using assets::test::new_key;
using assets::test::source_of;
using assets::test::varied_bytes;
using support::Radosgw;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1024 * 1024;

// Sanitizers keep what was freed for a while.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COMFYD_KEEPS_FREED
#endif
#endif
#if defined(COMFYD_KEEPS_FREED)
constexpr std::uint64_t kGrowthMax = 512 * kMiB;
#else
constexpr std::uint64_t kGrowthMax = 64 * kMiB;
#endif

// What curl gets: the status, and the body.
struct Fetched {
    std::string status;
    std::string body;
    std::string headers;
};

class RadosgwStore : public testing::Test {
protected:
    RadosgwStore() : service_(Radosgw::shared()), bucket_(service_.make_bucket()) {}

    S3Settings settings() {
        auto settings = test::settings_for(service_.url(), bucket_);
        settings.credentials.given = {Radosgw::kAccessKey, Radosgw::kSecretKey};
        settings.bucket.prefix = "out/";
        return settings;
    }
    // As s3cmd sees it.
    std::string fetched_by_s3cmd(const std::string& key) {
        const std::string file = folder_ / "fetched";
        service_.s3cmd({"get", "--force", "s3://" + bucket_ + "/out/" + key, file});
        return support::read_file(file);
    }
    Fetched fetched_by_curl(const std::string& url, std::vector<std::string> more = {}) {
        std::vector<std::string> command{
            "curl",
            "-s",
            "--noproxy",
            "*",
            "-o",
            folder_ / "body",
            "-D",
            folder_ / "headers",
            "-w",
            "%{http_code}",
            url
        };
        command.insert(command.end(), more.begin(), more.end());
        support::Process curl(std::move(command));
        curl.wait();
        return {
            curl.output(),
            support::read_file(folder_ / "body"),
            support::read_file(folder_ / "headers")
        };
    }
    // What a store would not ask for by itself.
    void ask(Call call) {
        net::test::Loop loop;
        Pool pool(1);
        const auto given = settings();
        auto requests =
            Requests::make(loop.executor(), given.requests, given.credentials, clock_, pool);
        EXPECT_TRUE(loop.run((*requests)->send(std::move(call))));
    }
    Source file_of(const std::string& bytes) {
        Source source = source_of("");
        source.bytes = std::filesystem::path(folder_.write("source", bytes));
        source.size_bytes = bytes.size();
        return source;
    }

    Radosgw& service_;
    const std::string bucket_;
    SystemClock clock_;
    support::TempDir folder_;
};

TEST_F(RadosgwStore, TakesAndGivesContentsOfAllSizes) {
    test::Store store(settings(), clock_);
    for (const std::size_t size : {0u, 1u, 1000u, 65'537u}) {
        const std::string key = new_key();
        const std::string bytes = varied_bytes(size);
        ASSERT_EQ(store.put(key, source_of(bytes)), key);
        EXPECT_EQ(store.read(key, 0, 1'000'000), bytes);
        EXPECT_EQ(fetched_by_s3cmd(key), bytes);
    }
}

TEST_F(RadosgwStore, AFileInPartsIsOneObject) {
    auto settings = this->settings();
    settings.bucket.part_bytes = 5 * kMiB;
    test::Store store(std::move(settings), clock_);
    const std::string bytes = varied_bytes(23 * kMiB + 77);
    const std::string key = new_key();
    ASSERT_TRUE(store.put(key, file_of(bytes)));
    EXPECT_TRUE(fetched_by_s3cmd(key) == bytes);
    EXPECT_EQ(store.read(key, 5 * kMiB - 3, 9), bytes.substr(5 * kMiB - 3, 9));
    EXPECT_EQ(store.read(key, bytes.size() - 2, 100), bytes.substr(bytes.size() - 2));
    EXPECT_EQ(store.read(key, bytes.size(), 100), "");
    EXPECT_THAT(
        service_.s3cmd({"info", "s3://" + bucket_ + "/out/" + key}), HasSubstr("image/png")
    );
}

TEST_F(RadosgwStore, AnUploadThatACrashCutOffGoesOn) {
    auto settings = this->settings();
    settings.bucket.part_bytes = 5 * kMiB;
    const std::string bytes = varied_bytes(16 * kMiB + 3);
    const std::string key = new_key();
    assets::test::Notebook notebook;
    Source source = file_of(bytes.substr(0, 12 * kMiB));  // the third part cannot be read
    source.size_bytes = bytes.size();
    source.note = notebook.note();
    ASSERT_FALSE(test::Store(settings, clock_).put(key, source));
    const auto uploads = [this] { return service_.s3cmd({"multipart", "s3://" + bucket_}); };
    EXPECT_THAT(uploads(), HasSubstr(key));

    source.bytes = file_of(bytes).bytes;
    source.note = notebook.note();
    ASSERT_TRUE(test::Store(settings, clock_).put(key, source));
    EXPECT_EQ(notebook.count, 1) << "it was begun once";
    EXPECT_TRUE(fetched_by_s3cmd(key) == bytes);
    EXPECT_THAT(uploads(), testing::Not(HasSubstr(key)));
}

// The most memory that this process has had, in bytes.
std::uint64_t memory_peak() {
    const std::string status = support::read_file("/proc/self/status");
    return std::stoull(status.substr(status.find("VmHWM:") + 6)) * 1024;
}

TEST_F(RadosgwStore, ALargeFileTakesNoMoreMemoryThanASmallOne) {
    test::Store store(settings(), clock_);
    const std::string file = folder_.write("large", "");
    const auto put = [&](std::uint64_t size) {
        std::filesystem::resize_file(file, size);
        Source source = source_of("");
        source.bytes = std::filesystem::path(file);
        source.size_bytes = size;
        return store.put(new_key(), std::move(source));
    };
    ASSERT_TRUE(put(48 * kMiB));
    const std::uint64_t before = memory_peak();
    const auto key = put(320 * kMiB);
    ASSERT_TRUE(key);
    EXPECT_LT(memory_peak() - before, kGrowthMax);
    EXPECT_EQ(store.read(*key, 320 * kMiB - 3, 10), std::string(3, '\0'));
}

TEST_F(RadosgwStore, KeysMayHaveAnyCharacters) {
    test::Store store(settings(), clock_);
    const std::string key = "a b+c%/\xC3\xA9'(1)*!/" + new_key();
    ASSERT_TRUE(store.put(key, source_of("x")));
    EXPECT_EQ(store.read(key, 0, 9), "x");
    EXPECT_EQ(fetched_by_curl(store.link(key)).body, "x");
}

TEST_F(RadosgwStore, ALinkGivesItToWhoeverHasItForAWhile) {
    test::Store store(settings(), clock_);
    const std::string key = new_key();
    ASSERT_TRUE(store.put(key, source_of("the picture")));
    LinkTerms terms;
    terms.content_type = "text/plain";
    terms.content_disposition = "inline; filename*=UTF-8''caf%C3%A9%20%22x%22.txt";
    const std::string link = store.link(key, terms);
    const Fetched whole = fetched_by_curl(link);
    EXPECT_EQ(whole.status, "200");
    EXPECT_EQ(whole.body, "the picture");
    EXPECT_THAT(whole.headers, HasSubstr("text/plain"));
    EXPECT_THAT(whole.headers, HasSubstr(terms.content_disposition));
    EXPECT_EQ(fetched_by_curl(link, {"-r", "4-6"}).body, "pic");

    EXPECT_EQ(fetched_by_curl(link + "0").status, "403");
    EXPECT_EQ(fetched_by_curl(link + "&versionId=1").status, "403");
    EXPECT_EQ(fetched_by_curl(link, {"-X", "DELETE"}).status, "403");
    auto other = settings();
    other.credentials.given.secret_key = "wrong";
    test::Store forger(std::move(other), clock_);
    EXPECT_EQ(fetched_by_curl(forger.link(key)).status, "403");

    ManualClock past(clock_.now() - std::chrono::hours(2));
    test::Store earlier(settings(), past);
    EXPECT_EQ(fetched_by_curl(earlier.link(key)).status, "403");
    LinkTerms longer;
    longer.life = std::chrono::hours(3);
    EXPECT_EQ(fetched_by_curl(earlier.link(key, longer)).status, "200");
}

TEST_F(RadosgwStore, TheBucketMayStandBeforeTheHost) {
    auto settings = this->settings();
    const std::string port = std::to_string(service_.port());
    settings.requests.name.endpoint = std::string("http://") + Radosgw::kDomain + ":" + port;
    settings.requests.name.style = Style::virtual_host;
    test::Store named(std::move(settings), clock_);
    test::Store store(this->settings(), clock_);
    const std::string key = new_key();
    ASSERT_TRUE(store.put(key, source_of("x")));
    const std::string host = bucket_ + "." + Radosgw::kDomain;
    const std::string link = named.link(key);
    EXPECT_THAT(link, testing::StartsWith("http://" + host + ":" + port + "/out/"));
    const Fetched fetched = fetched_by_curl(link, {"--resolve", host + ":" + port + ":127.0.0.1"});
    EXPECT_EQ(fetched.status, "200");
    EXPECT_EQ(fetched.body, "x");
}

TEST_F(RadosgwStore, SpeaksTls) {
    auto settings = this->settings();
    settings.requests.name.endpoint = service_.tls_url();
    settings.bucket.part_bytes = 5 * kMiB;
    const S3Settings untrusting = settings;
    settings.requests.ca_file = service_.ca_file();
    test::Store store(std::move(settings), clock_);
    for (const std::size_t size : {std::size_t(7), std::size_t(11 * kMiB)}) {
        const std::string key = new_key();
        const std::string bytes = varied_bytes(size);
        const auto put = store.put(key, source_of(bytes));
        ASSERT_TRUE(put) << put.error().message;
        EXPECT_TRUE(fetched_by_s3cmd(key) == bytes);
        EXPECT_EQ(store.read(key, size - 3, 9), bytes.substr(size - 3));
        const Fetched fetched = fetched_by_curl(store.link(key), {"--cacert", service_.ca_file()});
        EXPECT_TRUE(fetched.body == bytes);
    }
    test::Store strict(untrusting, clock_);
    EXPECT_EQ(strict.put(new_key(), source_of("x")).error().code, Code::storage_unavailable);
}

TEST_F(RadosgwStore, WhatIsRemovedIsGoneAndMayBeRemovedAgain) {
    test::Store store(settings(), clock_);
    const std::string key = new_key();
    ASSERT_TRUE(store.put(key, source_of("x")));
    EXPECT_TRUE(store.remove(key));
    EXPECT_EQ(store.read(key, 0, 9).error().code, Code::not_found);
    EXPECT_TRUE(store.remove(key));
    EXPECT_EQ(fetched_by_curl(store.link(key)).status, "404");
}

TEST_F(RadosgwStore, OfAVersionedBucketAllVersionsAreRemoved) {
    Call call{.method = "PUT", .query = {{"versioning", ""}}};
    call.payload.bytes =
        "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    call.payload.hash = to_hex(sha256(call.payload.bytes));
    ask(std::move(call));
    auto settings = this->settings();
    settings.bucket.removes_versions = true;
    test::Store store(std::move(settings), clock_);
    const std::string key = new_key();
    ASSERT_TRUE(store.put(key, source_of("one")));
    ASSERT_TRUE(store.put(key, source_of("two")));
    ASSERT_TRUE(store.put(key + "0", source_of("another's")));
    service_.s3cmd({"del", "s3://" + bucket_ + "/out/" + key});  // only hides it
    ASSERT_TRUE(store.remove(key));
    EXPECT_EQ(store.read(key + "0", 0, 99), "another's");
    ASSERT_TRUE(store.remove(key + "0"));
    // A bucket is removed only when it has no versions left.
    service_.s3cmd({"rb", "s3://" + bucket_});
}

TEST_F(RadosgwStore, ListsByPagesWhatIsItsOwn) {
    test::Store store(settings(), clock_);
    std::set<std::string> keys;
    for (std::size_t i = 0; i < 5; ++i) {
        keys.insert(*store.put(new_key(), source_of(std::string(i, 'x'))));
    }
    service_.s3cmd({"put", folder_.write("other", "x"), "s3://" + bucket_ + "/out/other.txt"});
    service_.s3cmd({"put", folder_ / "other", "s3://" + bucket_ + "/elsewhere"});
    std::set<std::string> seen;
    std::string after;
    do {
        const auto page = store.list(after);
        ASSERT_TRUE(page);
        for (const auto& blob : page->blobs) {
            EXPECT_LT(blob.modified_at, clock_.now() + std::chrono::minutes(1));
            seen.insert(blob.key);
        }
        after = page->next;
    } while (!after.empty());
    EXPECT_EQ(seen, keys);
}

TEST_F(RadosgwStore, AnotherClassIsACopyOntoItself) {
    auto settings = this->settings();
    settings.bucket.classes.archive = "STANDARD_IA";
    settings.bucket.part_bytes = 5 * kMiB;
    settings.bucket.copy_bytes_max = 6 * kMiB;
    settings.bucket.copy_part_bytes = 5 * kMiB;
    test::Store store(std::move(settings), clock_);
    for (const std::size_t size : {std::size_t(10), std::size_t(11 * kMiB)}) {
        const std::string key = new_key();
        const std::string bytes = varied_bytes(size);
        ASSERT_TRUE(store.put(key, source_of(bytes)));
        ASSERT_TRUE(store.change_class(key, StorageClass::archive)) << size;
        EXPECT_THAT(
            service_.s3cmd({"info", "s3://" + bucket_ + "/out/" + key}), HasSubstr("STANDARD_IA")
        );
        EXPECT_TRUE(store.change_class(key, StorageClass::archive));
        EXPECT_TRUE(fetched_by_s3cmd(key) == bytes);
        EXPECT_TRUE(store.change_class(key, StorageClass::standard));
    }
    EXPECT_EQ(store.change_class(new_key(), StorageClass::archive).error().code, Code::not_found);
}

TEST_F(RadosgwStore, SweepsUploadsThatWereNeverEnded) {
    const auto uploads = [this] { return service_.s3cmd({"multipart", "s3://" + bucket_}); };
    const std::string key = new_key();
    for (const std::string& name : {"out/" + key, std::string("out/other")}) {
        ask({.method = "POST", .key = name, .query = {{"uploads", ""}}});
    }
    test::Store store(settings(), clock_);
    ASSERT_TRUE(store.remove_unfinished(clock_.now() - std::chrono::hours(1)));
    EXPECT_THAT(uploads(), HasSubstr(key));
    ASSERT_TRUE(store.remove_unfinished(clock_.now() + std::chrono::hours(1)));
    EXPECT_THAT(uploads(), testing::Not(HasSubstr(key)));
    EXPECT_THAT(uploads(), HasSubstr("out/other"));  // somebody else's
}

TEST_F(RadosgwStore, SaysWhatIsWrong) {
    auto forged = settings();
    forged.credentials.given.secret_key = "wrong";
    test::Store forger(std::move(forged), clock_);
    const auto refused = forger.put(new_key(), source_of("x"));
    EXPECT_EQ(refused.error().code, Code::config_invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("SignatureDoesNotMatch"));

    auto lost = settings();
    lost.requests.name.bucket = "no-such-bucket";
    test::Store nowhere(std::move(lost), clock_);
    EXPECT_THAT(nowhere.put(new_key(), source_of("x")).error().message, HasSubstr("NoSuchBucket"));
}

TEST_F(RadosgwStore, GoesOnWithAClockThatIsWrong) {
    ManualClock wrong(clock_.now() - std::chrono::hours(5));
    test::Store store(settings(), wrong);
    const std::string key = new_key();
    EXPECT_TRUE(store.put(key, source_of("x")));
    EXPECT_EQ(fetched_by_curl(store.link(key)).status, "200");
}

TEST_F(RadosgwStore, IsAwayForAWhile) {
    support::FaultProxy proxy(service_.port());
    auto settings = this->settings();
    settings.requests.name.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
    test::Store store(std::move(settings), clock_);
    const std::string key = new_key();
    proxy.inflict_on_all(support::FaultProxy::Fault::cut);
    EXPECT_EQ(store.put(key, source_of("x")).error().code, Code::storage_unavailable);
    proxy.heal();
    EXPECT_TRUE(store.put(key, source_of("x")));
    EXPECT_EQ(fetched_by_s3cmd(key), "x");
}

}  // namespace
}  // namespace comfyd::assets::s3
