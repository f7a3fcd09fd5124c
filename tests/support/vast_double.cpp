#include <algorithm>
#include <array>
#include <utility>

#include "net/http.hpp"
#include "support/cloud_records.hpp"

namespace comfyd::support {
namespace {

struct VastAsk {
    int id;
    const char* gpu;
    int memory_mb;
    double usd;
    double least_bid;
    const char* place;
};
constexpr std::array kVastAsks{
    VastAsk{5001, "RTX 4090", 24'564, 0.351, 0.2, "Sweden, SE"},
    VastAsk{5002, "RTX 4090", 24'564, 0.31, 0.18, "Texas, US"},
    VastAsk{5003, "H100 SXM", 81'559, 2.1, 1.2, "Germany, DE"},
    VastAsk{5004, "A100 SXM4", 81'920, 1.1, 0.6, "Japan, JP"},
    VastAsk{5005, "RTX 4090", 24'564, 0.4, 0.25, "Texas, US"},
    VastAsk{5006, "RTX 3060", 12'288, 0.06, 0.03, "Poland, PL"},
};

const json::value* filter(
    const json::object& filters, std::string_view name, std::string_view how
) {
    const json::value* found = json::find(filters, name);
    return found != nullptr ? json::find(found->as_object(), how) : nullptr;
}

bool is_among(const json::value* list, std::string_view word) {
    return list == nullptr ||
           std::ranges::find(list->as_array(), json::value(word)) != list->as_array().end();
}

json::object refusal(std::string_view error, const std::string& message) {
    return {{"success", false}, {"error", error}, {"msg", message}};
}

}  // namespace

VastDouble::VastDouble() : CloudDouble(PROVIDER_CONTRACTS "/vast.json") {
    start();
}

CloudAnswer VastDouble::refuse(int status, const std::string& words) const {
    if (status == 429) {
        return {status, "API requests too frequent: endpoint threshold=4.5"};
    }
    if (status == 402) {
        return as_json(refusal("insufficient_credit", words), 400);
    }
    return as_json(refusal("invalid_args", words), status);
}

CloudAnswer VastDouble::no_stock() const {
    return as_json(
        refusal("no_such_ask", "error 410/3907: no_such_ask Instance type is no longer available."),
        410
    );
}

std::string VastDouble::name_of(const json::object& record) const {
    return text_in(record, "label");
}

std::string VastDouble::next_id(const std::string&) {
    return std::to_string(9000 + ++made_);
}

json::object VastDouble::make_record(const std::string& id, const json::object& body) {
    const std::string label = text_in(body, "label");
    return {
        {"id", std::stoi(id)},
        {"ask", 0},
        {"label", label.empty() ? text_in(body, "name") : label},
        {"actual_status", nullptr},
        {"intended_status", "running"},
        {"cur_state", "running"},
        {"next_state", "running"},
        {"status_msg", nullptr},
        {"public_ipaddr", "203.0.113.7"},
        {"ports", nullptr},
        {"opens_port", false},
        {"is_bid", body.contains("price")},
        {"dph_total", 0.31},
        {"start_date", 1'763'183'456.5},
    };
}

void VastDouble::advance(json::object& record) {
    json::value& status = record["actual_status"];
    if (record["intended_status"] != "running") {
        return;
    }
    if (status.is_null()) {
        status = faults_.starts_never ? "created" : "loading";
    } else if (status == "loading") {
        status = "running";
        if (record["opens_port"] == true) {
            record["ports"] = {
                {"18188/tcp", json::array{{{"HostIp", "0.0.0.0"}, {"HostPort", "40123"}}}}
            };
        }
    }
}

CloudAnswer VastDouble::search(const json::object& filters) const {
    const json::value* most = filter(filters, "dph_total", "lte");
    const bool is_bid = filters.at("type") == "bid";
    json::array offers;
    for (const VastAsk& ask : kVastAsks) {
        const bool is_taken = std::ranges::any_of(records_, [&](const auto& entry) {
            return entry.second.at("ask") == ask.id;
        });
        const double usd = is_bid ? ask.least_bid + 0.01 : ask.usd;
        const std::string_view place(ask.place);
        if (!is_taken && is_among(filter(filters, "gpu_name", "in"), ask.gpu) &&
            is_among(filter(filters, "geolocation", "in"), place.substr(place.size() - 2)) &&
            *filter(filters, "num_gpus", "eq") == 1 &&
            (most == nullptr || usd <= most->to_number<double>())) {
            offers.push_back(json::object{
                {"id", ask.id},
                {"ask_contract_id", ask.id},
                {"gpu_name", ask.gpu},
                {"gpu_ram", ask.memory_mb},
                {"num_gpus", 1},
                {"dph_total", usd},
                {"min_bid", ask.least_bid},
                {"geolocation", ask.place},
                {"reliability", 0.99},
                {"rentable", true},
            });
        }
    }
    return as_json({{"offers", std::move(offers)}});
}

CloudAnswer VastDouble::rent(const Question& question) {
    const int ask = std::stoi(question.id);
    const bool is_taken = std::ranges::any_of(records_, [&](const auto& entry) {
        return entry.second.at("ask") == ask;
    });
    if (is_taken || std::ranges::find(kVastAsks, ask, &VastAsk::id) == kVastAsks.end()) {
        return as_json(
            refusal("invalid_args", "error 404/3603: no_such_ask Instance type is not available."),
            404
        );
    }
    const std::string id = next_id({});
    json::object record = make_record(id, question.body);
    record["ask"] = ask;
    record["opens_port"] = question.body.at("env").as_object().contains("-p 18188:18188");
    json::object answer{{"success", true}, {"new_contract", record["id"]}};
    if (count_down(faults_.half_made)) {
        for (const char* member : {"intended_status", "cur_state", "next_state"}) {
            record[member] = "stopped";
        }
        answer = refusal("invalid_price", "the bid does not win");
        answer["new_contract"] = record["id"];
        records_[id] = std::move(record);
        return as_json(answer, 400);
    }
    records_[id] = std::move(record);
    return as_json(answer);
}

CloudAnswer VastDouble::list(const std::string& query) {
    std::string from;
    for (const auto& [name, value] : net::parse_query(query)) {
        from = name == "after_token" ? value : from;
    }
    json::array page;
    json::value next = nullptr;
    for (auto& [id, record] : records_) {
        if (id <= from) {
            continue;
        }
        if (page.size() == kPageSize) {
            next = std::to_string(page.back().at("id").as_int64());
            break;
        }
        advance(record);
        page.push_back(record);
    }
    return as_json({{"success", true}, {"instances", std::move(page)}, {"next_token", next}});
}

CloudAnswer VastDouble::answer(const Question& question) {
    const std::string& name = question.route->name;
    if (name == "search") {
        return search(question.body);
    }
    if (name == "create") {
        return rent(question);
    }
    if (name == "list") {
        return list(question.query);
    }
    const auto found = records_.find(question.id);
    if (found == records_.end()) {
        return as_json(refusal("no_such_instance", "No such instance"), 404);
    }
    if (name == "logs") {
        return as_json({{"success", true}, {"result_url", url() + "/log-files/" + question.id}});
    }
    if (name == "log_file") {  // it is not there at once
        return ++looks_[question.id] < 3 ? CloudAnswer{403, "<Error>AccessDenied</Error>"}
                                         : CloudAnswer{200, "Model loaded.\nReady.\n"};
    }
    if (name == "remove") {
        records_.erase(found);
        return as_json({{"success", true}});
    }
    json::object& record = found->second;
    for (const char* member : {"intended_status", "cur_state", "next_state"}) {
        record[member] = text_in(question.body, "state");
    }
    record["actual_status"] =
        record["intended_status"] == "stopped" ? json::value("exited") : json::value(nullptr);
    return as_json({{"success", true}});
}

}  // namespace comfyd::support
