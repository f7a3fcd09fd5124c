#include "assets/s3/credentials.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "assets/guarded.hpp"
#include "base/disk.hpp"
#include "base/on_executor.hpp"
#include "base/text.hpp"
#include "net/client.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::chrono::minutes kRenewBefore{5};
constexpr std::uint64_t kFileBytesMax = 1024 * 1024;
constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;
constexpr Millis kContainerTimeout{2'000};
constexpr Millis kInstanceTimeout{1'000};  // most machines are none: nobody answers there
constexpr std::string_view kContainerHost = "http://169.254.170.2";
constexpr std::string_view kInstanceHost = "http://169.254.169.254";

Error none_found() {
    return Error(
        Code::config_invalid,
        "there are no credentials for the store: set its access_key and secret_key, or "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws/credentials"
    );
}

}  // namespace

Environment process_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value != nullptr && *value != '\0' ? std::optional<std::string>(value)
                                                  : std::nullopt;
    };
}

class CredentialSource::Impl {
public:
    Impl(Executor executor, CredentialSettings settings, Clock& clock, Pool& pool)
        : executor_(executor),
          settings_(std::move(settings)),
          clock_(clock),
          pool_(pool),
          client_(executor, {.idle_per_origin_max = 0, .connect_timeout = std::chrono::seconds(1)}),
          renewed_(executor) {}

    Task<Result<Credentials>> get();
    void refuse(const Credentials& worn_out);
    Executor executor() const { return executor_; }

private:
    using Found = Result<std::optional<Credentials>>;

    Task<Result<Credentials>> search();
    Task<Found> from_file();
    Task<Found> from_container();
    Task<Found> from_instance();
    std::optional<Credentials> from_environment() const;
    Task<Result<std::string>> read(std::string path);
    Task<Result<std::string>> ask(net::ClientRequest request);
    std::string variable(const std::string& name) const {
        return settings_.environment(name).value_or("");
    }
    bool is_over(const Credentials& credentials, Millis before) const {
        return credentials.expires_at && *credentials.expires_at - before <= clock_.now();
    }

    Executor executor_;
    CredentialSettings settings_;
    Clock& clock_;
    Pool& pool_;
    net::Client client_;
    std::optional<Credentials> current_;
    bool is_renewing_ = false;
    Signal renewed_;
};

Task<Result<Credentials>> CredentialSource::Impl::get() {
    // One asks for all: services that give them out do not like a crowd.
    while (is_renewing_) {
        const bool woken = co_await renewed_.wait();
        if (!woken) {
            co_return fail(Code::cancelled, "the request for credentials was cancelled");
        }
    }
    if (current_ && !is_over(*current_, kRenewBefore)) {
        co_return *current_;
    }
    is_renewing_ = true;
    auto found = co_await search();
    is_renewing_ = false;
    renewed_.notify();
    if (found) {
        current_ = *found;
    } else if (current_ && !is_over(*current_, Millis(0))) {
        co_return *current_;
    }
    co_return found;
}

void CredentialSource::Impl::refuse(const Credentials& worn_out) {
    if (current_ && current_->access_key == worn_out.access_key &&
        current_->session_token == worn_out.session_token) {
        current_.reset();
    }
}

Task<Result<Credentials>> CredentialSource::Impl::search() {
    if (!settings_.given.access_key.empty()) {
        co_return settings_.given;
    }
    if (settings_.profile.empty()) {
        if (auto found = from_environment()) {
            co_return std::move(*found);
        }
    }
    auto in_file = co_await from_file();
    if (!in_file || *in_file) {
        co_return in_file ? Result<Credentials>(std::move(**in_file))
                          : fail(std::move(in_file.error()));
    }
    if (!settings_.profile.empty()) {
        co_return fail(
            Code::config_invalid,
            "the credentials file has no keys for the profile '" + settings_.profile + "'"
        );
    }
    auto of_container = co_await from_container();
    if (!of_container || *of_container) {
        co_return of_container ? Result<Credentials>(std::move(**of_container))
                               : fail(std::move(of_container.error()));
    }
    auto of_instance = co_await from_instance();
    if (!of_instance || *of_instance) {
        co_return of_instance ? Result<Credentials>(std::move(**of_instance))
                              : fail(std::move(of_instance.error()));
    }
    co_return fail(none_found());
}

std::optional<Credentials> CredentialSource::Impl::from_environment() const {
    Credentials found{
        variable("AWS_ACCESS_KEY_ID"),
        variable("AWS_SECRET_ACCESS_KEY"),
        variable("AWS_SESSION_TOKEN")
    };
    const bool is_whole = !found.access_key.empty() && !found.secret_key.empty();
    return is_whole ? std::optional(std::move(found)) : std::nullopt;
}

Task<Result<std::string>> CredentialSource::Impl::read(std::string path) {
    // Through links: that is how clusters mount such files.
    return pool_.run(guarded([path = std::move(path)]() -> Result<std::string> {
        std::error_code error;
        const auto file = std::filesystem::canonical(path, error);
        if (error) {
            return fail(Code::not_found, "there is no file '" + path + "'");
        }
        return read_file(file, kFileBytesMax);
    }));
}

Task<CredentialSource::Impl::Found> CredentialSource::Impl::from_file() {
    std::string path = variable("AWS_SHARED_CREDENTIALS_FILE");
    const std::string home = variable("HOME");
    if (path.empty() && home.empty()) {
        co_return std::nullopt;
    }
    path = path.empty() ? home + "/.aws/credentials" : path;
    auto text = co_await read(path);
    if (!text) {
        co_return text.error().code == Code::not_found ? Found(std::nullopt)
                                                       : fail(std::move(text.error()));
    }
    std::string profile = settings_.profile;
    if (profile.empty()) {
        profile = settings_.environment("AWS_PROFILE").value_or("default");
    }
    co_return read_profile(*text, profile);
}

Task<Result<std::string>> CredentialSource::Impl::ask(net::ClientRequest request) {
    request.response_bytes_max = kAnswerBytesMax;
    const std::string url = request.url;
    auto answer = co_await client_.send(std::move(request));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    if (answer->status != 200) {
        co_return fail(
            Code::storage_unavailable,
            "the credentials of this machine cannot be had: " + url + " answers " +
                std::to_string(answer->status)
        );
    }
    co_return std::move(answer->body);
}

Task<CredentialSource::Impl::Found> CredentialSource::Impl::from_container() {
    const std::string relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const std::string url = relative.empty() ? variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                             : std::string(kContainerHost) + relative;
    if (url.empty()) {
        co_return std::nullopt;
    }
    if (!is_container_address(url)) {
        co_return fail(
            Code::config_invalid,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI: credentials are asked for by https, or on this "
            "machine"
        );
    }
    std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const std::string token_file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (!token_file.empty()) {
        auto text = co_await read(token_file);
        if (!text) {
            co_return fail(std::move(text.error()));
        }
        token = trim(*text, " \t\r\n");
    }
    net::ClientRequest request{.url = url, .timeout = kContainerTimeout};
    if (!token.empty()) {
        request.headers.set("Authorization", token);
    }
    auto answer = co_await ask(std::move(request));
    if (!answer) {
        co_return fail(Code::storage_unavailable, std::move(answer.error().message));
    }
    co_return read_role_answer(*answer);
}

// The second version of the instance's service, which asks for a token first; the first version is
// not asked, because it gives the keys to whoever can make us send a GET.
Task<CredentialSource::Impl::Found> CredentialSource::Impl::from_instance() {
    if (lower(variable("AWS_EC2_METADATA_DISABLED")) == "true") {
        co_return std::nullopt;
    }
    const std::string host = settings_.environment("AWS_EC2_METADATA_SERVICE_ENDPOINT")
                                 .value_or(std::string(kInstanceHost));
    net::ClientRequest token_request{
        .method = "PUT", .url = host + "/latest/api/token", .timeout = kInstanceTimeout
    };
    token_request.headers.set("X-aws-ec2-metadata-token-ttl-seconds", "21600");
    auto token = co_await ask(std::move(token_request));
    if (!token) {
        // Nobody there: it is no instance.
        const bool is_cancelled = token.error().code == Code::cancelled;
        co_return is_cancelled ? Found(fail(std::move(token.error()))) : Found(std::nullopt);
    }
    net::Headers headers;
    headers.set("X-aws-ec2-metadata-token", *token);
    const std::string roles = host + "/latest/meta-data/iam/security-credentials/";
    net::ClientRequest role_request{.url = roles, .headers = headers, .timeout = kInstanceTimeout};
    auto role = co_await ask(std::move(role_request));
    if (!role) {
        co_return fail(none_found());  // an instance without a role
    }
    const std::string name(trim(role->substr(0, role->find('\n')), " \t\r"));
    net::ClientRequest keys_request{
        .url = roles + name, .headers = headers, .timeout = kInstanceTimeout
    };
    auto answer = co_await ask(std::move(keys_request));
    if (!answer) {
        co_return fail(Code::storage_unavailable, std::move(answer.error().message));
    }
    co_return read_role_answer(*answer);
}

CredentialSource::CredentialSource(
    Executor executor, CredentialSettings settings, Clock& clock, Pool& pool
)
    : impl_(std::make_shared<Impl>(executor, std::move(settings), clock, pool)) {}

CredentialSource::~CredentialSource() = default;

Task<Result<Credentials>> CredentialSource::get() {
    COMFYD_ON(impl_->executor());
    return impl_->get();
}

void CredentialSource::refuse(const Credentials& worn_out) {
    COMFYD_ON(impl_->executor());
    impl_->refuse(worn_out);
}

}  // namespace comfyd::assets::s3
