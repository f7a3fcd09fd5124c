#include "assets/s3/credentials.hpp"

#include <gtest/gtest.h>

#include <map>

#include "assets/test_service.hpp"
#include "net/test_support.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::assets::s3 {
namespace {

using test::Asked;
using test::Played;
using test::TestService;

class S3Credentials : public testing::Test {
protected:
    Result<Credentials> get(CredentialSource& source) { return loop_.run(source.get()); }
    CredentialSource make(CredentialSettings settings = {}) {
        settings.environment = [this](const std::string& name) -> std::optional<std::string> {
            const auto found = variables_.find(name);
            return found == variables_.end() ? std::nullopt : std::optional(found->second);
        };
        return {loop_.executor(), std::move(settings), clock_, pool_};
    }
    std::string keys(const std::string& name, std::chrono::seconds life) const {
        return R"({"AccessKeyId":")" + name +
               R"(","SecretAccessKey":"s","Token":"t","Expiration":")" +
               to_rfc3339(clock_.now() + life) + R"("})";
    }

    net::test::Loop loop_;
    Pool pool_{1};
    ManualClock clock_;
    support::TempDir folder_;
    std::map<std::string, std::string> variables_{{"AWS_EC2_METADATA_DISABLED", "true"}};
};

TEST_F(S3Credentials, TheConfigurationComesFirstThenTheEnvironmentThenTheFile) {
    auto nothing = make();
    EXPECT_EQ(get(nothing).error().code, Code::config_invalid);

    variables_["AWS_SHARED_CREDENTIALS_FILE"] = folder_.write(
        "credentials",
        "# mine\n[default]\naws_access_key_id = F1\naws_secret_access_key=s=1\n\n"
        "[other]\r\nAWS_ACCESS_KEY_ID=F2\r\naws_secret_access_key=s2\r\naws_session_token=t2\r\n"
    );
    auto file = make();
    EXPECT_EQ(get(file)->access_key, "F1");
    EXPECT_EQ(get(file)->secret_key, "s=1");
    variables_["AWS_PROFILE"] = "other";
    auto other = make();
    EXPECT_EQ(get(other)->session_token, "t2");

    variables_["AWS_ACCESS_KEY_ID"] = "E";
    variables_["AWS_SECRET_ACCESS_KEY"] = "s";
    auto environment = make();
    EXPECT_EQ(get(environment)->access_key, "E");
    auto given = make({.given = {"C", "s"}});
    EXPECT_EQ(get(given)->access_key, "C");
    auto profile = make({.profile = "default"});
    EXPECT_EQ(get(profile)->access_key, "F1");
    auto unknown = make({.profile = "nobody"});
    EXPECT_EQ(get(unknown).error().code, Code::config_invalid);
}

TEST_F(S3Credentials, OfAContainerWithItsToken) {
    TestService service([this](const Asked& asked) {
        return asked.headers.get("Authorization") == "Bearer x"
                   ? Played{.body = keys("K", std::chrono::hours(1))}
                   : Played{.status = 401};
    });
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url() + "/role";
    auto refused = make();
    EXPECT_EQ(get(refused).error().code, Code::storage_unavailable);
    // As clusters mount it: a link.
    const std::string token = folder_.write("real", "Bearer x\n");
    std::filesystem::create_symlink(token, folder_.path() / "token");
    variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = folder_ / "token";
    auto source = make();
    EXPECT_EQ(get(source)->access_key, "K");
    EXPECT_EQ(get(source)->session_token, "t");
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://198.51.100.1/role";
    auto elsewhere = make();
    EXPECT_EQ(get(elsewhere).error().code, Code::config_invalid);
}

TEST_F(S3Credentials, OfAnInstanceBySecondVersionOfItsService) {
    TestService service([this](const Asked& asked) {
        if (asked.method == "PUT") {
            return Played{.body = "the token"};
        }
        if (asked.headers.get("X-aws-ec2-metadata-token") != "the token") {
            return Played{.status = 401};
        }
        return asked.path.ends_with("/my-role") ? Played{.body = keys("I", std::chrono::hours(1))}
                                                : Played{.body = "my-role\n"};
    });
    variables_.erase("AWS_EC2_METADATA_DISABLED");
    variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = service.url();
    auto source = make();
    EXPECT_EQ(get(source)->access_key, "I");
    EXPECT_EQ(service.count("PUT"), 1u);
}

TEST_F(S3Credentials, ThoseThatExpireAreRenewedBefore) {
    int given = 0;
    bool is_away = false;
    TestService service([&](const Asked&) {
        return is_away ? Played{.status = 500}
                       : Played{.body = keys("K" + std::to_string(++given), std::chrono::hours(1))};
    });
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url();
    auto source = make();
    EXPECT_EQ(get(source)->access_key, "K1");
    clock_.advance(std::chrono::minutes(54));
    EXPECT_EQ(get(source)->access_key, "K1");
    clock_.advance(std::chrono::minutes(2));
    EXPECT_EQ(get(source)->access_key, "K2");
    // Those of before do as long as they live.
    is_away = true;
    clock_.advance(std::chrono::minutes(57));
    EXPECT_EQ(get(source)->access_key, "K2");
    clock_.advance(std::chrono::minutes(4));
    EXPECT_EQ(get(source).error().code, Code::storage_unavailable);
    is_away = false;
    EXPECT_EQ(get(source)->access_key, "K3");
    // A service may call them worn out earlier.
    loop_.run([](CredentialSource& of) -> Task<int> {
        of.refuse({"K3", "s", "t"});
        co_return 0;
    }(source));
    EXPECT_EQ(get(source)->access_key, "K4");
}

TEST_F(S3Credentials, OneAsksForAll) {
    int given = 0;
    TestService service([&](const Asked&) {
        return Played{.body = keys("K" + std::to_string(++given), std::chrono::hours(1))};
    });
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url();
    auto source = make();
    std::vector<std::future<Result<Credentials>>> all;
    for (int i = 0; i < 7; ++i) {
        all.push_back(loop_.start(source.get()));
    }
    for (auto& one : all) {
        EXPECT_EQ(net::test::get(one)->access_key, "K1");
    }
}

TEST(S3CredentialTexts, AnswersThatAreNone) {
    for (const std::string_view text : {"", "[]", "{}", R"({"AccessKeyId":"a"})", "<html>"}) {
        EXPECT_FALSE(read_role_answer(text)) << text;
    }
    EXPECT_FALSE(read_profile("", "default"));
    EXPECT_FALSE(read_profile("[default]\naws_access_key_id=a", "default"));
    EXPECT_FALSE(read_profile("[default\naws_access_key_id=a\naws_secret_access_key=b", "default"));
}

TEST(S3CredentialTexts, WhereContainersAreAsked) {
    EXPECT_TRUE(is_container_address("http://169.254.170.2/v2/x"));
    EXPECT_TRUE(is_container_address("http://[fd00:ec2::23]/v1"));
    EXPECT_TRUE(is_container_address("https://example.com/x"));
    EXPECT_FALSE(is_container_address("http://example.com/x"));
    EXPECT_FALSE(is_container_address("http://10.0.0.1/"));
    EXPECT_FALSE(is_container_address("nonsense"));
}

}  // namespace
}  // namespace comfyd::assets::s3
