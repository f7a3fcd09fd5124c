#include "fleet/providers/novita.hpp"

#include <algorithm>
#include <utility>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"
#include "fleet/providers/novita_instances.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kPageSize = 200;
constexpr int kPagesMax = 100;

std::string instance_path(const std::string& id, std::string_view rest = {}) {
    return "/instances/" + net::percent_encode(id) + std::string(rest);
}

class Novita final : public MachineProvider {
public:
    Novita(Executor executor, NovitaOptions options, const Clock& clock)
        : executor_(executor),
          options_(std::move(options)),
          clock_(clock),
          api_(
              executor,
              {.service = "Novita",
               .url = options_.url,
               .key = options_.key,
               .ca_file = options_.ca_file,
               .words_of = words_of_novita},
              clock
          ) {}

    std::string_view name() const override { return options_.name; }
    MachineTraits traits() const override {
        return {.can_park = options_.can_park, .bills_parked = true};
    }

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
    Task<Result<std::vector<Machine>>> instances();
    Task<Result<>> put(std::string id, std::string action);

    Executor executor_;
    const NovitaOptions options_;
    const Clock& clock_;
    CloudApi api_;
};

Task<Result<std::vector<Offer>>> Novita::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    auto products = co_await api_.call({.path = "/products", .meaning = meaning_of_novita});
    if (!products) {
        co_return fail(std::move(products.error()));
    }
    auto offers = read_products(*products, wish);
    std::erase_if(offers, [&](const Offer& offer) {
        return !options_.product.empty() && offer.id != options_.product;
    });
    co_return offers;
}

Task<Result<std::vector<Machine>>> Novita::instances() {
    std::vector<Machine> machines;
    std::string cursor;
    for (int page = 0; page < kPagesMax; ++page) {
        std::string path = "/instances?limit=" + std::to_string(kPageSize);
        path += cursor.empty() ? "" : "&cursor=" + net::percent_encode(cursor);
        auto answer = co_await api_.call({.path = std::move(path), .meaning = meaning_of_novita});
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        const json::object* body = answer->if_object();
        const json::array* data = body != nullptr ? comfy::array_of(*body, "data") : nullptr;
        if (data == nullptr) {  // nothing there would be taken for everything gone
            co_return fail(
                Code::protocol_error, "Novita: GET /instances: the answer has no 'data'"
            );
        }
        for (const json::value& entry : *data) {
            auto machine = read_instance(options_, entry, clock_.now());
            if (machine) {
                machines.push_back(std::move(*machine));
            }
        }
        std::string next = comfy::text_of(*body, "next_cursor");
        next = next.empty() ? comfy::text_of(*body, "cursor") : next;
        if (next.empty() || next == cursor || data->empty()) {
            co_return machines;
        }
        cursor = std::move(next);
    }
    co_return fail(Code::protocol_error, "Novita: GET /instances: its pages have no end");
}

Task<Result<std::string>> Novita::create(MachineOrder order) {
    COMFYD_ON(executor_);
    auto body = make_instance(options_, order);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    // Names are not unique there: whoever made it before us is looked for.
    const auto there = co_await instances();
    if (!there) {
        co_return fail(there.error());
    }
    const auto is_same = [&](const Machine& machine) {
        return machine.name == order.name && machine.state != Machine::State::gone;
    };
    const auto same = std::ranges::find_if(*there, is_same);
    if (same != there->end()) {
        co_return same->id;
    }
    auto made = co_await api_.call(
        {.method = "POST",
         .path = "/instances",
         .body = std::move(*body),
         .kind = CloudCall::Kind::once,
         .secrets = secrets_of(order),
         .meaning = meaning_of_novita}
    );
    if (!made) {
        co_return fail(std::move(made.error()));
    }
    std::string id = made->is_object() ? comfy::text_of(made->get_object(), "id") : std::string();
    if (id.empty()) {
        co_return fail(Code::protocol_error, "Novita: POST /instances: the answer has no 'id'");
    }
    co_return id;
}

Task<Result<std::vector<Machine>>> Novita::list(std::string fleet) {
    COMFYD_ON(executor_);
    auto machines = co_await instances();
    if (machines) {
        std::erase_if(*machines, [&](const Machine& machine) {
            return !is_of_fleet(machine.name, fleet) || machine.state == Machine::State::gone;
        });
    }
    co_return machines;
}

Task<Result<>> Novita::put(std::string id, std::string action) {
    auto done = co_await api_.call(
        {.method = "PUT",
         .path = instance_path(id, "/" + action),
         .body = json::object(),
         .meaning = meaning_of_novita}
    );
    co_return done ? Result<>() : fail(std::move(done.error()));
}

Task<Result<>> Novita::start(std::string id) {
    COMFYD_ON(executor_);
    return put(std::move(id), "start");
}

Task<Result<>> Novita::stop(std::string id) {
    COMFYD_ON(executor_);
    return put(std::move(id), "stop");
}

Task<Result<>> Novita::remove(std::string id) {
    COMFYD_ON(executor_);
    auto removed = co_await api_.call(
        {.method = "DELETE", .path = instance_path(id), .meaning = meaning_of_novita}
    );
    const bool is_gone = removed || removed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

Task<Result<std::string>> Novita::logs(std::string id, int) {
    COMFYD_ON(executor_);
    co_return fail(
        Code::not_found,
        "Novita has no call that gives the log of '" + presentable(id) +
            "': it shows it on its own pages"
    );
}

Task<> Novita::end() {
    COMFYD_ON(executor_);
    api_.close_idle();
    co_return;
}

}  // namespace

Result<> check_novita(const NovitaOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    if (options.key.empty()) {
        return wrong("key is missing");
    }
    auto url = check_cloud_url(options.url);
    if (!url) {
        return wrong("url: " + url.error().message);
    }
    if (options.volume.empty() != options.volume_path.empty()) {
        return wrong("volume and volume_path belong together");
    }
    if (options.disk_gb < 10 || options.disk_gb > 6144) {
        return wrong("disk_gb must be 10 … 6144");
    }
    auto agents = check_cloud_url(agent_url(options.agent_url, "x", "1", "y").value_or(""));
    if (!agents) {  // their tokens go there
        return wrong("agent_url: " + agents.error().message);
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_novita(
    Executor executor, NovitaOptions options, const Clock& clock
) {
    auto checked = check_novita(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<Novita>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
