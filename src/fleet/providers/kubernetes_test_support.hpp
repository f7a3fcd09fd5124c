// A double that plays an API server's side of conversations about Pods, as a real one was recorded
// (support/kubernetes_conversation.hpp). Test code only.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::fleet::test {

inline constexpr const char* kNamespace = "comfyd-fleet";
inline constexpr const char* kPods = "/api/v1/namespaces/comfyd-fleet/pods";

// Pods by name, a version for each change, and watches that are told of them. Members from any
// thread.
class ApiServer {
public:
    ApiServer()
        : server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return serve(*this, exchange);
          }) {
        threads_.start();
        port_ = server_.listen({"127.0.0.1", 0})->port;
    }
    ~ApiServer() {
        is_ending_ = true;
        server_.stop(Millis(0));
        threads_.stop();
    }

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    json::object last_created() const {
        const std::lock_guard lock(mutex_);
        return created_;
    }
    std::vector<std::string> asked() const {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    int count(std::string_view part) const {
        int found = 0;
        for (const std::string& one : asked()) {
            found += one.find(part) != std::string::npos ? 1 : 0;
        }
        return found;
    }
    // Those that nobody has told to end.
    std::map<std::string, json::object> pods() const {
        const std::lock_guard lock(mutex_);
        std::map<std::string, json::object> found = pods_;
        std::erase_if(found, [](const auto& pod) {
            return pod.second.at("metadata").as_object().contains("deletionTimestamp");
        });
        return found;
    }
    // One that there is runs on a node, and is so.
    void set_status(const std::string& name, const json::object& status) {
        const std::lock_guard lock(mutex_);
        if (const auto found = pods_.find(name); found != pods_.end()) {
            json::object pod = found->second;
            pod["status"] = status;
            pod["spec"].as_object()["nodeName"] = "node-1";
            put_locked(name, std::move(pod));
        }
    }
    // Its node has ended it.
    void forget(const std::string& name) {
        const std::lock_guard lock(mutex_);
        if (pods_.contains(name)) {
            erase_locked(name);
        }
    }
    // A Pod changes, or comes.
    void put(const std::string& name, const std::string& fleet, const json::object& status) {
        const std::lock_guard lock(mutex_);
        put_locked(
            name,
            {{"metadata",
              {{"name", name},
               {"labels", {{"comfyd.fleet", fleet}, {"comfyd.port", "18188"}}},
               {"creationTimestamp", "2026-11-15T05:10:56Z"}}},
             {"status", status}}
        );
    }
    void set_token(std::string token) {
        const std::lock_guard lock(mutex_);
        token_ = std::move(token);
    }
    // The next watches end so: "gone" by status, "error" by an event, "cut" without a word.
    void end_watches(std::deque<std::string> how) {
        const std::lock_guard lock(mutex_);
        ends_ = std::move(how);
        ++ended_;
    }
    void refuse_creates(int status, json::object with) {
        const std::lock_guard lock(mutex_);
        refused_ = std::pair(status, std::move(with));
    }
    // The second page of the next list is too late.
    void lose_a_page() {
        const std::lock_guard lock(mutex_);
        loses_page_ = true;
    }

private:
    static json::object status(int code, const char* reason, const std::string& message) {
        return {
            {"kind", "Status"},
            {"status", "Failure"},
            {"reason", reason},
            {"message", message},
            {"code", code}
        };
    }
    void put_locked(const std::string& name, json::object pod) {
        pod["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
        const char* type = pods_.contains(name) ? "MODIFIED" : "ADDED";
        pods_[name] = std::move(pod);
        tell_locked(type, pods_[name]);
    }
    void erase_locked(const std::string& name) {
        json::object pod = std::move(pods_.at(name));
        pods_.erase(name);
        pod["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
        tell_locked("DELETED", pod);
    }
    void tell_locked(const char* type, const json::object& pod) {
        events_.push_back({version_, pod, type});
    }
    // Watches and lists are of those that have a fleet, or of one.
    static bool is_chosen(const json::object& pod, const std::string& selector) {
        const json::value* labels = json::find(pod.at("metadata").as_object(), "labels");
        const json::value* fleet =
            labels != nullptr ? json::find(labels->as_object(), "comfyd.fleet") : nullptr;
        return fleet != nullptr && (selector == "comfyd.fleet" ||
                                    selector == "comfyd.fleet=" + std::string(fleet->as_string()));
    }
    static Task<> serve(ApiServer& self, net::Exchange& exchange) {
        auto body = co_await exchange.read_body(1024 * 1024);
        const net::Request& request = exchange.request();
        {
            const std::lock_guard lock(self.mutex_);
            self.asked_.push_back(request.method_name + " " + request.target);
        }
        if (request.query.find("watch=1") != std::string::npos) {
            co_await self.watch(self, exchange);
            co_return;
        }
        auto sent = co_await exchange.send(self.answer(request, body.value_or("")));
        static_cast<void>(sent);
    }
    static Task<> watch(ApiServer& self, net::Exchange& exchange) {
        const std::string& query = exchange.request().query;
        long from = std::stol(query.substr(query.find("resourceVersion=") + 16));
        int ended = 0;
        std::string how;
        {
            const std::lock_guard lock(self.mutex_);
            ended = self.ended_;
            if (!self.ends_.empty()) {
                how = self.ends_.front();
                self.ends_.pop_front();
            }
        }
        if (how == "gone") {
            auto sent = co_await exchange.send(
                {410, {}, json::serialize(status(410, "Expired", "too old resource version"))}
            );
            static_cast<void>(sent);
            co_return;
        }
        auto begun = co_await exchange.begin_stream({});
        if (how == "error") {
            auto told = co_await exchange.write_stream(
                json::serialize(
                    json::object{{"type", "ERROR"}, {"object", status(410, "Expired", "too old")}}
                ) +
                "\n"
            );
            static_cast<void>(told);
        }
        if (how == "cut") {
            auto half = co_await exchange.write_stream(R"({"type":"MODIFIED","object":{"meta)");
            static_cast<void>(half);
        }
        if (!how.empty()) {
            co_return;  // without an end
        }
        while (!self.is_ending_) {
            std::string news;
            {
                const std::lock_guard lock(self.mutex_);
                for (const auto& [version, pod, type] : self.events_) {
                    if (version > from && is_chosen(pod, "comfyd.fleet")) {
                        news +=
                            json::serialize(json::object{{"type", type}, {"object", pod}}) + "\n";
                    }
                    from = std::max(from, version);
                }
                if (ended != self.ended_) {
                    break;
                }
            }
            if (!news.empty()) {
                auto told = co_await exchange.write_stream(std::move(news));
                if (!told) {
                    co_return;
                }
            }
            if (query.find("timeoutSeconds=1&") != std::string::npos) {
                break;  // it was to be brief: what there is has been told
            }
            const bool is_gone = co_await exchange.wait_closed(Millis(5));
            if (is_gone) {
                co_return;
            }
        }
        auto over = co_await exchange.end_stream();
        static_cast<void>(over);
    }
    net::Response answer(const net::Request& request, const std::string& body) {
        const std::lock_guard lock(mutex_);
        const auto reply = [](int code, const json::object& with) {
            return net::Response{code, {}, json::serialize(with)};
        };
        if (request.headers.get("Authorization") != "Bearer " + token_) {
            return reply(401, status(401, "Unauthorized", "Unauthorized"));
        }
        if (request.path == kPods && request.method_name == "GET") {
            return list(request.query);
        }
        if (request.path == kPods && request.method_name == "POST") {
            json::object pod = *json::parse_object(body);
            const std::string name(pod.at("metadata").at("name").as_string());
            created_ = pod;
            if (refused_) {
                const auto [code, with] = *std::exchange(refused_, std::nullopt);
                return reply(code, with);
            }
            if (pods_.contains(name)) {
                return reply(
                    409, status(409, "AlreadyExists", "pods \"" + name + "\" already exists")
                );
            }
            pod["status"] = {{"phase", "Pending"}};
            pod["metadata"].as_object()["creationTimestamp"] = "2026-11-15T05:10:56Z";
            put_locked(name, pod);
            return reply(201, pods_[name]);
        }
        std::string name = request.path.substr(std::string(kPods).size() + 1);
        const std::string part = name.substr(std::min(name.find('/'), name.size()));
        name = name.substr(0, name.find('/'));
        if (!pods_.contains(name)) {
            return reply(404, status(404, "NotFound", "pods \"" + name + "\" not found"));
        }
        if (part == "/log") {
            return {200, {}, "one\ntwo\n"};
        }
        json::object pod = pods_[name];
        if (part == "/binding") {
            pod["spec"].as_object()["nodeName"] = json::parse_object(body)->at("target").at("name");
            put_locked(name, std::move(pod));
            return reply(201, {{"kind", "Status"}, {"status", "Success"}, {"code", 201}});
        }
        if (part == "/status") {
            const json::object changes = *json::parse_object(body);
            for (const auto& [member, value] : changes.at("status").as_object()) {
                pod["status"].as_object()[member] = value;
            }
            put_locked(name, std::move(pod));
        } else if (request.method_name == "DELETE") {
            return reply(200, end_locked(name, request.query));
        }
        return reply(200, pods_[name]);
    }
    // One that runs on a node has its grace, and is there until its node says that it has ended.
    json::object end_locked(const std::string& name, const std::string& query) {
        json::object pod = pods_[name];
        const json::value* spec = json::find(pod, "spec");
        const json::value* phase = json::find(pod.at("status").as_object(), "phase");
        const bool runs = spec != nullptr && spec->as_object().contains("nodeName") &&
                          phase != nullptr && *phase != "Succeeded" && *phase != "Failed";
        const bool ends_now = !runs || query == "gracePeriodSeconds=0";
        json::object& metadata = pod["metadata"].as_object();
        if (ends_now || !metadata.contains("deletionTimestamp")) {
            metadata["deletionTimestamp"] = "2026-11-15T05:11:26Z";
            put_locked(name, pod);
        }
        if (ends_now) {
            erase_locked(name);
        }
        return pod;
    }
    net::Response list(const std::string& query) {
        std::string selector;
        std::string from;
        for (const auto& [name, value] : net::parse_query(query)) {
            selector = name == "labelSelector" ? value : selector;
            from = name == "continue" ? value : from;
        }
        if (!from.empty() && std::exchange(loses_page_, false)) {
            return {
                410, {}, json::serialize(status(410, "Expired", "the continue token is too old"))
            };
        }
        json::array items;
        std::string next;
        for (const auto& [name, pod] : pods_) {
            if (name <= from || (!selector.empty() && !is_chosen(pod, selector))) {
                continue;
            }
            if (items.size() == 2) {  // so that lists have pages
                next = json::serialize(items.back().at("metadata").at("name"));
                next = next.substr(1, next.size() - 2);
                break;
            }
            items.push_back(pod);
        }
        json::object metadata{{"resourceVersion", std::to_string(version_)}};
        if (!next.empty()) {
            metadata["continue"] = next;
        }
        return {
            200,
            {},
            json::serialize(
                json::object{{"kind", "PodList"}, {"metadata", metadata}, {"items", items}}
            )
        };
    }

    net::IoThreads threads_{1};
    mutable std::mutex mutex_;
    std::map<std::string, json::object> pods_;
    struct Event {
        long version;
        json::object pod;
        std::string type;
    };
    std::vector<Event> events_;
    std::vector<std::string> asked_;
    std::deque<std::string> ends_;
    std::optional<std::pair<int, json::object>> refused_;
    json::object created_;
    std::string token_ = "token-1";
    long version_ = 100;
    int ended_ = 0;
    bool loses_page_ = false;
    std::atomic<bool> is_ending_ = false;
    net::Server server_;
    std::uint16_t port_ = 0;
};

}  // namespace comfyd::fleet::test
