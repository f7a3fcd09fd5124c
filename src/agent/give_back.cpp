#include "agent/give_back.hpp"

#include <array>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/wait_for.hpp"
#include "net/client.hpp"

namespace comfyd::agent {
namespace {

constexpr int kTries = 5;
constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;

struct Service {
    const char* name;
    const char* id;     // variables
    const char* key;    // which may end this machine and no other
    const char* path;   // of it
    const char* after;  // likewise
};
constexpr std::array kServices{
    Service{"RunPod", "RUNPOD_POD_ID", "RUNPOD_API_KEY", "/pods/", ""},
    Service{"Vast", "CONTAINER_ID", "CONTAINER_API_KEY", "/v0/instances/", "/"},
};

// A key goes there.
bool is_safe(const std::string& url) {
    const auto parsed = net::Url::parse(url);
    return parsed && (parsed->scheme == "https" || parsed->host == "127.0.0.1");
}

Task<Result<>> ask(net::Client& http, const Rented& rented) {
    net::ClientRequest request;
    request.method = "DELETE";
    request.url = rented.url;
    request.headers.set("Authorization", "Bearer " + rented.key);
    request.response_bytes_max = kAnswerBytesMax;
    auto answer = co_await http.send(std::move(request));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const bool is_given_back = answer->status / 100 == 2 || answer->status == 404;
    co_return is_given_back
        ? Result<>()
        : fail(Code::upstream_error, rented.service + " answers " + std::to_string(answer->status));
}

Task<Result<>> ask_until_done(net::Client& http, const Rented& rented, Millis pause) {
    for (int tries = 1;; ++tries) {
        auto asked = co_await ask(http, rented);
        if (asked || tries == kTries) {
            http.close_idle();
            co_return asked;
        }
        const bool slept = co_await sleep_for(pause);
        if (!slept) {
            co_return asked;
        }
        pause *= 2;
    }
}

}  // namespace

std::optional<Rented> find_rented(const std::function<std::string(const char* name)>& variable) {
    std::string url = variable("COMFYD_API_URL");
    if (!is_safe(url)) {
        return std::nullopt;
    }
    while (url.ends_with('/')) {
        url.pop_back();
    }
    for (const Service& service : kServices) {
        const std::string id = variable(service.id);
        const std::string key = variable(service.key);
        if (!id.empty() && !key.empty()) {
            return Rented{
                service.name, url + service.path + net::percent_encode(id) + service.after, key
            };
        }
    }
    return std::nullopt;
}

Result<> give_back(const Rented& rented, const std::string& ca_file, Millis pause) {
    boost::asio::io_context context{1};
    net::Client http(context.get_executor(), {.ca_file = ca_file});
    return run_task(context, ask_until_done(http, rented, pause));
}

}  // namespace comfyd::agent
