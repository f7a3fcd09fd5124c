// What a request to make a batch asks for.
#include <algorithm>
#include <array>
#include <utility>

#include "api/dialects/batches/batches.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "api/workflow_source.hpp"
#include "api/wrong_field.hpp"
#include "base/crypto.hpp"
#include "base/text.hpp"

namespace comfyd::api::batches {
namespace {

using jobs::Bulk;

constexpr std::string_view kDialect = "batches";
constexpr std::size_t kNameBytesMax = 200;

constexpr auto kMembers = std::to_array<std::string_view>({
    "workflow",
    "parameters",
    "items",
    "params",
    "input_asset_id",
    "format",
    "name",
    "priority",
    "class",
    "fairness_key",
    "timeout",
    "deadline",
    "max_attempts",
    "pool",
    "max_retries",
    "metadata",
    "callback_url",
    "webhook_url",
    "webhook_config",
    "output_config",
    "execution_config",
    "auto_fix",
    "reuse",
    "region",
    "gpu_requirements",
    "gpu_memory_fraction",
});

// A filter that names no event of batches would hear of nothing.
Result<> check_hears_of_batches(const std::optional<jobs::Webhook>& webhook) {
    const auto is_of_batches = [](const std::string& event) { return event.starts_with("batch."); };
    if (!webhook || webhook->events.empty() ||
        std::ranges::any_of(webhook->events, is_of_batches)) {
        return {};
    }
    return wrong(
        "webhook_config.events",
        "'webhook_config.events' of a batch may be batch.completed and batch.cancelled"
    );
}

Result<> check_members(const json::object& body) {
    for (const auto& member : body) {
        const std::string_view name = view(member.key());
        if (std::ranges::find(kMembers, name) == kMembers.end()) {
            const std::string shown(name.substr(0, 100));
            return wrong(
                shown,
                "'" + shown +
                    "' is no option of a batch: values of parameters stand in 'items', "
                    "and in 'params' those that all have"
            );
        }
    }
    return {};
}

// "workflow" is a name, the workflow itself, or says where it is to be had.
Task<Result<Work>> take_work(const Call& call, const Tools& tools, json::object& body) {
    const json::value* given = json::find(body, "workflow");
    if (given == nullptr) {
        co_return wrong(
            "workflow", "'workflow' is missing: send a workflow, or the name of a stored one"
        );
    }
    if (given->is_string()) {
        auto choice = named::parse_reference(view(given->get_string()));
        if (choice) {
            auto work = co_await load_named(call, tools, std::move(*choice));
            co_return work;
        }
        auto opened = co_await open_workflow(call, tools.services, body, "workflow");
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
    }
    json::object stored;
    stored["workflow"] = std::move(body["workflow"]);
    if (const json::value* declared = json::find(body, "parameters")) {
        stored["parameters"] = *declared;
    }
    stored["check"] = false;  // the first item is judged, with its values
    const auto catalogue = tools.services.catalogue();
    auto version = named::make_version(
        std::move(stored), *catalogue, *tools.services.rules.security_of(call.caller.tenant)
    );
    if (!version) {
        co_return fail(std::move(version.error()));
    }
    co_return make_work(*version, true);
}

Result<bulk::RowFormat> take_format(const json::object& body, const assets::Asset& file) {
    const auto said = json::find_string(body, "format");
    if (!said) {
        return fail(said.error());
    }
    const auto format = *said ? bulk::parse_row_format(**said)
                              : bulk::guess_row_format(file.file_path, file.content_type);
    if (!format) {
        return wrong(
            "format",
            *said ? "'format' must be csv, jsonl or json"
                  : "it cannot be told how the file is written: name it .csv, .jsonl or .json, or "
                    "say so by 'format'"
        );
    }
    return *format;
}

Task<Result<RowSource>> take_rows(
    const Call& call, const Tools& tools, json::object& body, std::optional<assets::Asset> file
) {
    const auto items = json::find_array(body, "items");
    const auto asset_id = json::find_string(body, "input_asset_id");
    if (!items || !asset_id) {
        co_return fail(items ? asset_id.error() : items.error());
    }
    const int given = (*items != nullptr ? 1 : 0) + (*asset_id ? 1 : 0) + (file ? 1 : 0);
    if (given != 1) {
        co_return wrong(
            "items",
            "give the sets of parameters once: as 'items', as a file in the form, or as a file "
            "that "
            "was uploaded before ('input_asset_id')"
        );
    }
    RowSource source;
    if (*items != nullptr) {
        source.rows = std::move(body["items"].get_array());
        body.erase("items");
        co_return source;
    }
    if (*asset_id) {
        const auto id = AssetId::parse(**asset_id);
        if (!id) {
            co_return wrong("input_asset_id", "'input_asset_id' must be the id of an asset");
        }
        auto found = co_await tools.services.assets.get(call.caller.tenant, *id);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        file = std::move(*found);
    }
    auto format = take_format(body, *file);
    if (!format) {
        co_return fail(std::move(format.error()));
    }
    source.asset = std::move(file);
    source.format = *format;
    co_return source;
}

// What is asked for beside the workflow and the rows.
Result<Order> decode_order(
    const Call& call, const Tools& tools, const json::object& body, const Work& work
) {
    auto decoded = workflows::decode_options(body, workflows::kV2);
    if (!decoded) {
        return fail(std::move(decoded.error()));
    }
    jobs::Spec& spec = decoded->submission.spec;
    if (auto common = decode_common(call, tools.services, decoded->common, spec); !common) {
        return fail(std::move(common.error()));
    }
    if (auto heard = check_hears_of_batches(spec.webhook); !heard) {
        return fail(std::move(heard.error()));
    }
    const auto name = json::find_string(body, "name");
    if (!name) {
        return fail(name.error());
    }
    if (name->value_or("").size() > kNameBytesMax) {
        return wrong("name", "'name' may have at most " + std::to_string(kNameBytesMax) + " bytes");
    }
    Order order;
    Bulk& bulk = order.bulk;
    bulk.id = jobs::BulkId::make(tools.services.clock.now());
    bulk.tenant = call.caller.tenant;
    bulk.dialect = kDialect;
    bulk.created_at = tools.services.clock.now();
    bulk.idempotency_key = std::move(spec.idempotency_key);
    bulk.has_webhook = spec.webhook.has_value();
    bulk.about["metadata"] = spec.metadata;
    if (*name) {
        bulk.about["name"] = **name;
    }
    if (!work.name.empty()) {
        bulk.about["workflow_id"] = work.name;
        spec.workflow_id = work.name;
        spec.dialect_data["workflow_version"] = work.version;
    }
    order.plan.webhook = std::exchange(spec.webhook, std::nullopt);
    order.plan.auto_fix = decoded->submission.auto_fix;
    order.plan.workflow = work.wrapped;
    spec.idempotency_key.clear();
    spec.tenant = call.caller.tenant;
    keep_tier(call, spec);
    spec.dialect = kDialect;
    // Its jobs together have one share of the tenant's turns.
    if (spec.fairness_key.empty()) {
        spec.fairness_key = "batch:" + bulk.id.to_string();
    }
    order.plan.spec = std::move(spec);
    return order;
}

// What makes two requests with the same key the same.
std::string hash_of(const json::object& body, const RowSource& source) {
    json::object all;
    all["body"] = body;
    if (source.asset) {
        all["file"] = source.asset->hash;
    }
    if (source.rows) {
        all["items"] = *source.rows;
    }
    return to_hex(sha256(json::serialize_canonical(all)));
}

}  // namespace

Result<Work> make_work(const jobs::WorkflowVersion& version, bool takes_other_names) {
    auto workflow = json::parse_object(version.workflow);
    auto declared = json::parse_object(version.parameters);
    auto prompt = version.prompt.empty() ? workflow : json::parse_object(version.prompt);
    if (!workflow || !declared || !prompt) {
        return fail(Code::internal, "the stored workflow is damaged");
    }
    Work work;
    work.wrapped["prompt"] = std::move(*workflow);
    work.wrapped["parameters"] = *declared;
    work.form.graph = std::move(*prompt);
    work.form.declared = std::move(*declared);
    work.form.takes_other_names = takes_other_names;
    return work;
}

Task<Result<Work>> load_named(const Call& call, const Tools& tools, named::Choice choice) {
    auto loaded = co_await named::load(tools.services, call.caller.tenant, std::move(choice));
    if (!loaded) {
        co_return fail(std::move(loaded.error()));
    }
    auto work = make_work(loaded->version, false);
    if (work) {
        work->name = loaded->workflow.name;
        work->version = loaded->version.version;
    }
    co_return work;
}

Task<Result<Made>> make_as_asked(Call& call, const Tools& tools) {
    constexpr std::string_view kForm = "multipart/form-data";
    const std::string_view type = call.request.headers.get("Content-Type");
    Form form;
    if (net::equal_ignoring_case(type.substr(0, kForm.size()), kForm)) {
        auto read = co_await read_form(call, tools);
        if (!read) {
            co_return fail(std::move(read.error()));
        }
        form = std::move(*read);
    } else {
        auto body = co_await read_json_body(call, tools.services);
        if (!body) {
            co_return fail(std::move(body.error()));
        }
        form.members = std::move(*body);
    }
    json::object& body = form.members;
    if (auto checked = check_members(body); !checked) {
        co_return fail(std::move(checked.error()));
    }
    auto source = co_await take_rows(call, tools, body, std::move(form.file));
    if (!source) {
        co_return fail(std::move(source.error()));
    }
    const std::string hash = hash_of(body, *source);
    auto work = co_await take_work(call, tools, body);
    if (!work) {
        co_return fail(std::move(work.error()));
    }
    auto common = json::find_object(body, "params");
    if (!common) {
        co_return fail(std::move(common.error()));
    }
    auto order = decode_order(call, tools, body, *work);
    if (!order) {
        co_return fail(std::move(order.error()));
    }
    order->bulk.request_hash = hash;
    work->form.common = *common != nullptr ? **common : json::object();
    const auto catalogue = tools.services.catalogue();
    auto item_form = bulk::ItemForm::make(std::move(work->form), *catalogue);
    if (!item_form) {
        co_return fail(std::move(item_form.error()));
    }
    const auto shared = std::make_shared<bulk::ItemForm>(std::move(*item_form));
    auto made = co_await make_bulk(
        tools,
        std::move(*order),
        std::move(*source),
        [shared, catalogue](bulk::Row row, int index) {
            return shared->make_item(std::move(row), index);
        }
    );
    co_return made;
}

}  // namespace comfyd::api::batches
