#include "ledger/bulk_codec.hpp"

#include <utility>

#include "base/text.hpp"
#include "ledger/codec.hpp"

namespace comfyd::ledger {
namespace {

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(view(found->get_string())) : "";
}

std::int64_t number_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

bool flag_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_bool() && found->get_bool();
}

const json::object* object_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr ? found->if_object() : nullptr;
}

std::optional<Time> time_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_int64() ? std::optional(from_unix_ms(found->get_int64()))
                                                 : std::nullopt;
}

json::object encode_output(const jobs::BulkOutput& output) {
    json::object encoded{
        {"asset", output.asset.to_string()},
        {"name", output.name},
        {"content_type", output.content_type},
        {"size_bytes", static_cast<std::int64_t>(output.size_bytes)},
        {"hash", output.hash},
    };
    if (output.crc32) {
        encoded["crc32"] = static_cast<std::int64_t>(*output.crc32);
    }
    return encoded;
}

jobs::BulkOutput decode_output(const json::object& from) {
    jobs::BulkOutput output;
    output.asset = AssetId::parse(text_of(from, "asset")).value_or(AssetId());
    output.name = text_of(from, "name");
    output.content_type = text_of(from, "content_type");
    output.size_bytes = static_cast<std::uint64_t>(number_of(from, "size_bytes"));
    output.hash = text_of(from, "hash");
    if (from.contains("crc32")) {
        output.crc32 = static_cast<std::uint32_t>(number_of(from, "crc32"));
    }
    return output;
}

}  // namespace

std::string encode_bulk(const jobs::Bulk& bulk) {
    json::object encoded{
        {"id", bulk.id.to_string()},
        {"tenant", bulk.tenant},
        {"dialect", bulk.dialect},
        {"state", std::string(to_string(bulk.state))},
        {"paused", bulk.paused},
        {"total", bulk.counts.total},
        {"running", bulk.counts.running},
        {"completed", bulk.counts.completed},
        {"failed", bulk.counts.failed},
        {"cancelled", bulk.counts.cancelled},
        {"created_at", to_unix_ms(bulk.created_at)},
        {"about", bulk.about},
        {"idempotency_key", bulk.idempotency_key},
        {"request_hash", bulk.request_hash},
        {"has_webhook", bulk.has_webhook},
        {"revision", bulk.revision},
    };
    if (bulk.ended_at) {
        encoded["ended_at"] = to_unix_ms(*bulk.ended_at);
    }
    if (bulk.news) {
        encoded["news"] = json::object{
            {"due", to_unix_ms(bulk.news->due)},
            {"attempts", bulk.news->attempts},
            {"error", bulk.news->error},
            {"to", json::array(bulk.news->to.begin(), bulk.news->to.end())},
        };
    }
    return json::serialize(encoded);
}

Result<jobs::Bulk> decode_bulk(std::string_view text) {
    auto decoded = decode_object(text);
    if (!decoded) {
        return fail(std::move(decoded.error()));
    }
    const auto id = jobs::BulkId::parse(text_of(*decoded, "id"));
    const auto state = jobs::parse_bulk_state(text_of(*decoded, "state"));
    if (!id || !state) {
        return fail(damaged("a batch"));
    }
    const auto count = [&](std::string_view key) {
        return static_cast<int>(number_of(*decoded, key));
    };
    jobs::Bulk bulk;
    bulk.id = *id;
    bulk.tenant = text_of(*decoded, "tenant");
    bulk.dialect = text_of(*decoded, "dialect");
    bulk.state = *state;
    bulk.paused = flag_of(*decoded, "paused");
    bulk.counts.total = count("total");
    bulk.counts.running = count("running");
    bulk.counts.completed = count("completed");
    bulk.counts.failed = count("failed");
    bulk.counts.cancelled = count("cancelled");
    bulk.created_at = time_of(*decoded, "created_at").value_or(Time());
    bulk.ended_at = time_of(*decoded, "ended_at");
    bulk.idempotency_key = text_of(*decoded, "idempotency_key");
    bulk.request_hash = text_of(*decoded, "request_hash");
    bulk.has_webhook = flag_of(*decoded, "has_webhook");
    bulk.revision = count("revision");
    if (const json::object* about = object_of(*decoded, "about")) {
        bulk.about = *about;
    }
    if (const json::object* news = object_of(*decoded, "news")) {
        bulk.news = jobs::BulkNews{
            time_of(*news, "due").value_or(Time()),
            static_cast<int>(number_of(*news, "attempts")),
            text_of(*news, "error")
        };
        if (const json::value* to = json::find(*news, "to"); to != nullptr && to->is_array()) {
            bulk.news->to.clear();
            for (const json::value& name : to->get_array()) {
                bulk.news->to.emplace_back(name.is_string() ? name.get_string() : "");
            }
        }
    }
    return bulk;
}

std::optional<std::string> encode_outcome(const jobs::BulkItem& item) {
    json::object encoded;
    if (!item.outputs.empty()) {
        json::array outputs;
        for (const jobs::BulkOutput& output : item.outputs) {
            outputs.emplace_back(encode_output(output));
        }
        encoded["outputs"] = std::move(outputs);
    }
    if (item.failure) {
        encoded["failure"] = item.failure->to_json();
    }
    return encode(encoded);
}

Result<> decode_outcome(std::string_view text, jobs::BulkItem& into) {
    const auto decoded = decode_object(text);
    if (!decoded) {
        return fail(decoded.error());
    }
    const json::value* outputs = json::find(*decoded, "outputs");
    if (outputs != nullptr && outputs->is_array()) {
        for (const json::value& output : outputs->get_array()) {
            if (const json::object* one = output.if_object()) {
                into.outputs.push_back(decode_output(*one));
            }
        }
    }
    if (const json::object* failure = object_of(*decoded, "failure")) {
        into.failure = jobs::Failure::from_json(*failure);
    }
    return {};
}

Error stale_bulk(const jobs::Bulk& bulk) {
    return Error(
        Code::conflict,
        "batch " + bulk.id.to_string() + " was changed meanwhile; read it again and decide anew"
    );
}

Error no_bulk(const jobs::BulkId& id) {
    return Error(Code::not_found, "there is no batch " + id.to_string());
}

}  // namespace comfyd::ledger
