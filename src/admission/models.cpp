#include "admission/models.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "admission/judge.hpp"
#include "base/text.hpp"
#include "models/source.hpp"
#include "models/wish.hpp"
#include "workflow/files/address_names.hpp"

namespace comfyd::admission {
namespace {

std::string text_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

// Where a workflow itself says that a model is had from.
struct Told {
    std::string url;
    std::string folder;
    std::string sha256{};
};
using ToldModels = std::map<std::string, Told, std::less<>>;  // by name

void add_told(ToldModels& told, const json::array& models) {
    for (const json::value& one : models) {
        if (const json::object* model = one.if_object()) {
            const bool is_sha256 = lower(text_of(*model, "hash_type")) == "sha256";
            told.try_emplace(
                text_of(*model, "name"),
                Told{
                    text_of(*model, "url"),
                    text_of(*model, "directory"),
                    is_sha256 ? lower(text_of(*model, "hash")) : ""
                }
            );
        }
    }
}

ToldModels told_in(const json::object* given) {
    ToldModels told;
    const json::value* nodes = given == nullptr ? nullptr : json::find(*given, "nodes");
    if (nodes == nullptr || !nodes->is_array()) {
        return told;
    }
    for (const json::value& node : nodes->get_array()) {
        const json::object* members = node.if_object();
        const json::value* properties =
            members == nullptr ? nullptr : json::find(*members, "properties");
        const json::value* models = properties == nullptr || !properties->is_object()
                                        ? nullptr
                                        : json::find(properties->get_object(), "models");
        if (models != nullptr && models->is_array()) {
            add_told(told, models->get_array());
        }
    }
    return told;
}

std::string host_of(const models::Source& source) {
    switch (source.kind) {
        case models::Source::Kind::hugging_face:
            return "huggingface.co";
        case models::Source::Kind::civitai:
            return "civitai.com";
        case models::Source::Kind::url:
        case models::Source::Kind::bucket:
        case models::Source::Kind::upload:
            break;
    }
    const auto url = net::Url::parse(source.url);
    return url ? lower(url->host_header()) : "";
}

// The last part of a path, without what a name may not have.
std::string base_name(const models::Source& source) {
    if (source.kind == models::Source::Kind::civitai) {
        return source.version + ".safetensors";
    }
    const std::string& path =
        source.kind == models::Source::Kind::hugging_face ? source.path : source.url;
    const std::string shown = models::shown_source(path);
    const auto decoded = net::percent_decode(shown.substr(shown.rfind('/') + 1));
    return decoded ? *decoded : "";
}

class Finder {
public:
    Finder(
        const ModelRules& rules,
        const std::string& tenant,
        const json::object* given,
        const workflow::Catalogue& catalogue
    )
        : rules_(rules),
          tenant_(tenant),
          catalogue_(catalogue),
          registered_(rules.registered ? rules.registered() : nullptr) {
        if (rules.takes_properties) {
            told_ = told_in(given);
        }
    }

    WantedModels find(const json::object& graph) {
        const bool has_any = (registered_ && !registered_->empty()) || rules_.list ||
                             rules_.takes_addresses || rules_.takes_properties;
        if (!has_any) {
            return {};
        }
        found_.uses = workflow::find_model_uses(graph, catalogue_);
        std::vector<bool> is_known(found_.uses.size());
        for (std::size_t i = 0; i < found_.uses.size(); ++i) {
            auto wanted = look_up(found_.uses[i]);
            const bool is_own = !wanted && is_own_address(found_.uses[i].value);
            is_known[i] = wanted.has_value() || is_own || found_.uses[i].is_offered;
            if (is_own) {
                need(found_.uses[i], found_.uses[i].value);
            }
            if (wanted) {
                add(i, std::move(*wanted));
            }
        }
        // A class that chooses another file that nobody has is refused in ComfyUI's own words.
        std::erase_if(found_.coming, [&](const workflow::MissingFile& file) {
            for (std::size_t i = 0; i < found_.uses.size(); ++i) {
                const workflow::ModelUse& use = found_.uses[i];
                if (!is_known[i] && use.class_type == file.class_type && use.input == file.input) {
                    return true;
                }
            }
            return false;
        });
        return std::move(found_);
    }

private:
    std::optional<models::WantedModel> look_up(const workflow::ModelUse& use) const {
        const auto folders = workflow::model_folders(use.kind);
        if (registered_) {
            if (auto known = registered_->resolve(folders, use.value)) {
                return known;
            }
        }
        if (use.is_offered) {
            return std::nullopt;
        }
        if (rules_.takes_addresses) {
            if (auto made = of_stranger(use.value, folders, "")) {
                return made;
            }
        }
        if (const auto told = told_.find(use.value); told != told_.end()) {
            const std::string_view folder = told->second.folder;
            const bool fits = folders.empty() || std::ranges::count(folders, folder) > 0;
            if (fits) {
                return of_stranger(told->second.url, {&folder, 1}, told->second.sha256);
            }
        }
        return rules_.list ? rules_.list->resolve(folders, use.value) : std::nullopt;
    }

    // Under a name that says where it is from: nobody can so put another file in the place of one
    // that others mean.
    std::optional<models::WantedModel> of_stranger(
        const std::string& address,
        std::span<const std::string_view> folders,
        const std::string& sha256
    ) const {
        const auto source = models::parse_source(address);
        const bool may =
            source && !source->needs_link() && !folders.empty() &&
            (rules_.hosts.empty() || std::ranges::count(rules_.hosts, host_of(*source)) > 0);
        if (!may) {
            return std::nullopt;
        }
        json::object wish{
            {"folder", folders.front()},
            {"name",
             workflow::address_folder(tenant_, address + "\n" + sha256) + "/" + base_name(*source)},
            {"source", address},
        };
        if (!sha256.empty()) {
            wish["sha256"] = sha256;
        }
        const auto read = models::read_wish(wish);
        if (!read || models::is_pickle(read->name)) {
            return std::nullopt;
        }
        return models::WantedModel{read->folder, read->name, {address}, read->sha256, {}};
    }

    void add(std::size_t at, models::WantedModel wanted) {
        const workflow::ModelUse& use = found_.uses[at];
        if (!Requirement::can_name(wanted.name)) {
            return;
        }
        if (wanted.name != use.value) {
            found_.changes.push_back({at, wanted.name});
        }
        need(use, wanted.name);
        if (std::ranges::find(found_.models, wanted) == found_.models.end()) {
            found_.models.push_back(std::move(wanted));
        }
    }

    void need(const workflow::ModelUse& use, const std::string& name) {
        if (name != use.value ? !is_offered(use, name) : !use.is_offered) {
            found_.coming.push_back(
                {.node_id = use.node_id,
                 .class_type = use.class_type,
                 .input = use.input,
                 .value = json::value(name),
                 .is_coming = true}
            );
        }
        found_.needs.insert({use.class_type, use.input, name});
    }

    // As it stands in workflows of earlier jobs and in their pictures.
    bool is_own_address(const std::string& name) const {
        return (rules_.takes_addresses || rules_.takes_properties) &&
               workflow::is_address_name_of(name, tenant_) && Requirement::can_name(name);
    }

    bool is_offered(const workflow::ModelUse& use, const std::string& value) const {
        const workflow::NodeDefinition* definition = catalogue_.find(use.class_type);
        const workflow::InputDefinition* input =
            definition == nullptr ? nullptr
                                  : definition->find_input(use.input, {{use.input, value}});
        return input != nullptr && input->offers(json::value(value));
    }

    const ModelRules& rules_;
    const std::string& tenant_;
    const workflow::Catalogue& catalogue_;
    std::shared_ptr<const models::Register> registered_;
    ToldModels told_;
    WantedModels found_;
};

// Some worker can run it as soon as its agent has brought what is wanted.
bool can_be_prepared(
    const workflow::Catalogue& catalogue,
    const Requirement& requirement,
    const std::set<Requirement::Need>& wanted
) {
    return std::ranges::any_of(catalogue.workers(), [&](const auto& worker) {
        const bool fits = worker.fetches_models &&
                          !(worker.is_memory && requirement.is_particular()) &&
                          requirement.allows(worker.facts());
        return fits && requirement.each([&](std::string_view type,
                                            std::string_view input,
                                            std::string_view value) {
            return worker.classes->has(type, input, value) ||
                   (worker.classes->find(type) != nullptr &&
                    wanted.contains({std::string(type), std::string(input), std::string(value)}));
        });
    });
}

}  // namespace

void WantedModels::apply(json::object& graph) const {
    for (const Change& change : changes) {
        const workflow::ModelUse& use = uses[change.use];
        graph.at(use.node_id).as_object().at("inputs").as_object()[use.input] = change.value;
    }
}

WantedModels find_wanted_models(
    const ModelRules& rules,
    const std::string& tenant,
    const json::object& graph,
    const json::object* given,
    const workflow::Catalogue& catalogue
) {
    return Finder(rules, tenant, given, catalogue).find(graph);
}

Decision<Requirement> judge_need(
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    const MachineWish& machine,
    const WantedModels& wanted
) {
    if (wanted.needs.empty()) {
        return judge_need(graph, catalogue, machine);
    }
    std::set<Requirement::Need> needs = wanted.needs;
    catalogue.requirement_of(graph).each(
        [&needs](std::string_view type, std::string_view input, std::string_view value) {
            needs.insert({std::string(type), std::string(input), std::string(value)});
            return true;
        }
    );
    const Requirement requirement = Requirement::of(needs).on(machine);
    auto lack = workflow::find_lack(catalogue, requirement);
    if (!lack || can_be_prepared(catalogue, requirement, wanted.needs)) {
        return requirement;
    }
    Refusal refusal;
    refusal.error = lack->to_error();
    refusal.why = Refusal::Why::no_worker;
    refusal.lack = std::move(lack);
    return tl::unexpected(std::move(refusal));
}

}  // namespace comfyd::admission
