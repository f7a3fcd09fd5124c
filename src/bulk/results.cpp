#include "bulk/results.hpp"

#include <algorithm>
#include <utility>

#include "bulk/asset_reader.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::size_t kNameBytesMax = 60;
constexpr std::size_t kExtensionBytesMax = 10;

bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-';
}

// Shows nothing and changes how what stands around it is shown: controls, line breaks, and marks
// that turn the direction of writing, behind which another ending can be hidden.
bool steers(std::string_view character) {
    constexpr std::string_view kLastControl = "\xC2\x9F";
    const auto is_between = [character](std::string_view first, std::string_view last) {
        return character.size() == first.size() && first <= character && character <= last;
    };
    return (character.size() == 2 && character <= kLastControl) ||
           is_between("\xE2\x80\x8B", "\xE2\x80\x8F") ||  // without width
           is_between("\xE2\x80\xA8", "\xE2\x80\xAE") ||  // line breaks, directions
           is_between("\xE2\x81\xA6", "\xE2\x81\xA9") ||  // directions
           character == "\xEF\xBB\xBF";
}

// What any file system takes, and nobody mistakes for anything but a name.
std::string plain_name(std::string_view text) {
    std::string name;
    for (std::size_t at = 0; at < text.size() && name.size() < kNameBytesMax; ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x80) {
            name += is_plain(text[at]) || (text[at] == '.' && !name.empty()) ? text[at] : '_';
            continue;
        }
        // A whole character, or nothing of it.
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        const std::string_view character = text.substr(at, length);
        name += steers(character) ? std::string_view("_") : character;
        at += length - 1;
    }
    while (name.ends_with('.')) {
        name.pop_back();
    }
    return name;
}

std::string extension_of(std::string_view name) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos || name.size() - dot > kExtensionBytesMax ||
        name.size() - dot < 2 || !std::ranges::all_of(name.substr(dot + 1), is_plain)) {
        return {};
    }
    return std::string(name.substr(dot));
}

std::string padded(int index) {
    const std::string digits = std::to_string(index);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

Task<Result<std::uint32_t>> checksum(ResultTools tools, std::string tenant, AssetId id) {
    auto asset = co_await tools.assets.get(std::move(tenant), id);
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    auto sum = co_await tools.assets.crc32(std::move(*asset));
    co_return sum;
}

bool is_gone(Code code) {
    return code == Code::not_found || code == Code::output_unavailable;
}

// True when something was found out that is worth keeping.
Task<Result<bool>> complete_checksums(ResultTools tools, std::string tenant, jobs::BulkItem& item) {
    bool is_new = false;
    for (jobs::BulkOutput& output : item.outputs) {
        if (output.crc32) {
            continue;
        }
        auto sum = co_await checksum(tools, tenant, output.asset);
        if (!sum && !is_gone(sum.error().code)) {
            co_return fail(std::move(sum.error()));
        }
        if (sum) {
            output.crc32 = *sum;
            is_new = true;
        }
    }
    co_return is_new;
}

// Of no importance where it fails: it is computed again.
Task<> keep_checksums(jobs::BulkStore& store, jobs::Bulk& bulk, std::vector<jobs::BulkItem> items) {
    if (items.empty()) {
        co_return;
    }
    jobs::BulkChange change = note_items(bulk, std::move(items));
    jobs::Bulk after = change.bulk;
    auto kept = co_await store.commit_bulk(std::move(change));
    if (kept) {
        bulk = std::move(after);
    }
}

}  // namespace

std::string output_path(const jobs::BulkItem& item, std::size_t output) {
    std::string path = padded(item.index);
    const std::string name = plain_name(item.custom_id);
    if (!name.empty()) {
        path += "-" + name;
    }
    if (item.outputs.size() > 1) {
        // Behind two dashes: the name of an item may end in a number.
        path += "--" + std::to_string(output + 1);
    }
    return path + extension_of(item.outputs.at(output).name);
}

json::object encode_item(const jobs::BulkItem& item) {
    json::array outputs;
    for (std::size_t i = 0; i < item.outputs.size(); ++i) {
        const jobs::BulkOutput& output = item.outputs[i];
        outputs.emplace_back(json::object{
            {"path", output_path(item, i)},
            {"asset_id", output.asset.to_string()},
            {"hash", output.hash},
            {"size_bytes", output.size_bytes},
            {"content_type", output.content_type},
        });
    }
    auto params = json::parse(item.params);
    return {
        {"index", item.index},
        {"custom_id", item.custom_id.empty() ? json::value(nullptr) : json::value(item.custom_id)},
        {"job_id", item.job ? json::value(item.job->to_string()) : json::value(nullptr)},
        {"status", std::string(to_string(item.state))},
        {"params", params ? std::move(*params) : json::value(nullptr)},
        {"outputs", std::move(outputs)},
        {"error", item.failure ? json::value(item.failure->to_json()) : json::value(nullptr)},
    };
}

Task<Result<Archive>> plan_archive(ResultTools tools, jobs::Bulk bulk) {
    if (!has_ended(bulk.state)) {
        co_return fail(
            Code::conflict, "the batch has not ended yet: its archive is there when it has"
        );
    }
    std::vector<ZipEntry> entries;
    std::vector<AssetId> assets;
    jobs::BulkItemQuery query{.bulk = bulk.id, .state = jobs::ItemState::completed};
    for (bool more = true; more;) {
        auto items = co_await tools.store.bulk_items(query);
        if (!items) {
            co_return fail(std::move(items.error()));
        }
        more = items->size() == static_cast<std::size_t>(query.limit);
        std::vector<jobs::BulkItem> completed;
        for (jobs::BulkItem& item : *items) {
            query.after = item.index;
            auto is_new = co_await complete_checksums(tools, bulk.tenant, item);
            if (!is_new) {
                co_return fail(std::move(is_new.error()));
            }
            for (std::size_t i = 0; i < item.outputs.size(); ++i) {
                const jobs::BulkOutput& output = item.outputs[i];
                // An entry that is gone would cut the archive off where it begins.
                auto found = co_await tools.assets.get(bulk.tenant, output.asset);
                if (!found && found.error().code != Code::not_found) {
                    co_return fail(std::move(found.error()));
                }
                if (found && output.crc32) {
                    entries.push_back({output_path(item, i), output.size_bytes, *output.crc32});
                    assets.push_back(output.asset);
                }
            }
            if (*is_new) {
                completed.push_back(std::move(item));
            }
        }
        co_await keep_checksums(tools.store, bulk, std::move(completed));
    }
    const Time modified = bulk.ended_at.value_or(bulk.created_at);
    co_return Archive{ZipLayout(std::move(entries), modified), std::move(assets)};
}

}  // namespace comfyd::bulk
