#include "fleet/providers/salad.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/machine_names.hpp"
#include "fleet/providers/salad_groups.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

// Its list has no pages, and by its document no more than this: what is behind that is not seen,
// and would be taken for gone.
constexpr std::size_t kGroupsMax = 100;
constexpr int kKindsAsked = 8;  // for how many of them there are, in one look

class Salad final : public MachineProvider {
public:
    Salad(Executor executor, SaladOptions options, const Clock& clock)
        : executor_(executor),
          options_(std::move(options)),
          clock_(clock),
          organization_("/organizations/" + net::percent_encode(options_.organization)),
          groups_(
              organization_ + "/projects/" + net::percent_encode(options_.project) + "/containers"
          ),
          api_(
              executor,
              {.service = "Salad",
               .url = options_.url,
               .key = options_.key,
               .key_header = "Salad-Api-Key",
               .ca_file = options_.ca_file},
              clock
          ) {}

    std::string_view name() const override { return options_.name; }
    MachineTraits traits() const override { return {.dials_in = true}; }

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override;
    Task<Result<std::string>> create(MachineOrder order) override;
    Task<Result<std::vector<Machine>>> list(std::string fleet) override;
    Task<Result<>> start(std::string id) override;
    Task<Result<>> stop(std::string id) override;
    Task<Result<>> remove(std::string id) override;
    Task<Result<std::string>> logs(std::string id, int lines) override;
    void on_change(std::function<void()>) override {}  // it tells nobody
    Task<> end() override;

private:
    std::string group_path(const std::string& id, std::string_view rest = {}) const {
        return groups_ + "/" + net::percent_encode(id) + std::string(rest);
    }
    Task<Result<std::vector<Machine>>> groups();
    Task<Result<>> change(CloudCall call);

    Executor executor_;
    const SaladOptions options_;
    const Clock& clock_;
    const std::string organization_;  // paths
    const std::string groups_;
    CloudApi api_;
};

// Each kind is asked for by itself, until there is one to be had; those without stock go last.
Task<Result<std::vector<Offer>>> Salad::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    auto classes =
        co_await api_.call({.path = organization_ + "/gpu-classes", .meaning = meaning_of_salad});
    if (!classes) {
        co_return fail(std::move(classes.error()));
    }
    auto found = read_gpu_classes(options_, *classes, wish);
    std::vector<Offer> none;
    int asked = 0;
    for (auto offer = found.begin(); offer != found.end() && asked < kKindsAsked; ++asked) {
        auto answer = co_await api_.call(
            {.method = "POST",
             .path = organization_ + "/availability/sce-gpu-availability",
             .body = make_question(options_, *offer),
             .meaning = meaning_of_salad}
        );
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        offer->available = read_availability(options_, *answer);
        if (offer->available != 0) {
            break;
        }
        none.push_back(std::move(*offer));
        offer = found.erase(offer);
    }
    std::ranges::move(none, std::back_inserter(found));
    co_return found;
}

Task<Result<std::vector<Machine>>> Salad::groups() {
    auto answer = co_await api_.call({.path = groups_, .meaning = meaning_of_salad});
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const json::array* items =
        answer->is_object() ? comfy::array_of(answer->get_object(), "items") : nullptr;
    if (items == nullptr) {  // nothing there would be taken for everything gone
        co_return fail(Code::protocol_error, "Salad: GET /containers: the answer has no 'items'");
    }
    if (items->size() >= kGroupsMax) {
        co_return fail(
            Code::protocol_error,
            "Salad: the project '" + options_.project +
                "' has 100 container groups, and its list shows no more: use another project"
        );
    }
    std::vector<Machine> machines;
    for (const json::value& entry : *items) {
        auto machine = read_group(entry);
        if (machine) {
            machines.push_back(std::move(*machine));
        }
    }
    co_return machines;
}

Task<Result<std::string>> Salad::create(MachineOrder order) {
    COMFYD_ON(executor_);
    auto body = make_group(options_, order);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    const auto there = co_await groups();
    if (!there) {
        co_return fail(there.error());
    }
    if (std::ranges::find(*there, order.name, &Machine::name) != there->end()) {
        co_return order.name;
    }
    if (there->size() + 1 >= kGroupsMax) {
        co_return fail(
            Code::out_of_stock,
            "Salad: the project '" + options_.project + "' is full: it has " +
                std::to_string(there->size()) + " container groups"
        );
    }
    auto made = co_await api_.call(
        {.method = "POST",
         .path = groups_,
         .body = std::move(*body),
         .kind = CloudCall::Kind::once,
         .secrets = secrets_of(order),
         .meaning = meaning_of_salad}
    );
    if (!made) {
        co_return fail(std::move(made.error()));
    }
    co_return order.name;
}

Task<Result<std::vector<Machine>>> Salad::list(std::string fleet) {
    COMFYD_ON(executor_);
    auto machines = co_await groups();
    if (machines) {
        std::erase_if(*machines, [&](const Machine& machine) {
            return !is_of_fleet(machine.name, fleet);
        });
    }
    co_return machines;
}

Task<Result<>> Salad::change(CloudCall call) {
    call.meaning = meaning_of_salad;
    auto done = co_await api_.call(std::move(call));
    co_return done ? Result<>() : fail(std::move(done.error()));
}

Task<Result<>> Salad::start(std::string id) {
    COMFYD_ON(executor_);
    return change({.method = "POST", .path = group_path(id, "/start")});
}

Task<Result<>> Salad::stop(std::string id) {
    COMFYD_ON(executor_);
    return change({.method = "POST", .path = group_path(id, "/stop")});
}

Task<Result<>> Salad::remove(std::string id) {
    COMFYD_ON(executor_);
    auto removed = co_await change({.method = "DELETE", .path = group_path(id)});
    const bool is_gone = removed || removed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

Task<Result<std::string>> Salad::logs(std::string id, int lines) {
    COMFYD_ON(executor_);
    auto entries = co_await api_.call(
        {.method = "POST",
         .path = organization_ + "/log-entries",
         .body = make_log_question(options_, id, lines, clock_.now()),
         .meaning = meaning_of_salad}
    );
    if (!entries) {
        co_return fail(std::move(entries.error()));
    }
    co_return read_log_entries(*entries);
}

Task<> Salad::end() {
    COMFYD_ON(executor_);
    api_.close_idle();
    co_return;
}

}  // namespace

Result<> check_salad(const SaladOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    const auto is_name = [](const std::string& text) {
        return !text.empty() &&
               text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    };
    if (options.key.empty()) {
        return wrong("key is missing");
    }
    auto url = check_cloud_url(options.url);
    if (!url) {
        return wrong("url: " + url.error().message);
    }
    if (!is_name(options.organization) || !is_name(options.project)) {
        return wrong("organization and project are names of small letters, digits and '-'");
    }
    constexpr std::array<std::string_view, 4> kPriorities{"high", "medium", "low", "batch"};
    if (std::ranges::find(kPriorities, options.priority) == kPriorities.end()) {
        return wrong("priority must be high, medium, low or batch");
    }
    const bool has_countries = std::ranges::all_of(options.countries, [](const auto& country) {
        return country.size() == 2 && country[0] >= 'a' && country[0] <= 'z' && country[1] >= 'a' &&
               country[1] <= 'z';
    });
    if (!has_countries) {
        return wrong("countries are two small letters each, as in us, de");
    }
    if (options.cpus < 1 || options.memory_mb < 1024 || options.disk_gb < 1) {
        return wrong("a machine has 1 CPU, 1024 MB of memory and 1 GB of disk at least");
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_salad(
    Executor executor, SaladOptions options, const Clock& clock
) {
    auto checked = check_salad(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<Salad>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
