// Calls to a cloud's API: JSON over HTTPS with a key. It waits when the service says so,
// repeats what may be repeated, and survives answers that are not JSON. The key, and what a call
// names as secret, appear in no error.
//
// Belongs to one executor: call it only there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assets/patience.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "fleet/providers/cloud_pace.hpp"
#include "net/client.hpp"

namespace comfyd::fleet {

// An answer that is no success, for whoever knows what the service means by it.
struct CloudRefusal {
    int status = 0;
    json::value body{};   // null where it is not JSON
    std::string words{};  // what it says, or an excerpt of it: presentable
};

struct CloudApiOptions {
    std::string service;  // as messages name it
    std::string url;      // that paths are added to
    std::string key{};
    std::function<std::string()> key_now{};  // in place of the key, where it changes
    std::string key_header{};                // that the key goes in; empty: as a bearer's
    std::string ca_file{};                   // PEM, in addition to the system's
    Millis timeout{30'000};
    std::uint64_t answer_bytes_max = 16ULL * 1024 * 1024;
    assets::Patience patience{.tries_max = 4, .first_pause = Millis(500)};
    // Nobody waits longer than this for a rate limit: Code::rate_limited says how long it is.
    Millis wait_max{15'000};
    // What a refusal says in words; by default its "message", "detail", "title" or "error".
    std::function<std::string(const json::object& body)> words_of{};
};

// https, or plain http where nobody listens in: this computer. Code::config_invalid.
Result<> check_cloud_url(std::string_view url);

// By its status alone: unauthorized, balance_empty, forbidden, not_found, conflict, rate_limited,
// invalid_argument, upstream_error, protocol_error.
Code code_of_status(int status);

struct CloudCall {
    // Repeated: it asks, or says how something shall be, so that once more changes nothing. A
    // create is none, whatever became of it.
    enum class Kind { repeatable, once };

    std::string method = "GET";
    std::string path;  // with its query
    std::optional<json::object> body{};
    Kind kind = Kind::repeatable;
    std::vector<std::string> secrets{};  // in the body
    // What a refusal means; by default code_of_status().
    std::function<Code(const CloudRefusal&)> meaning{};
};

class CloudApi {
public:
    // `clock` outlives it.
    CloudApi(Executor executor, CloudApiOptions options, const Clock& clock);

    // The body of a success; null where there is none. Errors have details.status where there was
    // an answer, and details.retry_after (seconds) with Code::rate_limited.
    Task<Result<json::value>> call(CloudCall call);

    // Who we are to the service, and who it must be. Before the first call. Code::config_invalid.
    Result<> identify(net::ClientIdentity identity) {
        return client_.identify({std::move(identity)});
    }

    // Goes piece by piece to the sink, for at most `time`; a failure that it returns is returned.
    Task<Result<>> stream(std::string path, Millis time, net::Client::Sink sink);
    // A text that may never end, such as a log: what comes within `time`, at most `bytes_max`.
    Task<Result<std::string>> listen(std::string path, Millis time, std::size_t bytes_max);

    void close_idle() { client_.close_idle(); }

private:
    Task<Result<json::value>> call_once(const CloudCall& call);
    Task<Result<>> wait_for_turn();
    net::ClientRequest make_request(const CloudCall& call) const;
    Error to_error(const CloudCall& call, const net::ClientResponse& answer) const;
    std::string key() const { return options_.key_now ? options_.key_now() : options_.key; }
    std::string say(const CloudCall& call, std::string_view what) const;
    void hear(const net::ClientResponse& answer);

    Executor executor_;
    const CloudApiOptions options_;
    const Clock& clock_;
    net::Client client_;
    CloudPace pace_;
};

}  // namespace comfyd::fleet
