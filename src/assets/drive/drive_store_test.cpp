// There is no Drive to test with: a service that keeps files as the documentation says, and fails
// as it says, too.
#include "assets/drive/drive_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "assets/drive/jwt.hpp"
#include "assets/test_service.hpp"
#include "assets/test_support.hpp"
#include "base/crypto.hpp"
#include "base/json.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::assets::drive {
namespace {

using test::Asked;
using test::new_key;
using test::Played;
using test::source_of;
using test::TestService;
using test::varied_bytes;
using test::wait_for;
using testing::HasSubstr;
using testing::Not;

std::string from_base64url(std::string text) {
    std::ranges::replace(text, '-', '+');
    std::ranges::replace(text, '_', '/');
    return from_base64(text).value_or("");
}

// A key pair of the test's own.
class Key {
public:
    Key() : key_(EVP_RSA_gen(2048), EVP_PKEY_free) {}

    std::string pem() const {
        BIO* bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PKCS8PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
        char* text = nullptr;
        const long size = BIO_get_mem_data(bio, &text);
        std::string pem(text, static_cast<std::size_t>(size));
        BIO_free(bio);
        return pem;
    }
    bool has_signed(const std::string& text, const std::string& signature) const {
        EVP_MD_CTX* context = EVP_MD_CTX_new();
        EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key_.get());
        const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
        const auto* proof = reinterpret_cast<const unsigned char*>(signature.data());
        const int good = EVP_DigestVerify(context, proof, signature.size(), bytes, text.size());
        EVP_MD_CTX_free(context);
        return good == 1;
    }

private:
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
};

Played refusal(int status, const std::string& reason) {
    return {
        .status = status,
        .body = R"({"error":{"code":)" + std::to_string(status) +
                R"(,"message":"no","errors":[{"reason":")" + reason + R"("}]}})"
    };
}

// Files and upload sessions. `before` may answer instead, or change something first.
class DriveDouble {
public:
    struct File {
        json::object about;
        std::string bytes;
        bool is_shared = false;
        bool is_trashed = false;
    };

    DriveDouble() : service_([this](const Asked& asked) { return play(asked); }) {}

    TestService& service() { return service_; }
    std::function<std::optional<Played>(const Asked&)> before;
    std::map<std::string, File> files;
    std::map<std::string, File> sessions;
    // Of a chunk so much is stored; the rest is to be sent again.
    std::uint64_t stored_per_chunk_max = UINT64_MAX;
    int tokens = 0;
    std::string last_assertion;

private:
    Played play(const Asked& asked) {
        if (before) {
            if (auto played = before(asked)) {
                return *played;
            }
        }
        if (asked.path == "/token") {
            last_assertion = asked.body;
            return {
                .body = R"({"expires_in":3599,"access_token":"T)" + std::to_string(++tokens) + "\"}"
            };
        }
        if (asked.path.starts_with("/session/")) {
            return receive(asked);
        }
        if (asked.headers.get("Authorization") != "Bearer T" + std::to_string(tokens)) {
            return refusal(401, "authError");
        }
        if (asked.path == "/upload/drive/v3/files") {
            const std::string id = std::to_string(++count_);
            sessions[id].about = *json::parse_object(asked.body);
            Played played;
            played.headers.set("Location", service_.url() + "/session/" + id + "?upload_id=x");
            return played;
        }
        if (asked.path == "/drive/v3/files") {
            return list(asked);
        }
        return handle_file(asked);
    }
    Played receive(const Asked& asked) {
        const std::string id = asked.path.substr(std::string("/session/").size());
        const auto found = sessions.find(id);
        if (found == sessions.end()) {
            return {.status = 404};
        }
        const std::string range(asked.headers.get("Content-Range"));
        File& file = found->second;
        std::uint64_t total = 0;
        if (!range.empty()) {
            total = std::stoull(range.substr(range.find('/') + 1));
        }
        if (range.find('*') == std::string::npos && !range.empty()) {
            const std::uint64_t first = std::stoull(range.substr(6));
            const bool is_last = first + asked.body.size() == total;
            if (first != file.bytes.size() || (!is_last && asked.body.size() % kChunkUnit != 0)) {
                return refusal(400, "badRequest");
            }
            file.bytes += asked.body.substr(0, stored_per_chunk_max);
        }
        if (file.bytes.size() < total) {
            Played so_far{.status = 308};
            if (!file.bytes.empty()) {
                so_far.headers.set("Range", "bytes=0-" + std::to_string(file.bytes.size() - 1));
            }
            return so_far;
        }
        const std::string name = "file" + id;
        files[name] = file;
        return {
            .body =
                R"({"id":")" + name + R"(","size":")" + std::to_string(file.bytes.size()) + "\"}"
        };
    }
    Played list(const Asked&) {
        json::array all;
        for (const auto& [id, file] : files) {
            if (!file.is_trashed) {
                all.push_back(json::object{
                    {"id", id},
                    {"name", file.about.at("name")},
                    {"size", std::to_string(file.bytes.size())},
                    {"modifiedTime", "2026-11-15T05:10:56.123Z"}
                });
            }
        }
        return {.body = json::serialize(json::object{{"files", all}})};
    }
    Played handle_file(const Asked& asked) {
        std::string id = asked.path.substr(std::string("/drive/v3/files/").size());
        const bool is_about_sharing = id.ends_with("/permissions");
        id = id.substr(0, id.find('/'));
        const auto found = files.find(id);
        if (found == files.end()) {
            return refusal(404, "notFound");
        }
        File& file = found->second;
        if (is_about_sharing) {
            file.is_shared = file.is_shared || asked.method == "POST";
            return {
                .body = file.is_shared ? R"({"permissions":[{"type":"anyone"}]})"
                                       : R"({"permissions":[{"type":"user"}]})"
            };
        }
        if (asked.method == "DELETE") {
            files.erase(found);
            return {.status = 204};
        }
        if (asked.method == "PATCH") {
            file.is_trashed = true;
            return {.body = "{}"};
        }
        if (!asked.has("alt=media")) {
            return {
                .body = R"({"webContentLink":"https://drive.example/)" + id + R"(","size":")" +
                        std::to_string(file.bytes.size()) + "\"}"
            };
        }
        const auto range = net::parse_range(asked.headers.get("Range"), file.bytes.size());
        return range
                   ? Played{.status = 206, .body = file.bytes.substr((*range)->first, (*range)->length)}
                   : Played{.status = 416};
    }

    int count_ = 0;
    TestService service_;
};

class DriveStoreTest : public testing::Test {
protected:
    void open(std::map<std::string, std::string> more = {}) {
        std::map<std::string, std::string> options{
            {"folder", "the-folder"},
            {"endpoint", double_.service().url()},
            {"token_endpoint", double_.service().url() + "/token"},
        };
        options.merge(more);
        if (!options.contains("credentials_file")) {
            options.merge(std::map<std::string, std::string>{
                {"client_id", "c"}, {"client_secret", "s"}, {"refresh_token", "r"}
            });
        }
        auto settings = read_settings(options);
        ASSERT_TRUE(settings) << settings.error().message;
        settings->drive.chunk_bytes = 2 * kChunkUnit;
        settings->drive.patience = {
            .tries_max = 4, .first_pause = Millis(1), .longest_pause = Millis(4)
        };
        store_ = std::make_unique<DriveStore>(std::move(*settings), clock_, pool_);
        ASSERT_TRUE(store_->open());
    }
    Result<std::string> put(std::string bytes) {
        return wait_for(store_->put(new_key(), source_of(std::move(bytes))));
    }
    std::size_t chunks() {
        std::size_t count = 0;
        for (const Asked& asked : double_.service().asked()) {
            count += asked.method == "PUT" && !asked.body.empty() ? 1 : 0;
        }
        return count;
    }

    ManualClock clock_;
    Pool pool_{2};
    DriveDouble double_;
    std::unique_ptr<DriveStore> store_;
};

TEST_F(DriveStoreTest, TakesAndGivesContentsOfAllSizes) {
    open();
    for (const std::size_t size : {0u, 1u, 262'144u, 524'288u, 524'289u, 2'000'000u}) {
        const std::string bytes = varied_bytes(size);
        const auto id = put(bytes);
        ASSERT_TRUE(id) << size << id.error().message;
        EXPECT_EQ(double_.files.at(*id).bytes, bytes);
        EXPECT_EQ(wait_for(store_->read(*id, 0, size + 5)), bytes);
        if (size > 300'000) {
            EXPECT_EQ(wait_for(store_->read(*id, 262'140, 9)), bytes.substr(262'140, 9));
        }
    }
    const json::object& about = double_.files.begin()->second.about;
    EXPECT_EQ(about.at("parents").as_array().at(0).as_string(), "the-folder");
    EXPECT_EQ(double_.tokens, 1);
}

TEST_F(DriveStoreTest, GoesOnWhereTheServiceIs) {
    double_.stored_per_chunk_max = kChunkUnit;  // half of each
    open();
    const std::string bytes = varied_bytes(5 * kChunkUnit + 17);
    const auto id = put(bytes);
    ASSERT_TRUE(id);
    EXPECT_EQ(double_.files.at(*id).bytes, bytes);
}

TEST_F(DriveStoreTest, ALostAnswerIsAskedFor) {
    open();
    const std::string bytes = varied_bytes(5 * kChunkUnit);
    int lost = 0;
    double_.before = [&](const Asked& asked) -> std::optional<Played> {
        // Of the second chunk, which has arrived; and the last one's.
        const std::string range(asked.headers.get("Content-Range"));
        if (range.starts_with("bytes 524288-") || range.starts_with("bytes 1048576-")) {
            double_.sessions["1"].bytes += asked.body;
            ++lost;
            if (range.starts_with("bytes 1048576-")) {
                double_.files["file1"] = double_.sessions["1"];
            }
            return Played{.is_lost = true};
        }
        return std::nullopt;
    };
    const auto id = put(bytes);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(double_.files.at(*id).bytes, bytes);
    EXPECT_EQ(lost, 2);
    EXPECT_EQ(chunks(), 3u);  // none was sent twice
    EXPECT_EQ(double_.files.size(), 1u);
}

TEST_F(DriveStoreTest, GoesOnAfterACrash) {
    open();
    const std::string bytes = varied_bytes(5 * kChunkUnit + 1);
    Source source = source_of(bytes);
    test::Notebook notebook;
    source.note = notebook.note();
    bool is_away = true;
    double_.before = [&](const Asked& asked) -> std::optional<Played> {
        const bool is_late = asked.headers.get("Content-Range").starts_with("bytes 1048576-");
        return is_late && is_away ? std::optional(Played{.status = 503}) : std::nullopt;
    };
    const std::string key = new_key();
    ASSERT_EQ(wait_for(store_->put(key, source)).error().code, Code::storage_unavailable);
    EXPECT_THAT(notebook.last, HasSubstr("/session/1"));

    open();
    is_away = false;
    source.note = notebook.note();
    const auto id = wait_for(store_->put(key, source));
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(double_.files.at(*id).bytes, bytes);
    EXPECT_EQ(double_.sessions.size(), 1u) << "the same";
    // Once more, as if we had ended before its end was written down.
    EXPECT_EQ(wait_for(store_->put(key, source)), *id);
    EXPECT_EQ(double_.files.size(), 1u);

    notebook.last = double_.service().url() + "/session/forgotten";
    source.note = notebook.note();
    EXPECT_TRUE(wait_for(store_->put(new_key(), source)));
    notebook.last = "ftp://elsewhere/";
    source.note = notebook.note();
    EXPECT_TRUE(wait_for(store_->put(new_key(), source)));
    EXPECT_EQ(double_.files.size(), 3u);
}

TEST_F(DriveStoreTest, ASessionThatIsGoneIsBegunAgain) {
    open();
    bool is_first = true;
    double_.before = [&](const Asked& asked) -> std::optional<Played> {
        if (asked.headers.get("Content-Range").starts_with("bytes 524288-") &&
            std::exchange(is_first, false)) {
            return Played{.status = 410};
        }
        return std::nullopt;
    };
    const std::string bytes = varied_bytes(4 * kChunkUnit);
    const auto id = put(bytes);
    ASSERT_TRUE(id);
    EXPECT_EQ(double_.files.at(*id).bytes, bytes);
    EXPECT_EQ(double_.sessions.size(), 2u);
}

TEST_F(DriveStoreTest, AServiceThatForgetsAlwaysIsGivenUp) {
    open();
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.path.starts_with("/session/") ? std::optional(Played{.status = 404})
                                                   : std::nullopt;
    };
    EXPECT_EQ(put("abc").error().code, Code::storage_unavailable);
}

TEST_F(DriveStoreTest, OverloadPasses) {
    open();
    int refused = 0;
    double_.before = [&](const Asked& asked) -> std::optional<Played> {
        if (asked.path != "/token" && ++refused <= 3) {
            return refused == 1   ? refusal(403, "userRateLimitExceeded")
                   : refused == 2 ? Played{.status = 503}
                                  : Played{.status = 429};
        }
        return std::nullopt;
    };
    EXPECT_TRUE(put("abc"));
}

TEST_F(DriveStoreTest, AServiceAccountWithoutStorageIsToldWhatToDo) {
    open();
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.path.starts_with("/upload/")
                   ? std::optional(refusal(403, "storageQuotaExceeded"))
                   : std::nullopt;
    };
    const auto failed = put("abc");
    EXPECT_EQ(failed.error().code, Code::storage_full);
    EXPECT_THAT(failed.error().message, HasSubstr("shared drive"));
    EXPECT_EQ(double_.service().count("POST", "uploadType"), 1u);
}

TEST_F(DriveStoreTest, AFolderThatIsNotThere) {
    open();
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.path.starts_with("/upload/") ? std::optional(refusal(404, "notFound"))
                                                  : std::nullopt;
    };
    EXPECT_EQ(put("abc").error().code, Code::config_invalid);
}

TEST_F(DriveStoreTest, AnOldTokenIsRenewedOnce) {
    open();
    ASSERT_TRUE(put("abc"));
    ++double_.tokens;  // theirs is another one now
    ASSERT_TRUE(put("def"));
    EXPECT_EQ(double_.tokens, 3);
    clock_.advance(std::chrono::minutes(56));
    ASSERT_TRUE(put("ghi"));
    EXPECT_EQ(double_.tokens, 4);
}

TEST_F(DriveStoreTest, RemovesOrPutsIntoTheTrash) {
    open();
    const auto one = put("abc");
    const auto other = put("def");
    EXPECT_TRUE(wait_for(store_->remove(*one)));
    EXPECT_TRUE(wait_for(store_->remove(*one)));
    EXPECT_EQ(wait_for(store_->read(*one, 0, 9)).error().code, Code::not_found);
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.method == "DELETE" ? std::optional(refusal(403, "insufficientFilePermissions"))
                                        : std::nullopt;
    };
    EXPECT_TRUE(wait_for(store_->remove(*other)));
    EXPECT_TRUE(double_.files.at(*other).is_trashed);
    EXPECT_TRUE(wait_for(store_->list(""))->blobs.empty());
}

TEST_F(DriveStoreTest, ListsItsOwn) {
    open({{"drive_id", "the-drive"}});
    const std::string key = new_key();
    const auto id = wait_for(store_->put(key, source_of("abc")));
    double_.files["other"].about = {{"name", "holiday.jpg"}};
    const auto page = wait_for(store_->list(""));
    ASSERT_TRUE(page);
    ASSERT_EQ(page->blobs.size(), 1u);
    EXPECT_EQ(page->blobs[0].key, *id);
    EXPECT_EQ(page->blobs[0].name, key);
    EXPECT_EQ(page->blobs[0].size_bytes, 3u);
    EXPECT_EQ(double_.service().count("GET", "driveId=the-drive"), 1u);
}

TEST_F(DriveStoreTest, SharesWhereThatIsWanted) {
    open();
    EXPECT_TRUE(std::holds_alternative<Streamed>(**wait_for(store_->find("x", {}))));
    open({{"share", "anyone"}});
    const auto id = put("abc");
    const auto place = wait_for(store_->find(*id, {}));
    EXPECT_EQ(std::get<Redirect>(**place).url, "https://drive.example/" + *id);
    EXPECT_FALSE(*wait_for(store_->find("absent", {})));
    // The domain's rules may forbid it.
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.method == "POST" && asked.path.ends_with("/permissions")
                   ? std::optional(refusal(403, "publishOutNotPermitted"))
                   : std::nullopt;
    };
    const auto kept = put("def");
    ASSERT_TRUE(kept);
    EXPECT_TRUE(std::holds_alternative<Streamed>(**wait_for(store_->find(*kept, {}))));
}

TEST_F(DriveStoreTest, AServiceAccountSignsForWhomItSpeaks) {
    const Key key;
    support::TempDir folder;
    const std::string file = folder.write(
        "account.json",
        json::serialize(json::object{
            {"type", "service_account"},
            {"client_email", "robot@project.example"},
            {"private_key_id", "key-7"},
            {"private_key", key.pem()},
            {"token_uri", double_.service().url() + "/token"}
        })
    );
    open({{"credentials_file", file}, {"subject", "ann@example.com"}});
    ASSERT_TRUE(put("abc"));
    const auto form = net::parse_query(double_.last_assertion);
    EXPECT_EQ(form.at(0).second, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    const std::string jwt = form.at(1).second;
    const auto last_dot = jwt.rfind('.');
    const auto first_dot = jwt.find('.');
    EXPECT_TRUE(key.has_signed(jwt.substr(0, last_dot), from_base64url(jwt.substr(last_dot + 1))));
    const auto header = json::parse_object(from_base64url(jwt.substr(0, first_dot)));
    EXPECT_EQ(header->at("kid").as_string(), "key-7");
    const auto claims =
        json::parse_object(from_base64url(jwt.substr(first_dot + 1, last_dot - first_dot - 1)));
    EXPECT_EQ(claims->at("iss").as_string(), "robot@project.example");
    EXPECT_EQ(claims->at("sub").as_string(), "ann@example.com");
    EXPECT_EQ(claims->at("aud").as_string(), double_.service().url() + "/token");
    EXPECT_EQ(claims->at("exp").as_int64() - claims->at("iat").as_int64(), 3'600);
}

TEST_F(DriveStoreTest, NoTokenIsExplained) {
    open();
    double_.before = [](const Asked& asked) -> std::optional<Played> {
        return asked.path == "/token"
                   ? std::optional(Played{.status = 400, .body = R"({"error":"invalid_grant"})"})
                   : std::nullopt;
    };
    const auto failed = put("abc");
    EXPECT_EQ(failed.error().code, Code::config_invalid);
    EXPECT_THAT(failed.error().message, HasSubstr("revoked"));
}

TEST(DriveSettings, MistakesAreNamedAndSecretsAreNot) {
    const auto mistake = [](std::map<std::string, std::string> options) {
        const auto settings = read_settings(options);
        return settings ? std::string("none") : settings.error().message;
    };
    EXPECT_THAT(mistake({}), HasSubstr("folder"));
    EXPECT_THAT(mistake({{"folder", "f"}}), HasSubstr("credentials_file"));
    EXPECT_THAT(mistake({{"folder", "f"}, {"share", "all"}}), HasSubstr("none, anyone"));
    EXPECT_THAT(
        mistake({{"folder", "f"}, {"refresh_token", "hush"}, {"x", "hush"}}), Not(HasSubstr("hush"))
    );
    EXPECT_EQ(mistake({{"drive_id", "d"}, {"credentials_file", "c"}}), "none");
}

TEST(DriveIdentity, FilesThatAreNone) {
    for (const std::string_view text :
         {"",
          "{}",
          "[]",
          R"({"type":"service_account"})",
          R"({"type":"authorized_user","client_id":"c"})"}) {
        EXPECT_EQ(read_identity(text).error().code, Code::config_invalid) << text;
    }
    const auto person = read_identity(
        R"({"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"})"
    );
    EXPECT_EQ(person->person->refresh_token, "r");
    EXPECT_EQ(make_jwt({}, {}, "no key").error().code, Code::config_invalid);
}

}  // namespace
}  // namespace comfyd::assets::drive
