#include "assets/intake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assets/blake3.hpp"
#include "assets/media.hpp"
#include "assets/test_support.hpp"
#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "net/tls_test_server.hpp"

namespace comfyd::assets {
namespace {

using test::FileServer;
using test::picture;
using testing::HasSubstr;

std::string data_url(const std::string& bytes, const std::string& type = "image/png") {
    return "data:" + type + ";base64," + to_base64(bytes);
}

class IntakeTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(store_.open());
        request_.tenant = "red";
        request_.judge_host = [](const std::string&) { return HostRule::any; };
    }

    std::vector<Result<Asset>> take(std::vector<Wanted> files) {
        request_.files = std::move(files);
        return loop_.run(take_in(loop_.executor(), store_, request_));
    }
    Result<Asset> take(std::string source, MediaKind kind = MediaKind::image) {
        auto results = take({Wanted{std::move(source), kind}});
        EXPECT_EQ(results.size(), 1U);
        return std::move(results.at(0));
    }
    Code failure(std::string source, MediaKind kind = MediaKind::image) {
        const auto taken = take(std::move(source), kind);
        EXPECT_FALSE(taken);
        last_message_ = taken ? "" : taken.error().message;
        return taken ? Code::internal : taken.error().code;
    }
    std::size_t file_count(const char* folder) const {
        std::size_t count = 0;
        const auto where = folder_.path() / "data" / folder;
        for (const auto& entry : test::fs::recursive_directory_iterator(where)) {
            count += entry.is_regular_file() ? 1 : 0;
        }
        return count;
    }

    test::Folder folder_;
    ManualClock clock_;
    net::test::Loop loop_;
    Pool pool_{2};
    test::MemoryCatalogue catalogue_;
    Store store_{StoreOptions{folder_.path() / "data"}, catalogue_, clock_, pool_};
    FileServer server_;
    IntakeRequest request_;
    std::string last_message_;
};

TEST_F(IntakeTest, AnAddressBecomesAnAsset) {
    server_.put("/a/cat%20one.png", "image/png", picture(200'000));
    request_.expires_at = clock_.now() + std::chrono::hours(1);
    const auto taken = take(server_.url("/a/cat%20one.png?size=1#top"));
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->hash, blake3_name(picture(200'000)));
    EXPECT_EQ(taken->size_bytes, picture(200'000).size());
    EXPECT_EQ(taken->content_type, "image/png");
    EXPECT_EQ(taken->file_path, "cat_one.png");
    EXPECT_EQ(taken->tenant, "red");
    EXPECT_EQ(taken->expires_at, request_.expires_at);
    EXPECT_EQ(file_count("incoming"), 0U);
}

TEST_F(IntakeTest, EqualBytesAreStoredOnceWhereverTheyComeFrom) {
    server_.put("/a.png", "image/png", picture());
    server_.put("/b.png", "", picture());
    const auto taken = take(
        {{server_.url("/a.png"), MediaKind::image},
         {server_.url("/b.png"), MediaKind::any},
         {data_url(picture()), MediaKind::image},
         {server_.url("/a.png"), MediaKind::image}}
    );
    ASSERT_EQ(taken.size(), 4U);
    for (const auto& one : taken) {
        ASSERT_TRUE(one) << one.error().message;
        EXPECT_EQ(one->hash, blake3_name(picture()));
    }
    EXPECT_EQ(taken[0]->id, taken[3]->id);
    EXPECT_EQ(server_.asked("/a.png"), 1);
    ASSERT_TRUE(test::wait_for(store_.sweep())) << "of those that were stored at the same moment";
    EXPECT_EQ(file_count("blobs"), 1U);
}

TEST_F(IntakeTest, DataUrlsAreReadStrictly) {
    const auto taken = take(data_url(picture(), "text/plain"));
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->content_type, "image/png");  // the bytes decide
    EXPECT_TRUE(take("data:;base64," + to_base64(picture())));
    EXPECT_EQ(failure("data:image/png;base64,not base64!"), Code::invalid_argument);
    EXPECT_EQ(failure("data:image/png," + to_base64(picture())), Code::invalid_argument);
    EXPECT_EQ(failure("data:image/png;base64"), Code::invalid_argument);
    EXPECT_EQ(failure("data:"), Code::invalid_argument);
    EXPECT_EQ(failure("data:image/png;base64,"), Code::unsupported_media_type);
    EXPECT_EQ(failure(data_url("<html></html>")), Code::unsupported_media_type);
    EXPECT_EQ(failure(data_url("no picture \xff\x01", "")), Code::unsupported_media_type);
}

TEST_F(IntakeTest, AssetsAndHashesAreTheTenantsOwn) {
    const auto mine = take(data_url(picture()));
    ASSERT_TRUE(mine);
    const auto by_id = take("asset:" + mine->id.to_string());
    ASSERT_TRUE(by_id);
    EXPECT_EQ(by_id->id, mine->id);
    const auto by_hash = take(mine->hash);
    ASSERT_TRUE(by_hash);
    EXPECT_EQ(by_hash->hash, mine->hash);
    request_.tenant = "blue";
    EXPECT_EQ(failure("asset:" + mine->id.to_string()), Code::missing_asset);
    EXPECT_EQ(failure(mine->hash), Code::missing_asset);
    EXPECT_EQ(failure("asset:7"), Code::missing_asset);
    EXPECT_EQ(failure("blake3:00"), Code::missing_asset);
}

TEST_F(IntakeTest, FollowsRedirectsAndJudgesEach) {
    server_.put("/file.png", "image/png", picture());
    server_.redirect("/hop", "/file.png", 308);
    server_.redirect("/start.png", server_.url("/hop", "localhost"));
    std::vector<std::string> judged;
    request_.judge_host = [&judged](const std::string& host) {
        judged.push_back(host);
        return HostRule::any;
    };
    ASSERT_TRUE(take(server_.url("/start.png")));
    EXPECT_EQ(judged, (std::vector<std::string>{"127.0.0.1", "localhost", "localhost"}));

    request_.judge_host = [](const std::string& host) {
        return host == "localhost" ? HostRule::refused : HostRule::any;
    };
    EXPECT_EQ(failure(server_.url("/start.png")), Code::address_refused);
    EXPECT_THAT(last_message_, HasSubstr("'localhost' is not allowed"));
}

TEST_F(IntakeTest, RedirectsAndNamesThatLeadToPrivateAddressesAreRefused) {
    server_.put("/file.png", "image/png", picture());
    server_.redirect("/to-localhost", server_.url("/file.png", "localhost"));
    server_.redirect("/to-metadata", "http://169.254.169.254/latest/meta-data/");
    request_.judge_host = [](const std::string& host) {
        return host == "127.0.0.1" ? HostRule::any : HostRule::public_only;
    };
    EXPECT_EQ(failure(server_.url("/to-localhost")), Code::connection_failed);
    EXPECT_EQ(failure(server_.url("/to-metadata")), Code::address_refused);
    EXPECT_EQ(failure(server_.url("/file.png", "localhost")), Code::connection_failed);
    EXPECT_EQ(failure(server_.url("/file.png", "2130706433")), Code::connection_failed);
    EXPECT_EQ(failure(server_.url("/file.png", "[::ffff:127.0.0.1]")), Code::address_refused);
    EXPECT_EQ(server_.asked("/file.png"), 0);
}

TEST_F(IntakeTest, ASecureAddressDoesNotLeadToAPlainOne) {
    server_.put("/file.png", "image/png", picture());
    const auto to = [](const std::string& location) {
        return "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n";
    };
    const net::test::TlsServer down(to(server_.url("/file.png")));
    request_.limits.ca_file = down.path;
    EXPECT_EQ(failure(down.url("localhost") + "a.png"), Code::address_refused);
    EXPECT_THAT(last_message_, HasSubstr("https"));
    EXPECT_EQ(server_.asked("/file.png"), 0);

    const net::test::TlsServer file(
        "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: " +
        std::to_string(picture().size()) + "\r\n\r\n" + picture()
    );
    request_.limits.ca_file = file.path;
    EXPECT_TRUE(take(file.url("localhost") + "a.png"));
    server_.redirect("/up", file.url("localhost") + "a.png");
    EXPECT_TRUE(take(server_.url("/up")));
}

TEST_F(IntakeTest, RedirectsAreBounded) {
    server_.redirect("/loop", "/loop");
    EXPECT_EQ(failure(server_.url("/loop")), Code::upstream_error);
    EXPECT_EQ(server_.asked("/loop"), kRedirectsMax + 1);
    server_.redirect("/to-file", "file:///etc/passwd");
    EXPECT_EQ(failure(server_.url("/to-file")), Code::upstream_error);
    server_.redirect("/to-nowhere", "");
    EXPECT_EQ(failure(server_.url("/to-nowhere")), Code::upstream_error);
}

TEST_F(IntakeTest, WhatIsNoSuchMediumIsRefused) {
    server_.put("/page", "image/png", "<!doctype html><html></html>");
    EXPECT_EQ(failure(server_.url("/page")), Code::unsupported_media_type);
    server_.put("/tone.png", "image/png", "fLaC" + std::string(20, '\1'));
    EXPECT_EQ(failure(server_.url("/tone.png")), Code::unsupported_media_type);
    EXPECT_TRUE(take(server_.url("/tone.png"), MediaKind::audio));
    server_.put("/empty.png", "image/png", "");
    EXPECT_EQ(failure(server_.url("/empty.png")), Code::unsupported_media_type);
    server_.put("/missing", FileServer::Page{.status = 403});
    EXPECT_EQ(failure(server_.url("/missing")), Code::upstream_error);
    EXPECT_THAT(last_message_, HasSubstr("403"));
    FileServer::Page packed;
    packed.headers.set("Content-Encoding", "br");
    packed.body = picture();
    server_.put("/packed.png", packed);
    EXPECT_EQ(failure(server_.url("/packed.png")), Code::protocol_error);
    EXPECT_EQ(failure("https://user:secret@host.example/a.png"), Code::invalid_argument);
    EXPECT_EQ(failure("http:///a.png"), Code::invalid_argument);
    EXPECT_EQ(file_count("blobs"), 1U);
    EXPECT_EQ(file_count("incoming"), 0U);
}

TEST_F(IntakeTest, StopsReadingAtOnce) {
    FileServer::Page page;
    page.is_endless = true;
    page.body = std::string(64 * 1024, 'a');  // text
    server_.put("/endless.png", page);
    EXPECT_EQ(failure(server_.url("/endless.png")), Code::unsupported_media_type);
    page.body = picture(64 * 1024);
    server_.put("/endless2.png", page);
    request_.limits.bytes_max = 1024 * 1024;
    EXPECT_EQ(failure(server_.url("/endless2.png")), Code::payload_too_large);
    EXPECT_LT(server_.endless_bytes(), 64U * 1024 * 1024);
    EXPECT_EQ(file_count("incoming"), 0U);
}

TEST_F(IntakeTest, TheLimitIsForAllFilesTogether) {
    server_.put("/a.png", "image/png", picture(1000, 'a'));
    server_.put("/b.png", "image/png", picture(1000, 'b'));
    request_.limits.bytes_max = 1500;
    request_.limits.parallel_max = 1;
    const auto taken =
        take({{server_.url("/a.png"), MediaKind::image}, {server_.url("/b.png"), MediaKind::image}}
        );
    ASSERT_TRUE(taken.at(0));
    ASSERT_FALSE(taken.at(1));
    EXPECT_EQ(taken.at(1).error().code, Code::payload_too_large);
    EXPECT_EQ(failure(data_url(picture(2000))), Code::payload_too_large);

    request_.limits.files_max = 1;
    const auto many = take({{"asset:1"}, {"asset:2"}});
    ASSERT_EQ(many.size(), 2U);
    EXPECT_EQ(many[0].error().code, Code::invalid_argument);
}

TEST_F(IntakeTest, TimeIsForAllFilesTogether) {
    server_.put("/silent.png", FileServer::Page{.is_silent = true});
    request_.limits.timeout = Millis(50);
    const auto taken = take(
        {{server_.url("/silent.png"), MediaKind::image},
         {server_.url("/silent.png"), MediaKind::any},
         {"asset:1", MediaKind::any}}
    );
    EXPECT_EQ(taken.at(0).error().code, Code::request_timeout);
    EXPECT_EQ(taken.at(1).error().code, Code::request_timeout);
    EXPECT_EQ(taken.at(2).error().code, Code::missing_asset);
}

TEST_F(IntakeTest, ACancelledRequestEndsItsDownloads) {
    server_.put("/silent.png", FileServer::Page{.is_silent = true});
    request_.files = {{server_.url("/silent.png"), MediaKind::image}};
    auto going = loop_.start(take_in(loop_.executor(), store_, request_));
    while (server_.asked("/silent.png") == 0) {
        std::this_thread::yield();
    }
    loop_.cancel();
    const auto taken = net::test::get(going);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].error().code, Code::cancelled);
}

TEST_F(IntakeTest, NobodyThereIsSaidSo) {
    std::string gone;
    {
        FileServer other;
        gone = other.url("/a.png");
    }
    EXPECT_EQ(failure(gone), Code::connection_failed);
    catalogue_.is_broken = true;
    EXPECT_EQ(failure(data_url(picture())), Code::storage_unavailable);
}

TEST(Media, NamesFollowTheContent) {
    EXPECT_EQ(name_from_target("/a/b/cat.jpeg?x=y/z.png", "image/jpeg"), "cat.jpeg");
    EXPECT_EQ(name_from_target("/img.php?id=7", "image/png"), "img");
    EXPECT_EQ(name_from_target("/clip.png", "video/mp4"), "clip");
    EXPECT_EQ(name_from_target("/x.latent", "application/octet-stream"), "x.latent");
    EXPECT_EQ(name_from_target("/%2e%2e%2fsecret.png", "image/png"), "_secret.png");
    EXPECT_EQ(name_from_target("/", "image/png"), "");
    EXPECT_EQ(name_from_target("/%zz", "image/png"), "");
    EXPECT_EQ(name_from_target("/" + std::string(500, 'a') + ".png", "image/png").size(), 128U);
}

TEST(Media, UnknownBytesAreBelievedButPagesAreNot) {
    const std::string unknown("\0\1\2", 3);
    EXPECT_EQ(*judge_media(MediaKind::image, unknown, true, "image/x-new; q=1"), "image/x-new");
    EXPECT_FALSE(judge_media(MediaKind::image, unknown, true, ""));
    EXPECT_FALSE(judge_media(MediaKind::image, unknown, true, "image/\xff"));
    EXPECT_FALSE(judge_media(MediaKind::image, unknown, true, "video/mp4"));
    EXPECT_EQ(*judge_media(MediaKind::any, unknown, true, ""), "application/octet-stream");
    EXPECT_FALSE(judge_media(MediaKind::any, "<html>", true, "text/html; charset=utf-8"));
    EXPECT_TRUE(judge_media(MediaKind::any, "{}", true, "application/json"));
    EXPECT_TRUE(judge_media(MediaKind::video, "GIF89a", true, "image/gif"));
}

}  // namespace
}  // namespace comfyd::assets
