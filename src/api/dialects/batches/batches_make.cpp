// How a batch comes in.
#include <utility>

#include "admission/admit.hpp"
#include "api/dialects/batches/batches.hpp"
#include "base/text.hpp"
#include "bulk/asset_reader.hpp"
#include "bulk/loading.hpp"
#include "net/multipart_receive.hpp"

namespace comfyd::api::batches {
namespace {

constexpr std::size_t kMemberBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kPieceBytes = 64 * 1024;

// Takes rows as they come and loads items of them.
class Intake {
public:
    Intake(const Tools& tools, bulk::Plan plan, bulk::Loading& loading, MakeItem make_item)
        : services_(tools.services),
          plan_(std::move(plan)),
          loading_(loading),
          make_item_(std::move(make_item)) {}

    Task<Result<>> take(bulk::Rows rows) {
        std::vector<jobs::BulkItem> items;
        for (bulk::Row& row : rows) {
            const int index = next_index_++;
            const auto record = row.record;
            const auto line = row.line;
            auto item = make_item_(std::move(row), index);
            if (!item) {
                co_return fail(std::move(item.error()));
            }
            if (index == 0) {
                auto good = co_await try_first(*item);
                if (!good) {
                    Error error = std::move(good.error());
                    error.details["record"] = record;
                    error.details["line"] = line;
                    co_return fail(std::move(error));
                }
            }
            items.push_back(std::move(*item));
        }
        auto added = co_await loading_.add(std::move(items));
        co_return added;
    }

private:
    // What is wrong with the workflow is wrong with all of them.
    Task<Result<>> try_first(const jobs::BulkItem& item) {
        auto submission = bulk::make_submission(plan_, loading_.bulk().id, item);
        if (!submission) {
            co_return fail(std::move(submission.error()));
        }
        auto admitted = co_await admission::admit(services_, std::move(*submission));
        if (!admitted) {
            co_return fail(std::move(admitted.error().error));
        }
        co_return Result<>();
    }

    const Services& services_;
    const bulk::Plan plan_;
    bulk::Loading& loading_;
    const MakeItem make_item_;
    int next_index_ = 0;
};

Result<bulk::Rows> rows_of(json::array given) {
    bulk::Rows rows;
    for (json::value& one : given) {
        const std::size_t record = rows.size() + 1;
        if (!one.is_object()) {
            return bulk::wrong_row(record, 1, "it is no object: each item is {\"params\": {…}}");
        }
        rows.push_back({record, 1, std::move(one.get_object()), false});
    }
    return rows;
}

Task<Result<>> take_file(
    const Tools& tools, assets::Asset asset, bulk::RowFormat format, Intake& intake
) {
    auto file = co_await bulk::AssetReader::open(
        tools.services.assets, *tools.services.parsing, std::move(asset)
    );
    if (!file) {
        co_return fail(std::move(file.error()));
    }
    const auto reader = bulk::make_row_reader(format);
    for (std::uint64_t at = 0;;) {
        auto piece = co_await file->read(at, kPieceBytes);
        if (!piece) {
            co_return fail(std::move(piece.error()));
        }
        at += piece->size();
        bulk::Rows rows;
        auto read = piece->empty() ? reader->finish(rows) : reader->feed(*piece, rows);
        if (!read) {
            co_return read;
        }
        auto taken = co_await intake.take(std::move(rows));
        if (!taken || piece->empty()) {
            co_return taken;
        }
    }
}

Task<Result<>> take_all(const Tools& tools, RowSource source, Intake& intake) {
    if (source.asset) {
        auto taken = co_await take_file(tools, std::move(*source.asset), source.format, intake);
        co_return taken;
    }
    auto rows = rows_of(std::move(source.rows).value_or(json::array()));
    if (!rows) {
        co_return fail(std::move(rows.error()));
    }
    auto taken = co_await intake.take(std::move(*rows));
    co_return taken;
}

class FormSink final : public net::PartSink {
public:
    explicit FormSink(const Tools& tools) : services_(tools.services) {}

    Result<> begin_part(net::PartHead head) override {
        name_ = std::move(head.name);
        value_.clear();
        is_file_ = name_ == "file";
        if (!is_file_) {
            return {};
        }
        if (writer_) {
            return fail(
                Code::invalid_argument,
                "the form has several parts named 'file'",
                {{"field", "file"}}
            );
        }
        auto writer = services_.assets.write();
        if (!writer) {
            return fail(std::move(writer.error()));
        }
        writer_ = std::move(*writer);
        const std::string file_name = std::move(head.filename).value_or("");
        asset_.file_path = file_name.substr(file_name.find_last_of("/\\") + 1);
        asset_.content_type = std::move(head.content_type);
        return {};
    }
    Result<> part_data(std::string_view piece) override {
        if (is_file_) {
            return writer_->append(piece);
        }
        if (value_.size() + piece.size() > kMemberBytesMax) {
            return fail(
                Code::payload_too_large,
                "'" + name_.substr(0, 64) + "' is larger than " + std::to_string(kMemberBytesMax) +
                    " bytes"
            );
        }
        value_ += piece;
        return {};
    }
    Result<> end_part() override {
        if (!is_file_) {
            auto parsed = json::parse(value_);
            members_[name_] = parsed ? std::move(*parsed) : json::value(value_);
        }
        return {};
    }

    json::object take_members() { return std::move(members_); }
    std::unique_ptr<assets::BlobWriter> take_writer() { return std::move(writer_); }
    assets::NewAsset take_asset() { return std::move(asset_); }

private:
    const Services& services_;
    std::string name_;
    std::string value_;
    bool is_file_ = false;
    json::object members_;
    std::unique_ptr<assets::BlobWriter> writer_;
    assets::NewAsset asset_;
};

}  // namespace

Task<Result<Form>> read_form(Call& call, const Tools& tools) {
    FormSink sink(tools);
    auto received = co_await net::receive_multipart(
        call.exchange, sink, tools.services.options.upload_bytes_max
    );
    if (!received) {
        co_return fail(std::move(received.error()));
    }
    Form form;
    form.members = sink.take_members();
    auto writer = sink.take_writer();
    if (writer) {
        assets::NewAsset asset = sink.take_asset();
        asset.tenant = call.caller.tenant;
        asset.tags = {"batch"};
        asset.expires_at = tools.services.clock.now() + tools.services.rules.retention;
        auto added = co_await tools.services.assets.finish(std::move(writer), std::move(asset));
        if (!added) {
            co_return fail(std::move(added.error()));
        }
        form.file = std::move(added->asset);
    }
    co_return form;
}

Task<Result<Made>> make_bulk(
    const Tools& tools, Order order, RowSource source, MakeItem make_item
) {
    bulk::Loading loading(tools.bulks, tools.services.clock, tools.items_max);
    auto begun = co_await loading.begin(std::move(order.bulk), bulk::encode_plan(order.plan));
    if (!begun) {
        co_return fail(std::move(begun.error()));
    }
    if (!*begun) {
        co_return Made{loading.bulk(), true};
    }
    Intake intake(tools, std::move(order.plan), loading, std::move(make_item));
    auto loaded = co_await take_all(tools, std::move(source), intake);
    if (loaded) {
        loaded = co_await loading.finish();
    }
    if (!loaded) {
        co_await loading.give_up();
        co_return fail(std::move(loaded.error()));
    }
    tools.wake(loading.bulk().id);
    co_return Made{loading.bulk(), !loading.was_created()};
}

}  // namespace comfyd::api::batches
