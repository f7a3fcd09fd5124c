// Questions of a command to a running server, from a coroutine. One executor.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::app {

class ServerClient {
public:
    // Empty: COMFYD_URL or this machine, COMFYD_KEY.
    ServerClient(Executor executor, std::string url, std::string key);

    // The JSON of the answer. What the server refuses is Code::invalid_argument in its own words,
    // or Code::not_found; a server that is in trouble or not there is Code::storage_unavailable or
    // Code::connection_failed.
    Task<Result<json::object>> call(std::string method, std::string target, std::string body = {});
    Task<Result<json::object>> post_form(
        std::string target, std::vector<net::FormPart> parts, std::string idempotency_key
    );
    // Into a file, which is there whole or not at all.
    Task<Result<>> save(std::string target, std::filesystem::path file);

private:
    net::ClientRequest request(std::string method, const std::string& target) const;
    Task<Result<json::object>> send(net::ClientRequest request);

    std::string url_;
    std::string key_;
    net::Client client_;
};

// Whether waiting might help.
bool is_away(const Error& error);
// Tells the user, and what the program ends with.
int complain(const Error& error);

}  // namespace comfyd::app
