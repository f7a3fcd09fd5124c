#include "workflow/catalogue/catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "base/crypto.hpp"
#include "base/gpu_name.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "workflow/catalogue/definition_pool.hpp"
#include "workflow/catalogue/node_replacement.hpp"
#include "workflow/catalogue/object_info_union.hpp"
#include "workflow/files/address_names.hpp"
#include "workflow/files/private_names.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kClassesMax = 50'000;

bool offers(const NodeDefinition& definition, std::string_view input, std::string_view value) {
    const json::value choice(boost::json::string_view(value.data(), value.size()));
    return std::ranges::any_of(definition.all_inputs(), [&](const InputDefinition* candidate) {
        return candidate->name == input && candidate->offers(choice);
    });
}

}  // namespace

Result<std::shared_ptr<const NodeClasses>> NodeClasses::from_object_info(
    const json::value& object_info, ClassNotes notes
) {
    if (!object_info.is_object()) {
        return fail(Code::protocol_error, "/object_info is not a JSON object");
    }
    auto classes = std::make_shared<NodeClasses>();
    classes->notes_ = std::move(notes);
    for (const auto& entry : object_info.get_object()) {
        if (!entry.value().is_object() || !Requirement::can_name(view(entry.key())) ||
            classes->classes_.size() == kClassesMax) {
            continue;
        }
        const json::object& info = entry.value().get_object();
        const auto plain = without_private_choices(info);
        const json::object& own = plain ? *plain : info;
        const auto shown = without_address_choices(own);
        auto definition = shared_definition(view(entry.key()), shown ? *shown : own);
        if (definition) {
            if (auto whole = shared_definition(view(entry.key()), own); shown && whole) {
                classes->whole_.emplace(view(entry.key()), std::move(*whole));
            }
            classes->index_.emplace((*definition)->name(), definition->get());
            classes->classes_.push_back(std::move(*definition));
        }
    }
    return classes;
}

const NodeDefinition* NodeClasses::find(std::string_view class_type) const {
    const auto found = index_.find(class_type);
    return found == index_.end() ? nullptr : found->second;
}

bool NodeClasses::has(std::string_view class_type, std::string_view input, std::string_view value)
    const {
    const NodeDefinition* definition = find(class_type);
    if (definition == nullptr || input.empty() || offers(*definition, input, value)) {
        return definition != nullptr;
    }
    const auto whole = is_address_name(value) ? whole_.find(std::string(class_type)) : whole_.end();
    return whole != whole_.end() && offers(*whole->second, input, value);
}

bool NodeClasses::has_all(const Requirement& requirement) const {
    return requirement.each(
        [this](std::string_view class_type, std::string_view input, std::string_view value) {
            return has(class_type, input, value);
        }
    );
}

// What the workers are together, made once.
struct Catalogue::Together {
    std::vector<std::shared_ptr<const NodeClasses>> sources;  // each once

    std::once_flag merged_once;
    std::vector<MergedClass> classes;
    std::unordered_map<std::string_view, const MergedClass*> index;
    json::object replacements;
    std::once_flag written_once;
    std::shared_ptr<const ObjectInfo> document;

    void merge() {
        std::call_once(merged_once, [this] {
            classes = merge_classes(sources);
            index.reserve(classes.size());
            for (const MergedClass& merged : classes) {
                index.emplace(merged.definition->name(), &merged);
            }
            for (const auto& source : sources) {
                join_replacements(replacements, source->notes().replacements);
            }
        });
    }

    const MergedClass* find(std::string_view class_type) {
        merge();
        const auto found = index.find(class_type);
        return found == index.end() ? nullptr : found->second;
    }

    const std::shared_ptr<const ObjectInfo>& write() {
        merge();
        std::call_once(written_once, [this] {
            auto made = std::make_shared<ObjectInfo>();
            made->text = "{";
            for (const MergedClass& merged : classes) {
                made->text += made->text.size() > 1 ? "," : "";
                made->text += json::serialize(json::value(merged.definition->name()));
                made->text += ':';
                made->text += json::serialize(merged.definition->info());
            }
            made->text += '}';
            made->etag = to_hex(sha256(made->text)).substr(0, 32);
            document = std::move(made);
        });
        return document;
    }

    // The one that is alive for these sources, or a new one.
    static std::shared_ptr<Together> of(std::vector<std::shared_ptr<const NodeClasses>> sources) {
        static Mutex mutex;
        static std::vector<std::weak_ptr<Together>> known COMFYD_GUARDED_BY(mutex);
        const Lock lock(mutex);
        std::erase_if(known, [](const auto& one) { return one.expired(); });
        for (const auto& candidate : known) {
            auto alive = candidate.lock();
            if (alive != nullptr && alive->sources == sources) {
                return alive;
            }
        }
        auto made = std::make_shared<Together>();
        made->sources = std::move(sources);
        known.push_back(made);
        return made;
    }
};

Catalogue::Catalogue(std::vector<Entry> workers, std::vector<Prospect> prospects)
    : workers_(std::move(workers)), prospects_(std::move(prospects)) {
    std::vector<std::shared_ptr<const NodeClasses>> sources;
    std::set<const NodeClasses*> seen;
    for (const Entry& worker : workers_) {
        if (seen.insert(worker.classes.get()).second) {
            sources.push_back(worker.classes);
        }
    }
    together_ = Together::of(std::move(sources));
}

const NodeDefinition* Catalogue::find(std::string_view class_type) const {
    const MergedClass* found = together_->find(class_type);
    return found == nullptr ? nullptr : found->definition.get();
}

// Of the first worker that has the class and tells; nullptr: none does.
const ClassNotes* Catalogue::notes_of(std::string_view class_type) const {
    const auto found = std::ranges::find_if(together_->sources, [&](const auto& classes) {
        return classes->notes().told && classes->find(class_type) != nullptr;
    });
    return found == together_->sources.end() ? nullptr : &(*found)->notes();
}

const OwnCheck* Catalogue::own_check(const NodeDefinition& definition) const {
    const ClassNotes* notes = notes_of(definition.name());
    if (notes == nullptr) {
        return nullptr;
    }
    const auto found = notes->own_checks.find(definition.name());
    return found == notes->own_checks.end() ? nullptr : &found->second;
}

bool Catalogue::tells_own_checks(const NodeDefinition& definition) const {
    return notes_of(definition.name()) != nullptr;
}

bool Catalogue::needs_worker_to_judge(const json::object& workflow) const {
    return std::ranges::any_of(workflow, [&](const auto& entry) {
        const json::object* node = entry.value().if_object();
        const json::value* type = node != nullptr ? json::find(*node, "class_type") : nullptr;
        const NodeDefinition* definition =
            type != nullptr && type->is_string() ? find(view(type->get_string())) : nullptr;
        const OwnCheck* check = definition != nullptr ? own_check(*definition) : nullptr;
        if (check == nullptr || check->all_inputs || check->link_types) {
            return check != nullptr;
        }
        return std::ranges::any_of(definition->all_inputs(), [&](const InputDefinition* input) {
            return !input->takes_upload() && std::ranges::count(check->inputs, input->name) > 0;
        });
    });
}

const json::object& Catalogue::replacements() const {
    together_->merge();
    return together_->replacements;
}

std::shared_ptr<const ObjectInfo> Catalogue::object_info() const {
    return together_->write();
}

std::string Catalogue::object_info(std::string_view class_type) const {
    json::object document;
    if (const NodeDefinition* definition = find(class_type)) {
        document[definition->name()] = definition->info();
    }
    return json::serialize(document);
}

Requirement Catalogue::requirement_of(const json::object& workflow) const {
    std::set<Requirement::Need> needs;
    for (const auto& entry : workflow) {
        const json::object* node = entry.value().if_object();
        const json::value* type = node != nullptr ? json::find(*node, "class_type") : nullptr;
        if (type == nullptr || !type->is_string()) {
            continue;
        }
        const std::string class_type(view(type->get_string()));
        if (!Requirement::can_name(class_type)) {
            continue;
        }
        needs.insert({class_type});
        const MergedClass* merged = together_->find(class_type);
        const json::value* inputs = json::find(*node, "inputs");
        if (merged == nullptr || inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (const std::string& input : merged->differing_inputs) {
            const json::value* value = inputs->get_object().if_contains(input);
            const std::string_view text =
                value != nullptr && value->is_string() ? view(value->get_string()) : "";
            if (!Requirement::can_name(text)) {
                continue;
            }
            const auto has = [&](const auto& variant) { return offers(*variant, input, text); };
            if (std::ranges::any_of(merged->variants, has) &&
                !std::ranges::all_of(merged->variants, has)) {
                needs.insert({class_type, input, std::string(text)});
            }
        }
    }
    return Requirement::of(needs);
}

// Those whose memory nobody knows may have enough.
bool Catalogue::Prospect::allows(const Requirement& requirement) const {
    const MachineWish wish = requirement.machine();
    const std::string& kind = gpu.empty() ? wish.gpu : gpu;
    const int gigabytes = usual_gpu_memory_gb(kind);
    const std::string& where = region.empty() && !is_here ? wish.region : region;
    return requirement.allows(
        {pool,
         kind,
         where,
         gigabytes == 0 ? std::numeric_limits<std::uint64_t>::max() : least_gpu_memory(gigabytes)}
    );
}

// What its machines can run is not known where the pool never had one: then some worker must be
// able to, whatever its machine is.
bool Catalogue::may_run(const Prospect& prospect, const Requirement& requirement) const {
    const bool is_known = has_pool(prospect.pool);
    return prospect.allows(requirement) && std::ranges::any_of(workers_, [&](const Entry& worker) {
               return (!is_known || worker.pool == prospect.pool) &&
                      worker.classes->has_all(requirement);
           });
}

bool Catalogue::can_run(const Requirement& requirement) const {
    const bool is_particular = requirement.is_particular();
    if (!requirement.pool().empty() || is_particular) {
        return std::ranges::any_of(
                   workers_,
                   [&](const Entry& worker) {
                       return !(is_particular && worker.is_memory) &&
                              requirement.allows(worker.facts()) &&
                              worker.classes->has_all(requirement);
                   }
               ) ||
               (is_particular && std::ranges::any_of(prospects_, [&](const Prospect& prospect) {
                    return may_run(prospect, requirement);
                }));
    }
    return std::ranges::any_of(together_->sources, [&](const auto& classes) {
        return classes->has_all(requirement);
    });
}

std::vector<std::string> Catalogue::pools_for(const Requirement& requirement) const {
    const Requirement anywhere = requirement.in_pool("");
    const bool is_particular = anywhere.is_particular();
    std::set<std::string> pools;
    for (const Entry& worker : workers_) {
        const bool is_asked = pools.contains(worker.pool) || (is_particular && worker.is_memory);
        if (!is_asked && anywhere.allows(worker.facts()) && worker.classes->has_all(requirement)) {
            pools.insert(worker.pool);
        }
    }
    for (const Prospect& prospect : prospects_) {
        if (is_particular && may_run(prospect, anywhere)) {
            pools.insert(prospect.pool);
        }
    }
    return {pools.begin(), pools.end()};
}

bool Catalogue::has_pool(std::string_view pool) const {
    return std::ranges::any_of(workers_, [&](const Entry& worker) { return worker.pool == pool; });
}

std::optional<Catalogue::Nearest> Catalogue::nearest(const Requirement& requirement) const {
    std::optional<Nearest> best;
    for (const Entry& worker : workers_) {
        if (!requirement.allows_pool(worker.pool)) {
            continue;
        }
        Nearest candidate{worker.worker, {}, {}, {}};
        if (!worker.is_memory) {
            candidate.missing = requirement.missing_of(worker.facts());
        }
        requirement.each([&](std::string_view type, std::string_view input, std::string_view value
                         ) {
            if (worker.classes->has(type, input, value)) {
                return true;
            }
            if (input.empty()) {
                candidate.missing.emplace_back(type);
                candidate.missing_classes.emplace_back(type);
                return true;
            }
            candidate.missing.push_back(
                "'" + std::string(value) + "' for " + std::string(type) + "." + std::string(input)
            );
            candidate.missing_files.emplace_back(json::object{
                {"class_type", std::string(type)},
                {"input", std::string(input)},
                {"value", std::string(value)}
            });
            return true;
        });
        if (!best || candidate.missing.size() < best->missing.size()) {
            best = std::move(candidate);
        }
    }
    return best;
}

json::array Catalogue::machines(const Requirement& requirement) const {
    constexpr double kTenth = 1024.0 * 1024 * 1024 / 10;
    json::array told;
    const auto tell = [&](const json::object& machine) {
        const bool is_new = std::ranges::find(told, json::value(machine)) == told.end();
        if (is_new && told.size() < kMachinesTold) {
            told.emplace_back(machine);
        }
    };
    for (const Entry& worker : workers_) {
        if (!worker.is_memory && requirement.allows_pool(worker.pool)) {
            const double tenths = static_cast<double>(worker.gpu_memory_bytes) / kTenth;
            tell(
                {{"pool", worker.pool},
                 {"gpu_type", worker.gpu},
                 {"memory_gb", std::round(tenths) / 10},
                 {"region", worker.region},
                 {"is_offer", false}}
            );
        }
    }
    for (const Prospect& prospect : prospects_) {
        if (requirement.allows_pool(prospect.pool)) {
            tell(
                {{"pool", prospect.pool},
                 {"gpu_type", prospect.gpu},
                 {"memory_gb", usual_gpu_memory_gb(prospect.gpu)},
                 {"region", prospect.region},
                 {"is_offer", true}}
            );
        }
    }
    return told;
}

}  // namespace comfyd::workflow
