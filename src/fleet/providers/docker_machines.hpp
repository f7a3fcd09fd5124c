// The provider `docker`. Internal to it. Belongs to the core executor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "base/turnstile.hpp"
#include "fleet/providers/docker.hpp"
#include "fleet/providers/docker_api.hpp"
#include "fleet/providers/docker_container.hpp"

namespace comfyd::fleet {

class Docker final : public MachineProvider {
public:
    // `clock` outlives it.
    Docker(Executor executor, DockerOptions options, const Clock& clock);

    std::string_view name() const override { return options_.name; }
    MachineTraits traits() const override;

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override;
    // Where the image must be pulled first, that and all that follows goes on in the background:
    // list() tells how far it is, and what came of it.
    Task<Result<std::string>> create(MachineOrder order) override;
    Task<Result<std::vector<Machine>>> list(std::string fleet) override;
    Task<Result<>> start(std::string id) override;
    Task<Result<>> stop(std::string id) override;
    Task<Result<>> remove(std::string id) override;
    Task<Result<std::string>> logs(std::string id, int lines) override;
    void on_change(std::function<void()> changed) override;
    Task<> end() override;

private:
    // A machine from its order to its container, or to the reason why there is none.
    struct Making {
        std::string fleet;
        Time since;
        bool is_pulling = false;
        int percent = 0;
        bool is_withdrawn = false;         // removed: whoever makes it undoes what he did
        std::optional<std::string> why{};  // it has failed, and stays until it is removed
    };

    // docker_making.cpp. A Making is in the map until the task that makes it has ended.
    Task<Result<>> make(const MachineOrder& order, const Making& making);
    Task<> pull_and_make(MachineOrder order);
    Task<Result<bool>> has_image(const MachineOrder& order);
    Task<Result<>> pull(const MachineOrder& order, Making& making);
    Task<Result<>> place(const MachineOrder& order, const DockerEngine& engine);
    Task<Result<>> adopt(const MachineOrder& order);
    Task<Result<>> start_or_remove(std::string container, bool wants_gpus);

    Machine to_machine_of(const std::string& name, const Making& making) const;
    Task<Result<>> erase(std::string container);
    Task<Result<json::object>> inspect(std::string container);
    Task<Result<std::vector<ContainerSummary>>> containers(json::object filters);
    Task<> hear_events();
    Result<> take_events(std::string& unfinished, std::string_view piece);
    void tell() const {
        if (changed_) {
            changed_();
        }
    }

    Executor executor_;
    const DockerOptions options_;
    const Clock& clock_;
    DockerApi api_;
    std::map<std::string, Making> making_;  // by name
    Turnstile placing_{{.inside_max = 1, .waiting_max = 1000}};
    int port_before_ = 0;  // that was given out last
    std::function<void()> changed_;
    bool hears_ = false;
    TaskGroup background_;
};

// Of the API, with the name as a part of it.
std::string container_path(const std::string& name, std::string_view rest = {});

}  // namespace comfyd::fleet
