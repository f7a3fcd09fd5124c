#include "app/commands/assets_command.hpp"

#include <cstdio>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "app/config/config.hpp"
#include "app/config/part_options.hpp"
#include "assets/store.hpp"
#include "comfy/members.hpp"
#include "ledger/storage.hpp"
#include "net/http.hpp"

namespace comfyd::app {
namespace {

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    const bool is_usage =
        error.code == Code::config_invalid || error.code == Code::invalid_argument;
    return is_usage ? kExitUsage : kExitUnavailable;
}

unsigned long long shown(std::uint64_t number) {
    return number;
}

Result<assets::Store::Copied> copy(const AssetsCopyFlags& flags, const Config& config) {
    SystemClock clock;
    Pool pool(2);
    boost::asio::io_context context;
    ledger::OpenOptions options;
    options.secret = config.cluster_secret;
    auto storage = ledger::open_storage(ledger_url(config), options, clock);
    if (!storage) {
        return fail(std::move(storage.error()));
    }
    auto stores = make_stores(config, clock, pool);
    if (!stores) {
        return fail(std::move(stores.error()));
    }
    assets::Store store(store_options(config), **storage, clock, pool, std::move(*stores));
    if (auto opened = store.open(); !opened) {
        return fail(std::move(opened.error()));
    }
    const auto tell = [](const assets::Store::Copied& so_far) {
        std::printf("\r%llu contents, %llu bytes", shown(so_far.contents), shown(so_far.bytes));
        std::fflush(stdout);
    };
    std::optional<Result<assets::Store::Copied>> copied;
    boost::asio::co_spawn(
        context,
        store.copy(flags.from, flags.to, tell),
        [&copied](std::exception_ptr thrown, Result<assets::Store::Copied> outcome) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
            copied.emplace(std::move(outcome));
        }
    );
    context.run();
    (*storage)->stop();
    return std::move(*copied);
}

void print_due(const json::object& page) {
    const json::array* listed = json::find_array(page, "assets").value_or(nullptr);
    for (const json::value& one : listed == nullptr ? json::array() : *listed) {
        if (!one.is_object()) {
            continue;
        }
        const json::object& due = one.get_object();
        const std::string to = comfy::text_of(due, "storage_class");
        std::printf(
            "%s  %s%s%s  %s  %s  %lld bytes\n",
            comfy::text_of(due, "at").c_str(),
            comfy::text_of(due, "action").c_str(),
            to.empty() ? "" : " to ",
            to.c_str(),
            comfy::text_of(due, "asset_id").c_str(),
            comfy::text_of(due, "tenant").c_str(),
            static_cast<long long>(comfy::integer_of(due, "size_bytes"))
        );
    }
}

}  // namespace

int run_assets_copy(const AssetsCopyFlags& flags, const Config& config) {
    const auto copied = copy(flags, config);
    if (!copied) {
        return complain(copied.error());
    }
    std::printf(
        "\r%llu contents are in '%s' now, %llu bytes were copied\n",
        shown(copied->contents),
        flags.to.c_str(),
        shown(copied->bytes)
    );
    if (copied->damaged > 0) {
        std::fprintf(
            stderr,
            "comfyd: %llu contents are not what they were, and stay in '%s'\n",
            shown(copied->damaged),
            flags.from.c_str()
        );
        return kExitUnavailable;
    }
    return kExitOk;
}

int run_assets_retention(const AssetsRetentionFlags& flags) {
    if (!flags.dry_run) {
        std::fputs(
            "comfyd: the server sweeps by itself; --dry-run lists what it will do\n", stderr
        );
        return kExitUsage;
    }
    for (const char* action : {"remove", "move"}) {
        std::string cursor;
        do {
            std::string path = std::string("/admin/v1/retention?action=") + action;
            path += flags.by.empty() ? "" : "&by=" + net::percent_encode(flags.by);
            path += cursor.empty() ? "" : "&cursor=" + net::percent_encode(cursor);
            const Asked asked = ask_server({flags.url, flags.key, path});
            if (!asked.answer) {
                return asked.exit_code;
            }
            if (flags.json) {
                std::puts(asked.text.c_str());
            } else {
                print_due(*asked.answer);
            }
            cursor = comfy::text_of(*asked.answer, "next_cursor");
        } while (!cursor.empty());
    }
    return kExitOk;
}

}  // namespace comfyd::app
