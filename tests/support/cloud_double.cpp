#include "support/cloud_double.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"
#include "support/cloud_records.hpp"

namespace comfyd::support {
CloudDouble::CloudDouble(const std::string& contract_file) : contract_(contract_file) {}

CloudDouble::~CloudDouble() = default;

void CloudDouble::start() {
    server_ = std::make_unique<net::Server>(
        threads_.contexts(),
        net::ServerLimits{},
        [this](net::Exchange& exchange) { return serve(*this, exchange); }
    );
    threads_.start();
    const auto endpoint = server_->listen({"127.0.0.1", 0});
    if (!endpoint) {
        throw std::runtime_error(endpoint.error().message);
    }
    port_ = endpoint->port;
}

void CloudDouble::stop() {
    server_->stop(Millis(0));
    threads_.stop();
}

void CloudDouble::set(CloudFaults faults) {
    const std::lock_guard lock(mutex_);
    faults_ = faults;
}

std::vector<std::string> CloudDouble::machines() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [id, record] : records_) {
        names.push_back(name_of(record));
    }
    return names;
}

std::string CloudDouble::add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::string id = next_id(name);
    records_[id] = make_record(id, {{"name", name}});
    return id;
}

bool CloudDouble::is_known(const net::Request& request) const {
    return request.headers.get("Authorization") == std::string("Bearer ") + kKey;
}

std::string CloudDouble::name_of(const json::object& record) const {
    return text_in(record, "name");
}

std::string CloudDouble::next_id(const std::string&) {
    return "m" + std::to_string(++made_);
}

void CloudDouble::change(const std::string& id, std::function<void(json::object& record)> change) {
    const std::lock_guard lock(mutex_);
    change(records_.at(id));
}

int CloudDouble::asked(std::string_view route) const {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(route);
    return found == asked_.end() ? 0 : found->second;
}

std::optional<json::object> CloudDouble::last_create() const {
    const std::lock_guard lock(mutex_);
    return last_create_;
}

std::vector<std::string> CloudDouble::wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
}

Task<> CloudDouble::serve(CloudDouble& self, net::Exchange& exchange) {
    auto body = co_await exchange.read_body(1024 * 1024);
    auto [response, breaks_off] = self.respond(exchange.request(), body.value_or(""));
    if (breaks_off) {
        auto begun = co_await exchange.begin_stream(std::move(response));
        static_cast<void>(begun);
        co_return;  // without an end
    }
    auto sent = co_await exchange.send(std::move(response));
    static_cast<void>(sent);
}

std::pair<net::Response, bool> CloudDouble::respond(
    const net::Request& request, const std::string& body
) {
    const std::lock_guard lock(mutex_);
    const auto finish = [](const CloudAnswer& answer) {
        net::Response response{answer.status, {}, answer.body};
        response.headers.set("Content-Type", "application/json");
        return response;
    };
    const auto match = contract_.find(request.method_name, request.path);
    if (!match) {
        wrong_.push_back("there is no " + request.method_name + " " + request.path);
        return {finish(refuse(404, "no such path")), false};
    }
    ++asked_[match->route->name];
    // What is for everybody must not be shown the key.
    const json::value* is_open = json::find(match->route->about, "open");
    if (is_open != nullptr && is_known(request)) {
        wrong_.push_back("the key was shown to " + match->route->name);
    }
    if (is_open == nullptr && !is_known(request)) {
        return {finish(refuse(401, "invalid api key")), false};
    }
    if (count_down(faults_.pages)) {
        net::Response page{200, {}, "<html><body>Just a moment…</body></html>"};
        page.headers.set("Content-Type", "text/html");
        return {std::move(page), false};
    }
    const bool is_create = match->route->name == "create";
    if (count_down(faults_.too_many) || (is_create && count_down(faults_.too_many_creates))) {
        net::Response busy = finish(refuse(429, "too many requests"));
        if (faults_.retry_after_s >= 0) {
            busy.headers.set("Retry-After", std::to_string(faults_.retry_after_s));
        }
        return {std::move(busy), false};
    }
    const bool is_removal = match->route->name == "remove";
    if (count_down(faults_.errors) || (is_removal && count_down(faults_.errors_to_remove))) {
        return {finish(refuse(500, "internal error")), false};
    }
    std::vector<std::string> wrong = contract_.check_query(*match->route, request.query);
    std::ranges::move(contract_.check_body(*match->route, body), std::back_inserter(wrong));
    if (!wrong.empty()) {
        wrong_.insert(wrong_.end(), wrong.begin(), wrong.end());
        return {finish(refuse(422, wrong.front())), false};
    }
    Question question{match->route, match->id, request.query, {}};
    if (auto parsed = json::parse_object(body)) {
        question.body = std::move(*parsed);
    }
    bool breaks_off = false;
    const CloudAnswer given =
        match->route->name == "create" ? create(question, breaks_off) : answer(question);
    if (given.status == match->route->status) {
        for (const std::string& what : contract_.check_answer(*match->route, given.body)) {
            wrong_.push_back("the double itself: " + what);
        }
    }
    return {finish(given), breaks_off};
}

CloudAnswer CloudDouble::create(const Question& question, bool& breaks_off) {
    last_create_ = question.body;
    const std::string echo = faults_.echoes ? " " + json::serialize(question.body) : "";
    if (faults_.is_broke) {
        return refuse(402, "your balance is not enough" + echo);
    }
    if (count_down(faults_.out_of_stock)) {
        return no_stock();
    }
    const CloudAnswer made = answer(question);
    if (count_down(faults_.errors_after)) {
        return refuse(500, "something went wrong" + echo);
    }
    breaks_off = count_down(faults_.lost_after);
    return made;
}

// RunPod.

RunPodDouble::RunPodDouble() : CloudDouble(PROVIDER_CONTRACTS "/runpod.json") {
    start();
}

CloudAnswer RunPodDouble::refuse(int status, const std::string& words) const {
    return as_json({{"title", "Refused"}, {"status", status}, {"detail", words}}, status);
}

CloudAnswer RunPodDouble::no_stock() const {
    return refuse(
        400, "There are no longer any instances available with the requested specifications"
    );
}

json::object RunPodDouble::make_record(const std::string& id, const json::object& body) {
    json::object pod{
        {"id", id},
        {"name", "pod"},
        {"image", "x"},
        {"args", ""},
        {"disk", 20},
        {"ports", json::array{"18188/http"}},
        {"env", json::object()},
        {"registry", nullptr},
        {"cloud", "SECURE"},
        {"gpu", {{"id", "NVIDIA GeForce RTX 4090"}, {"count", 1}}},
    };
    for (const auto& [name, value] : body) {
        pod[name] = value;
    }
    pod["status"] = "PROVISIONING";
    pod["actions"] = json::array{"start", "terminate"};
    pod["dataCenterId"] = "US-KS-2";
    pod["cudaVersion"] = "12.8";
    pod["cost"] = 0.44;
    pod["runtime"] = nullptr;
    pod["createdAt"] = "2026-11-15T05:10:56Z";
    pod["startedAt"] = nullptr;
    return pod;
}

void RunPodDouble::advance(json::object& record) {
    if (!faults_.starts_never) {
        step(record["status"], {"PROVISIONING", "STARTING", "RUNNING"});
    }
}

CloudAnswer RunPodDouble::answer(const Question& question) {
    const std::string& name = question.route->name;
    if (name == "gpus") {
        const auto gpu =
            [](const char* id, const char* short_name, int memory, double price, const char* level
            ) {
                return json::object{
                    {"id", id},
                    {"name", short_name},
                    {"pool", nullptr},
                    {"manufacturer", "NVIDIA"},
                    {"memory", memory},
                    {"secure", true},
                    {"community", price < 1},
                    {"price", {{"secure", price}, {"community", price / 2}}},
                    {"maxCount", {{"secure", 8}, {"community", 2}}},
                    {"availability", level},
                    {"dataCenters",
                     json::array{{{"id", "US-KS-2"}, {"name", "Kansas"}, {"availability", level}}}},
                };
            };
        return as_json(
            {{"gpus",
              json::array{
                  gpu("NVIDIA A40", "A40", 48, 0.40, "NONE"),
                  gpu("NVIDIA H100 80GB HBM3", "H100 SXM", 80, 2.99, "LOW"),
                  gpu("NVIDIA GeForce RTX 4090", "RTX 4090", 24, 0.44, "HIGH"),
                  gpu("NVIDIA L40S", "L40S", 48, 0.86, "MEDIUM"),
              }}}
        );
    }
    if (name == "list") {
        json::array pods;
        for (auto& [id, record] : records_) {
            advance(record);
            pods.push_back(record);
        }
        return as_json({{"pods", pods}});
    }
    if (name == "create") {
        const std::string id = "pod" + std::to_string(++made_);
        records_[id] = make_record(id, question.body);
        return as_json(records_[id], 201);
    }
    const auto found = records_.find(question.id);
    if (found == records_.end()) {
        return refuse(404, "pod not found");
    }
    if (name == "remove") {
        records_.erase(found);
        return {204, ""};
    }
    json::object& record = found->second;
    if (name == "logs") {
        return {
            200,
            "id: 1\ndata: "
            "{\"ts\":\"2026-06-01T12:02:03Z\",\"source\":\"container\",\"line\":\"Model "
            "loaded.\"}\n\nid: 2\ndata: {\"line\":\"Ready.\"}\n\n"
        };
    }
    if (name == "action") {
        const std::string action = text_in(question.body, "action");
        const std::string status = text_in(record, "status");
        if ((action == "stop") == (status == "EXITED")) {
            return refuse(409, "the pod is " + status);
        }
        record["status"] = action == "stop" ? "EXITED" : "PROVISIONING";
    } else {
        advance(record);
    }
    return as_json(record);
}

// Novita.

NovitaDouble::NovitaDouble() : CloudDouble(PROVIDER_CONTRACTS "/novita.json") {
    start();
}

CloudAnswer NovitaDouble::refuse(int status, const std::string& words) const {
    switch (form_++ % 4) {
        case 0:
            return as_json({{"message", words}}, status);
        case 1:
            return as_json(
                {{"code", status},
                 {"reason", "REFUSED"},
                 {"message", words},
                 {"metadata", json::object()}},
                status
            );
        case 2:
            return as_json({{"error", words}}, status);
        default:
            return as_json({{"error", {{"message", words}}}}, status);
    }
}

CloudAnswer NovitaDouble::no_stock() const {
    return as_json(
        {{"code", 400}, {"reason", "INSUFFICIENT_RESOURCE"}, {"message", "no resource"}}, 400
    );
}

json::object NovitaDouble::make_record(const std::string& id, const json::object& body) {
    const json::value* ports = json::find(body, "ports");
    return {
        {"id", id},
        {"name", text_in(body, "name")},
        {"status", {{"status", "pending"}, {"error", ""}, {"message", ""}}},
        {"created_at", 1'763'183'456},
        {"region", "US-CA-06 (California)"},
        {"product_id", text_in(body, "product_id")},
        {"billing", {{"mode", "postpaid"}}},
        {"ports", ports != nullptr ? *ports : json::array{{{"port", 18188}, {"protocol", "http"}}}},
    };
}

void NovitaDouble::advance(json::object& record) {
    json::value& status = record["status"].as_object()["status"];
    if (faults_.starts_never) {
        step(status, {"pending", "creating", "pulling"});
        return;
    }
    step(status, {"pending", "creating", "pulling", "running"});
    step(status, {"toStart", "starting", "running"});
    step(status, {"toStop", "exited"});
}

CloudAnswer NovitaDouble::answer(const Question& question) {
    const std::string& name = question.route->name;
    if (name == "products") {
        const auto product = [](const char* id,
                                const char* gpu,
                                int memory,
                                int available,
                                int price,
                                const json::value& spot) {
            return json::object{
                {"id", id},
                {"name", gpu},
                {"resource_spec", {{"gpu", {{"memory_gb", memory}, {"available", available}}}}},
                {"pricing",
                 {{"precision", 5}, {"postpaid", {{"final_price", price}}}, {"spot", spot}}},
            };
        };
        return as_json(
            {{"data",
              json::array{
                  product("p-4090", "RTX 4090 24GB", 24, 7, 35000, {{"final_price", 18000}}),
                  product("p-h100", "H100 SXM 80GB", 80, 1, 259'000, nullptr),
                  product("p-l40s", "L40S 48GB", 48, 0, 55000, {{"final_price", 30000}}),
              }}}
        );
    }
    if (name == "regions") {
        return as_json({{"data", json::array{{{"id", "us-ca-6"}}}}});
    }
    if (name == "list") {
        const std::size_t at = question.query.find("cursor=");
        const std::string from = at == std::string::npos ? "" : question.query.substr(at + 7);
        json::array data;
        std::string next;
        for (auto& [id, record] : records_) {
            if (id <= from) {
                continue;
            }
            if (data.size() == kPageSize) {
                break;
            }
            advance(record);
            data.push_back(record);
            next = id;
        }
        json::object page{{"data", data}};
        if (data.size() == kPageSize) {
            page["next_cursor"] = next;
        }
        return as_json(page);
    }
    if (name == "create") {
        const std::string id = "i" + std::to_string(1000 + ++made_);
        records_[id] = make_record(id, question.body);
        return as_json({{"id", id}});
    }
    const auto found = records_.find(question.id);
    if (found == records_.end()) {
        return as_json(
            {{"code", 400}, {"reason", "RESOURCE_NOT_FOUND"}, {"message", "not found"}}, 400
        );
    }
    json::object& record = found->second;
    if (name == "remove") {
        records_.erase(found);
        return as_json({});
    }
    if (name == "start" || name == "stop") {
        record["status"].as_object()["status"] = name == "start" ? "toStart" : "toStop";
        return as_json({});
    }
    advance(record);
    return as_json(record);
}

}  // namespace comfyd::support
