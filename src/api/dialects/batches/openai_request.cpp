// What a request to make a batch asks for, and the lines of its file.
#include <memory>
#include <utility>

#include "api/dialects/batches/openai_batches.hpp"
#include "api/dialects/named/named.hpp"
#include "api/submission.hpp"
#include "api/wrong_field.hpp"
#include "base/crypto.hpp"
#include "base/text.hpp"
#include "bulk/item_form.hpp"

namespace comfyd::api::batches::openai {
namespace {

using jobs::Bulk;

constexpr std::string_view kDialect = "openai-batches";
constexpr std::string_view kExecute = "/v2/workflows/execute";
constexpr std::string_view kNamedPrefix = "/v2/workflows/";
constexpr std::string_view kNamedSuffix = "/run";

// What a line must say besides its values: {"custom_id", "method", "url", "body"}.
class Lines {
public:
    explicit Lines(std::string endpoint) : endpoint_(std::move(endpoint)) {}

    // The body.
    Result<json::object> take(bulk::Row& row, std::string& custom_id) {
        auto id = custom_ids_.take(row);
        if (!id) {
            return fail(std::move(id.error()));
        }
        if (id->empty()) {
            return bulk::wrong_row(row.record, row.line, "'custom_id' is missing");
        }
        custom_id = std::move(*id);
        const json::value* method = row.values.if_contains("method");
        const json::value* url = row.values.if_contains("url");
        json::value* body = row.values.if_contains("body");
        if (method == nullptr || *method != "POST" || url == nullptr ||
            *url != json::value(endpoint_)) {
            return bulk::wrong_row(
                row.record,
                row.line,
                "'method' must be POST and 'url' the endpoint of the batch, " + endpoint_
            );
        }
        if (body == nullptr || !body->is_object()) {
            return bulk::wrong_row(row.record, row.line, "'body' must be an object");
        }
        return std::move(body->get_object());
    }

private:
    std::string endpoint_;
    bulk::CustomIds custom_ids_;
};

// The values of a request: "params", or "input_params" as others call it.
Result<json::object> values_of(json::object& body, const bulk::Row& row, bool with_workflow) {
    json::object values;
    for (auto& member : body) {
        const std::string_view name = view(member.key());
        if (name == "params" || name == "input_params") {
            if (!member.value().is_object()) {
                return bulk::wrong_row(
                    row.record, row.line, "'" + std::string(name) + "' must be an object"
                );
            }
            values = std::move(member.value().get_object());
        } else if (name != "workflow" || !with_workflow) {
            return bulk::wrong_row(
                row.record,
                row.line,
                "'" + std::string(name.substr(0, 100)) + "' cannot be set in a line: it may hold " +
                    (with_workflow ? "workflow and params" : "params")
            );
        }
    }
    return values;
}

// Of an endpoint that takes a workflow with each request.
MakeItem whole_requests(std::string endpoint) {
    const auto lines = std::make_shared<Lines>(std::move(endpoint));
    return [lines](bulk::Row row, int index) -> Result<jobs::BulkItem> {
        jobs::BulkItem item;
        item.index = index;
        auto body = lines->take(row, item.custom_id);
        if (!body) {
            return fail(std::move(body.error()));
        }
        auto values = values_of(*body, row, true);
        if (!values) {
            return fail(std::move(values.error()));
        }
        json::value* workflow = body->if_contains("workflow");
        if (workflow == nullptr || !workflow->is_object()) {
            return bulk::wrong_row(row.record, row.line, "'body.workflow' must be a workflow");
        }
        item.params = json::serialize(
            json::object{{"workflow", std::move(*workflow)}, {"params", std::move(*values)}}
        );
        return item;
    };
}

// Of a stored workflow: its parameters are judged at once.
Task<Result<MakeItem>> named_requests(
    const Call& call, const Tools& tools, std::string endpoint, named::Choice choice, Order& order
) {
    auto work = co_await load_named(call, tools, std::move(choice));
    if (!work) {
        co_return fail(std::move(work.error()));
    }
    order.plan.workflow = std::move(work->wrapped);
    order.plan.spec.workflow_id = work->name;
    order.plan.spec.dialect_data["workflow_version"] = work->version;
    const auto catalogue = tools.services.catalogue();
    auto form = bulk::ItemForm::make(std::move(work->form), *catalogue);
    if (!form) {
        co_return fail(std::move(form.error()));
    }
    const auto shared = std::make_shared<bulk::ItemForm>(std::move(*form));
    const auto lines = std::make_shared<Lines>(std::move(endpoint));
    co_return [shared, lines, catalogue](bulk::Row row, int index) -> Result<jobs::BulkItem> {
        std::string custom_id;
        auto body = lines->take(row, custom_id);
        if (!body) {
            return fail(std::move(body.error()));
        }
        auto values = values_of(*body, row, false);
        if (!values) {
            return fail(std::move(values.error()));
        }
        row.values = std::move(*values);
        auto item = shared->make_item(std::move(row), index);
        if (item) {
            item->custom_id = std::move(custom_id);
        }
        return item;
    };
}

Result<Order> decode_order(const Call& call, const Tools& tools, const json::object& body) {
    const auto window = json::find_string(body, "completion_window");
    if (!window) {
        return fail(window.error());
    }
    if (window->value_or(std::string(kWindow)) != kWindow) {
        return wrong("completion_window", "'completion_window' must be \"24h\"");
    }
    auto key = decode_idempotency_key(call);
    if (!key) {
        return fail(std::move(key.error()));
    }
    auto machine = decode_machine(call, tools.services, {});
    if (!machine) {
        return fail(std::move(machine.error()));
    }
    const auto metadata = json::find_object(body, "metadata");
    if (!metadata) {
        return fail(metadata.error());
    }
    if (*metadata != nullptr && json::serialize(**metadata).size() > jobs::kMetadataBytesMax) {
        return wrong("metadata", "'metadata' is too large");
    }
    Order order;
    Bulk& bulk = order.bulk;
    bulk.id = jobs::BulkId::make(tools.services.clock.now());
    bulk.tenant = call.caller.tenant;
    bulk.dialect = kDialect;
    bulk.created_at = tools.services.clock.now();
    bulk.idempotency_key = std::move(*key);
    bulk.about["metadata"] = *metadata != nullptr ? json::value(**metadata) : json::value(nullptr);
    jobs::Spec& spec = order.plan.spec;
    spec.tenant = call.caller.tenant;
    keep_tier(call, spec);
    spec.dialect = kDialect;
    spec.fairness_key = "batch:" + bulk.id.to_string();
    spec.requirement = Requirement().on(*machine);
    return order;
}

}  // namespace

Task<Result<assets::Asset>> get_file(const Call& call, const Tools& tools, std::string id) {
    const auto parsed = AssetId::parse(without(kFilePrefix, id));
    if (!parsed) {
        co_return fail(Code::not_found, "there is no file '" + id.substr(0, 100) + "'");
    }
    auto asset = co_await tools.services.assets.get(call.caller.tenant, *parsed);
    co_return asset;
}

Task<Result<Made>> make_as_asked(Call& call, const Tools& tools) {
    auto body = co_await read_json_body(call, tools.services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    const auto file_id = json::find_string(*body, "input_file_id");
    const auto endpoint = json::find_string(*body, "endpoint");
    if (!file_id || !*file_id) {
        co_return wrong("input_file_id", "'input_file_id' must be the id of a file");
    }
    auto order = decode_order(call, tools, *body);
    if (!order) {
        co_return fail(std::move(order.error()));
    }
    const std::string path = endpoint ? endpoint->value_or("") : "";
    auto file = co_await get_file(call, tools, **file_id);
    if (!file) {
        co_return fail(std::move(file.error()));
    }
    order->bulk.about["input_file_id"] = **file_id;
    order->bulk.about["endpoint"] = path;
    order->bulk.request_hash = to_hex(sha256(json::serialize_canonical(*body)));
    Result<MakeItem> make_item = whole_requests(path);
    if (path != kExecute) {
        const bool is_named = path.starts_with(kNamedPrefix) && path.ends_with(kNamedSuffix) &&
                              path.size() > kNamedPrefix.size() + kNamedSuffix.size();
        const auto choice =
            is_named
                ? named::parse_reference(path.substr(
                      kNamedPrefix.size(), path.size() - kNamedPrefix.size() - kNamedSuffix.size()
                  ))
                : std::nullopt;
        if (!choice) {
            co_return wrong(
                "endpoint", "'endpoint' must be /v2/workflows/execute or /v2/workflows/{name}/run"
            );
        }
        make_item = co_await named_requests(call, tools, path, *choice, *order);
    }
    if (!make_item) {
        co_return fail(std::move(make_item.error()));
    }
    RowSource source;
    source.asset = std::move(*file);
    source.format = bulk::RowFormat::jsonl;
    auto made =
        co_await make_bulk(tools, std::move(*order), std::move(source), std::move(*make_item));
    co_return made;
}

}  // namespace comfyd::api::batches::openai
