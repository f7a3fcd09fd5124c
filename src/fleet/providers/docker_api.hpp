// Docker's HTTP API over its unix socket, in the newest version that both sides know. Internal to
// the provider `docker`. Belongs to one executor.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::fleet {

struct DockerEngine {
    std::string version;  // of the API: "1.41"
    bool is_podman = false;
};

struct DockerCall {
    std::string method = "GET";
    std::string path;  // behind the version, with its query
    std::optional<json::object> body{};
    net::Headers headers{};
    Millis timeout{60'000};
};

// "1.41" and "1.45" -> "1.41", as numbers. Nullopt where one is no version.
std::optional<std::string> older_version(std::string_view a, std::string_view b);

class DockerApi {
public:
    DockerApi(Executor executor, std::string socket);

    // Asked once, and again after the engine was gone. Code::connection_failed says what to do.
    Task<Result<DockerEngine>> engine();

    // The body of a success, null where there is none; 304 (it is so already) is one. Errors:
    // not_found, conflict, invalid_argument, upstream_error with what the engine says, and those of
    // a connection. What may be secret in the call is in no message: only answers are.
    Task<Result<json::value>> call(DockerCall call);
    // A success goes piece by piece to the sink; a failure that it returns is returned.
    Task<Result<>> stream(DockerCall call, net::Client::Sink sink);

    void close_idle() { client_.close_idle(); }

private:
    Task<Result<net::ClientRequest>> make_request(DockerCall call);
    Error explain(Error error) const;

    Executor executor_;
    std::string socket_;
    net::Client client_;
    std::optional<DockerEngine> engine_;
};

}  // namespace comfyd::fleet
