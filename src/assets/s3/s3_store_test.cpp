// What real services do and the one of radosgw_test.cpp does not: regions, redirects, overload,
// errors after a success, answers that are lost, archives.
#include "assets/s3/s3_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assets/s3/md5.hpp"
#include "assets/s3/test_support.hpp"
#include "assets/test_service.hpp"
#include "base/crypto.hpp"

namespace comfyd::assets::s3 {
namespace {

using assets::test::Asked;
using assets::test::new_key;
using assets::test::Played;
using assets::test::source_of;
using assets::test::TestService;
using assets::test::varied_bytes;
using test::settings_for;
using testing::HasSubstr;
using testing::Not;

Played error(int status, const std::string& code, const std::string& more = {}) {
    return {.status = status, .body = "<Error><Code>" + code + "</Code>" + more + "</Error>"};
}

Played with(Played played, std::string_view name, std::string value) {
    played.headers.set(name, std::move(value));
    return played;
}

std::string authorization(const Asked& asked) {
    return std::string(asked.headers.get("Authorization"));
}

class S3StoreTest : public testing::Test {
protected:
    SystemClock clock_;
};

TEST_F(S3StoreTest, WhatPassesIsTriedAgain) {
    int tries = 0;
    TestService service([&](const Asked&) {
        ++tries;
        return tries == 1   ? error(503, "SlowDown")
               : tries == 2 ? Played{.status = 500, .is_lost = true}
                            : Played{};
    });
    test::Store store(settings_for(service.url()), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    EXPECT_EQ(tries, 3);
}

TEST_F(S3StoreTest, AndGivenUpAtLast) {
    TestService service([](const Asked&) { return error(500, "InternalError"); });
    test::Store store(settings_for(service.url()), clock_);
    EXPECT_EQ(store.put(new_key(), source_of("abc")).error().code, Code::storage_unavailable);
    EXPECT_EQ(service.count("PUT"), 4u);
}

TEST_F(S3StoreTest, WhatSomebodyMustSetRightIsNotTriedAgain) {
    TestService service([](const Asked&) { return error(403, "InvalidAccessKeyId"); });
    test::Store store(settings_for(service.url()), clock_);
    const auto put = store.put(new_key(), source_of("abc"));
    EXPECT_EQ(put.error().code, Code::config_invalid);
    EXPECT_THAT(put.error().message, HasSubstr("access_key"));
    EXPECT_THAT(put.error().message, Not(HasSubstr("SK")));
    EXPECT_EQ(service.count("PUT"), 1u);
}

TEST_F(S3StoreTest, NobodyThere) {
    std::string url;
    {
        TestService service([](const Asked&) { return Played{}; });
        url = service.url();
    }
    test::Store store(settings_for(url), clock_);
    EXPECT_EQ(store.put(new_key(), source_of("abc")).error().code, Code::storage_unavailable);
    EXPECT_EQ(store.read(new_key(), 0, 5).error().code, Code::storage_unavailable);
}

TEST_F(S3StoreTest, GoesByTheServicesTime) {
    ManualClock wrong(*parse_rfc3339("2013-05-24T00:00:00.000Z"));
    TestService service([](const Asked& asked) {
        return asked.headers.get("x-amz-date").starts_with("2013")
                   ? error(403, "RequestTimeTooSkewed")
                   : Played{};
    });
    test::Store store(settings_for(service.url()), wrong);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    EXPECT_TRUE(store.remove(new_key()));
    EXPECT_EQ(service.asked().size(), 3u);  // it was learned once
}

TEST_F(S3StoreTest, LearnsTheRegion) {
    TestService service([](const Asked& asked) {
        return authorization(asked).find("/eu-west-9/s3/") != std::string::npos
                   ? Played{}
                   : error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-9</Region>");
    });
    test::Store store(settings_for(service.url()), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    EXPECT_TRUE(store.remove(new_key()));
    EXPECT_EQ(service.asked().size(), 3u);
}

TEST_F(S3StoreTest, MovesForGoodToWhereTheBucketIs) {
    TestService there([](const Asked&) { return Played{}; });
    TestService here([&](const Asked&) {
        return with(
            error(301, "PermanentRedirect", "<Endpoint>" + there.host() + "</Endpoint>"),
            "x-amz-bucket-region",
            "there-1"
        );
    });
    test::Store store(settings_for(here.url()), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    EXPECT_TRUE(store.remove(new_key()));
    EXPECT_EQ(here.asked().size(), 1u);
    ASSERT_EQ(there.asked().size(), 2u);
    EXPECT_EQ(there.asked()[0].body, "abc");
    EXPECT_EQ(there.asked()[0].headers.get("Host"), there.host());
    EXPECT_THAT(authorization(there.asked()[0]), HasSubstr("/there-1/s3/"));
}

TEST_F(S3StoreTest, MovesForOneRequestWhereNamesHaveNotSpread) {
    TestService there([](const Asked&) { return Played{}; });
    bool is_known = false;
    TestService here([&](const Asked& asked) {
        return is_known
                   ? Played{}
                   : with(error(307, "TemporaryRedirect"), "Location", there.url() + asked.path);
    });
    test::Store store(settings_for(here.url()), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    is_known = true;
    EXPECT_TRUE(store.remove(new_key()));
    EXPECT_EQ(here.asked().size(), 2u);
    EXPECT_EQ(there.asked().size(), 1u);
}

TEST_F(S3StoreTest, ARedirectInACircleEnds) {
    std::string self;
    TestService service([&](const Asked&) {
        return error(301, "PermanentRedirect", "<Endpoint>" + self + "</Endpoint>");
    });
    self = service.host();
    test::Store store(settings_for(service.url()), clock_);
    EXPECT_EQ(store.remove(new_key()).error().code, Code::config_invalid);
    EXPECT_EQ(service.asked().size(), 2u);
}

TEST_F(S3StoreTest, WornOutCredentialsAreRenewed) {
    int given = 0;
    TestService keys([&](const Asked&) {
        return Played{
            .body = R"({"AccessKeyId":"K)" + std::to_string(++given) +
                    R"(","SecretAccessKey":"s","Token":"t"})"
        };
    });
    TestService service([](const Asked& asked) {
        return authorization(asked).find("Credential=K2/") != std::string::npos
                   ? Played{}
                   : error(400, "ExpiredToken");
    });
    auto settings = settings_for(service.url());
    settings.credentials = {};
    settings.credentials.environment = [&](const std::string& name) -> std::optional<std::string> {
        return name == "AWS_CONTAINER_CREDENTIALS_FULL_URI" ? std::optional(keys.url())
                                                            : std::nullopt;
    };
    test::Store store(std::move(settings), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of("abc")));
    EXPECT_EQ(service.asked().size(), 2u);
    EXPECT_EQ(service.asked()[1].headers.get("x-amz-security-token"), "t");
}

TEST_F(S3StoreTest, SendsOnlyWhatWasSet) {
    TestService service([](const Asked&) { return Played{}; });
    test::Store plain(settings_for(service.url()), clock_);
    EXPECT_TRUE(plain.put(new_key(), source_of("abc")));
    auto settings = settings_for(service.url());
    settings.bucket.classes.glacier = "GLACIER_IR";
    settings.bucket.encryption = "aws:kms";
    settings.bucket.kms_key = "key-1";
    settings.bucket.prefix = "out/";
    test::Store dressed(std::move(settings), clock_);
    Source source = source_of("abc");
    source.storage_class = StorageClass::glacier;
    EXPECT_TRUE(dressed.put("a", std::move(source)));

    const auto asked = service.asked();
    for (const auto& [name, value] : asked[0].headers.all()) {
        EXPECT_FALSE(
            name.starts_with("x-amz-") && name != "x-amz-date" && name != "x-amz-content-sha256"
        ) << name;
    }
    EXPECT_EQ(asked[0].headers.get("Content-MD5"), to_base64(md5("abc")));
    EXPECT_EQ(asked[0].headers.get("x-amz-content-sha256"), to_hex(sha256("abc")));
    EXPECT_EQ(asked[0].headers.get("Content-Encoding"), "");
    EXPECT_EQ(asked[1].path, "/box/out/a");
    EXPECT_EQ(asked[1].headers.get("x-amz-storage-class"), "GLACIER_IR");
    EXPECT_EQ(asked[1].headers.get("x-amz-server-side-encryption"), "aws:kms");
    EXPECT_EQ(asked[1].headers.get("x-amz-server-side-encryption-aws-kms-key-id"), "key-1");
    EXPECT_THAT(authorization(asked[1]), HasSubstr("x-amz-storage-class"));
}

// Uploads in parts, as a service keeps them.
class S3Parts : public S3StoreTest {
protected:
    static constexpr std::uint64_t kPart = 1'000;

    S3Parts() : service_([this](const Asked& asked) { return play(asked); }) {}

    S3Settings settings() {
        auto settings = settings_for(service_.url());
        settings.bucket.part_bytes = kPart;
        return settings;
    }
    Played play(const Asked& asked) {
        if (asked.method == "POST" && asked.has("uploads=")) {
            return {.body = "<R><UploadId>up&amp;1</UploadId></R>"};
        }
        if (asked.method == "GET") {
            return list(asked);
        }
        if (asked.method == "PUT") {
            if (is_away && parts.size() >= 2) {
                return error(503, "ServiceUnavailable");
            }
            if (failing_part == asked.query.substr(0, asked.query.find('&'))) {
                return error(403, "AccessDenied");
            }
            const std::string sum = md5(asked.body);
            parts[asked.query] = asked.body;
            return with({}, "ETag", "\"" + to_hex(sum.data(), sum.size()) + "\"");
        }
        if (asked.method == "POST") {
            return complete(asked);
        }
        if (asked.method == "HEAD") {
            return head ? *head : Played{.status = 404};
        }
        return {.status = 204};
    }
    // Two at a time.
    Played list(const Asked& asked) {
        if (!asked.has("uploadId=up%261")) {
            return error(404, "NoSuchUpload");
        }
        const bool is_first = !asked.has("part-number-marker=");
        std::string body = is_first ? "<R><IsTruncated>true</IsTruncated>"
                                      "<NextPartNumberMarker>2</NextPartNumberMarker>"
                                    : "<R><IsTruncated>false</IsTruncated>";
        for (const auto& [query, bytes] : parts) {
            const std::string number = query.substr(11, query.find('&') - 11);
            if ((number <= "2") == is_first) {
                const std::string sum = md5(bytes);
                body += "<Part><PartNumber>" + number + "</PartNumber><Size>" +
                        std::to_string(bytes.size()) + "</Size><ETag>&quot;" +
                        to_hex(sum.data(), sum.size()) + "&quot;</ETag></Part>";
            }
        }
        return {.body = body + "</R>"};
    }
    std::function<Played(const Asked&)> complete = [](const Asked&) { return Played{}; };
    bool is_away = false;
    std::map<std::string, std::string> parts;
    std::string failing_part;
    std::optional<Played> head;
    TestService service_;
};

TEST_F(S3Parts, AreAllOfOneLengthButTheLast) {
    const std::string bytes = varied_bytes(2 * kPart + 345);
    test::Store store(settings(), clock_);
    ASSERT_TRUE(store.put(new_key(), source_of(bytes)));
    ASSERT_EQ(parts.size(), 3u);
    std::string all;
    for (int number = 1; number <= 3; ++number) {
        all += parts["partNumber=" + std::to_string(number) + "&uploadId=up%261"];
    }
    EXPECT_EQ(all, bytes);
    EXPECT_EQ(service_.count("DELETE"), 0u);
    const auto last = service_.asked().back();
    EXPECT_THAT(last.body, HasSubstr("<PartNumber>3</PartNumber><ETag>&quot;"));
}

TEST_F(S3Parts, AnErrorAfterSuccessIsOne) {
    int tries = 0;
    complete = [&](const Asked&) { return ++tries == 1 ? error(200, "InternalError") : Played{}; };
    test::Store store(settings(), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of(varied_bytes(1'500))));
    EXPECT_EQ(tries, 2);
}

TEST_F(S3Parts, ALostAnswerToTheLastStepIsFoundOut) {
    const std::string bytes = varied_bytes(1'500);
    const std::string sum = md5(md5(bytes.substr(0, kPart)) + md5(bytes.substr(kPart)));
    int tries = 0;
    complete = [&](const Asked&) {
        head = with({.body = bytes}, "ETag", "\"" + to_hex(sum.data(), sum.size()) + "-2\"");
        return ++tries == 1 ? Played{.is_lost = true} : error(404, "NoSuchUpload");
    };
    test::Store store(settings(), clock_);
    EXPECT_TRUE(store.put(new_key(), source_of(bytes)));
    EXPECT_EQ(tries, 2);
}

TEST_F(S3Parts, WhatIsThereInsteadIsNotIt) {
    complete = [&](const Asked&) {
        head = with({.body = std::string(1'500, 'x')}, "ETag", "\"0000-2\"");
        return error(404, "NoSuchUpload");
    };
    test::Store store(settings(), clock_);
    const auto put = store.put(new_key(), source_of(varied_bytes(1'500)));
    EXPECT_EQ(put.error().code, Code::storage_unavailable);
}

TEST_F(S3Parts, WhatFailsIsTakenBack) {
    failing_part = "partNumber=2";
    test::Store store(settings(), clock_);
    const auto put = store.put(new_key(), source_of(varied_bytes(9 * kPart)));
    EXPECT_EQ(put.error().code, Code::config_invalid);
    EXPECT_EQ(service_.count("DELETE", "uploadId=up%261"), 1u);
    EXPECT_EQ(service_.count("POST", "uploadId="), 0u);
}

// A first try that an outage ends after two of three parts; the second is another process's.
TEST_F(S3Parts, AnUploadThatWasCutOffGoesOnWhereItWas) {
    const std::string bytes = varied_bytes(2 * kPart + 7);
    const std::string key = new_key();
    assets::test::Notebook notebook;
    Source source = source_of(bytes);
    source.note = notebook.note();
    is_away = true;
    EXPECT_EQ(
        test::Store(settings(), clock_).put(key, source).error().code, Code::storage_unavailable
    );
    EXPECT_EQ(notebook.last, "1000:up&1");
    EXPECT_EQ(service_.count("DELETE"), 0u);
    const std::size_t before = parts.size();
    ASSERT_LT(before, 3u);

    is_away = false;
    source.note = notebook.note();
    ASSERT_TRUE(test::Store(settings(), clock_).put(key, source));
    EXPECT_EQ(parts.size(), 3u);
    EXPECT_EQ(service_.count("POST", "uploads="), 1u) << "it was begun once";
    EXPECT_EQ(notebook.count, 1);
    const auto last = service_.asked().back();
    for (const char* number : {"1", "2", "3"}) {
        EXPECT_THAT(
            last.body, HasSubstr("<PartNumber>" + std::string(number) + "</PartNumber><ETag>&quot;")
        );
    }
}

TEST_F(S3Parts, OneThatIsGoneIsBegunAgainUnlessItWasCompleted) {
    const std::string bytes = varied_bytes(1'500);
    assets::test::Notebook notebook;
    notebook.last = "1000:forgotten";
    Source source = source_of(bytes);
    source.note = notebook.note();
    ASSERT_TRUE(test::Store(settings(), clock_).put(new_key(), source));
    EXPECT_EQ(notebook.last, "1000:up&1");
    EXPECT_EQ(parts.size(), 2u);

    parts.clear();
    head = with({.body = bytes}, "ETag", "\"0000-2\"");
    notebook.last = "1000:forgotten";
    source.note = notebook.note();
    ASSERT_TRUE(test::Store(settings(), clock_).put(new_key(), source));
    EXPECT_TRUE(parts.empty()) << "it is there already";
}

TEST_F(S3Parts, PartsOfAnotherLengthAreOfNoUse) {
    assets::test::Notebook notebook;
    notebook.last = "999:up&1";
    Source source = source_of(varied_bytes(1'500));
    source.note = notebook.note();
    ASSERT_TRUE(test::Store(settings(), clock_).put(new_key(), source));
    EXPECT_EQ(service_.count("DELETE", "uploadId=up%261"), 1u);
    EXPECT_EQ(notebook.last, "1000:up&1");
}

TEST_F(S3Parts, AFileThatBecameShorterIsNotSent) {
    assets::test::Folder folder;
    const auto file = folder.path() / "f";
    std::ofstream(file) << varied_bytes(1'200);
    Source source;
    source.bytes = file;
    source.size_bytes = 1'500;
    test::Store store(settings(), clock_);
    EXPECT_EQ(store.put(new_key(), std::move(source)).error().code, Code::storage_unavailable);
    EXPECT_EQ(service_.count("DELETE", "uploadId="), 1u);
}

TEST(S3PartBytes, FitTheSize) {
    constexpr std::uint64_t kMiB = 1024 * 1024;
    EXPECT_EQ(part_bytes_for(20 * kMiB), 8 * kMiB);
    EXPECT_EQ(part_bytes_for(80'000 * kMiB), 8 * kMiB);
    EXPECT_EQ(part_bytes_for(80'000 * kMiB + 1), 9 * kMiB);
    EXPECT_EQ(part_bytes_for(5 * kMiB * kMiB), 525 * kMiB);
}

TEST_F(S3StoreTest, WhatIsArchivedIsBroughtBack) {
    std::string restore;
    TestService service([&](const Asked& asked) {
        if (asked.method == "POST") {
            return restore.empty() ? Played{.status = 202} : error(409, "RestoreAlreadyInProgress");
        }
        return with(with({}, "x-amz-storage-class", "DEEP_ARCHIVE"), "x-amz-restore", restore);
    });
    auto settings = settings_for(service.url());
    settings.bucket.classes.glacier = "DEEP_ARCHIVE";
    test::Store store(std::move(settings), clock_);
    EXPECT_TRUE(std::holds_alternative<Restoring>(**store.find("a")));
    ASSERT_EQ(service.count("POST", "restore="), 1u);
    EXPECT_THAT(service.asked()[1].body, HasSubstr("<Days>7</Days>"));
    restore = "ongoing-request=\"true\"";
    EXPECT_TRUE(std::holds_alternative<Restoring>(**store.find("a")));
    EXPECT_EQ(service.count("POST"), 1u);
    restore = "ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2030 00:00:00 GMT\"";
    EXPECT_NE(store.link("a"), "");
}

TEST_F(S3StoreTest, AnArchivedOneCannotBeRead) {
    TestService service([](const Asked&) { return error(403, "InvalidObjectState"); });
    test::Store store(settings_for(service.url()), clock_);
    EXPECT_EQ(store.read("a", 0, 9).error().code, Code::output_unavailable);
}

TEST_F(S3StoreTest, ACopyMayFailLate) {
    int copies = 0;
    TestService service([&](const Asked& asked) {
        if (asked.method == "HEAD") {
            return Played{.body = "four"};
        }
        return ++copies == 1 ? error(200, "InternalError") : Played{.body = "<CopyObjectResult/>"};
    });
    auto settings = settings_for(service.url());
    settings.bucket.classes.archive = "STANDARD_IA";
    test::Store store(std::move(settings), clock_);
    EXPECT_TRUE(store.change_class("a b", StorageClass::archive));
    EXPECT_EQ(copies, 2);
    const auto last = service.asked().back();
    EXPECT_EQ(last.headers.get("x-amz-copy-source"), "/box/a%20b");
    EXPECT_EQ(last.headers.get("x-amz-metadata-directive"), "COPY");
    EXPECT_EQ(last.headers.get("x-amz-storage-class"), "STANDARD_IA");
    // There is none of that class.
    EXPECT_TRUE(store.change_class("a", StorageClass::glacier));
    EXPECT_EQ(copies, 2);
}

TEST_F(S3StoreTest, ALinkMaySayAnotherName) {
    auto settings = settings_for("http://10.0.0.1:9000");
    settings.requests.public_endpoint = "https://files.example.com";
    test::Store store(std::move(settings), clock_);
    EXPECT_THAT(store.link("a"), testing::StartsWith("https://files.example.com/box/a?X-Amz-"));
}

TEST_F(S3StoreTest, OrThereAreNone) {
    auto settings = settings_for("http://10.0.0.1:9000");
    settings.gives_links = false;
    test::Store store(std::move(settings), clock_);
    EXPECT_TRUE(std::holds_alternative<Streamed>(**store.find("a")));
}

TEST(S3Settings, AreReadOutOfTheConfiguration) {
    const auto settings = read_settings({
        {"bucket", "box"},
        {"endpoint", "https://s3.us-west-004.backblazeb2.com"},
        {"prefix", "/out"},
        {"access_key", "a"},
        {"secret_key", "b"},
        {"style", "virtual"},
    });
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->bucket.prefix, "out/");
    EXPECT_TRUE(settings->bucket.removes_versions);
    EXPECT_EQ(settings->requests.name.style, Style::virtual_host);
    EXPECT_EQ(settings->bucket.classes.glacier, "");
    const auto aws = read_settings({{"bucket", "box"}, {"region", "eu-west-1"}});
    EXPECT_EQ(aws->bucket.classes.glacier, "GLACIER_IR");
    EXPECT_FALSE(aws->bucket.removes_versions);
}

TEST(S3Settings, MistakesAreNamedAndSecretsAreNot) {
    const auto mistake = [](std::map<std::string, std::string> options) {
        const auto settings = read_settings(options);
        return settings ? std::string("none") : settings.error().message;
    };
    EXPECT_THAT(mistake({}), HasSubstr("bucket"));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"buckett", "x"}}), HasSubstr("buckett"));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"style", "odd"}}), HasSubstr("auto, path, virtual"));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"secret_key", "hush"}}), Not(HasSubstr("hush")));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"secret_key", "hush"}}), HasSubstr("access_key"));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"kms_key", "k"}}), HasSubstr("aws:kms"));
    EXPECT_THAT(mistake({{"bucket", "box"}, {"endpoint", "x"}}), HasSubstr("endpoint"));
}

}  // namespace
}  // namespace comfyd::assets::s3
