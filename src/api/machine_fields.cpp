// What a request says of the machine that is to run it.
#include <cmath>

#include "api/submission.hpp"

namespace comfyd::api {
namespace {

constexpr char kGpu[] = "gpu_requirements";
constexpr char kPart[] = "gpu_memory_fraction";

tl::unexpected<Error> wrong(const std::string& field, const std::string& must) {
    return fail(Code::invalid_argument, "'" + field + "' " + must, {{"field", field}});
}

Result<std::string> decode_pool(
    const Call& call, const Services& services, const json::object& from
) {
    auto given = member_or_header(call, from, "pool", "X-Comfyd-Pool");
    if (!given) {
        return fail(std::move(given.error()));
    }
    const auto own = services.rules.tenants->find(call.caller.tenant);
    if (given->empty()) {
        return own ? own->pool : std::string();
    }
    // Of pools that are not for the tenant it learns nothing.
    const bool is_limited = own && !own->pools.empty();
    const std::set<std::string>& known = is_limited ? own->pools : services.options.pools;
    if (known.contains(*given)) {
        return given;
    }
    std::string names;
    for (const std::string& name : known) {
        names += (names.empty() ? "" : ", ") + name;
    }
    return fail(
        Code::invalid_argument,
        "there is no pool '" + (MachineWish::can_name(*given) ? *given : std::string("?")) +
            "'; the pools are " + names,
        {{"field", "pool"}, {"pools", json::array(known.begin(), known.end())}}
    );
}

Result<> check_name(const std::string& field, const std::string& name) {
    if (!MachineWish::can_name(name)) {
        return wrong(field, "may have at most 64 printable ASCII characters");
    }
    return {};
}

// 0: nothing was said.
Result<double> decode_number(
    const json::object& from, const std::string& within, const char* key, double most
) {
    const auto number = json::find_number(from, key);
    const double value = number ? number->value_or(0) : -1;
    if (!(value >= 0 && value <= most)) {
        return wrong(
            within + key, "must be a number from 0 to " + std::to_string(static_cast<int>(most))
        );
    }
    return value;
}

Result<> decode_gpu(const json::object& from, MachineWish& into) {
    const auto wanted = json::find_object(from, kGpu);
    if (!wanted) {
        return fail(wanted.error());
    }
    if (*wanted == nullptr) {
        return {};
    }
    auto kind = json::find_string(**wanted, "gpu_type");
    if (!kind) {
        return wrong("gpu_requirements.gpu_type", "must be a text");
    }
    into.gpu = kind->value_or("");
    if (auto done = check_name("gpu_requirements.gpu_type", into.gpu); !done) {
        return done;
    }
    const auto memory =
        decode_number(**wanted, "gpu_requirements.", "memory_gb", MachineWish::kMemoryMax);
    if (!memory) {
        return fail(memory.error());
    }
    into.memory_gb = *memory;
    return {};
}

}  // namespace

Result<std::string> member_or_header(
    const Call& call, const json::object& from, std::string_view member, std::string_view header
) {
    auto given = json::find_string(from, member);
    if (!given) {
        return fail(std::move(given.error()));
    }
    return *given ? std::move(**given) : std::string(call.request.headers.get(header));
}

Result<MachineWish> decode_machine(
    const Call& call, const Services& services, const json::object& from
) {
    MachineWish machine;
    auto pool = decode_pool(call, services, from);
    if (!pool) {
        return fail(std::move(pool.error()));
    }
    machine.pool = std::move(*pool);
    auto region = member_or_header(call, from, "region", "X-Comfyd-Region");
    if (!region) {
        return fail(std::move(region.error()));
    }
    machine.region = std::move(*region);
    if (auto done = check_name("region", machine.region); !done) {
        return fail(std::move(done.error()));
    }
    if (auto done = decode_gpu(from, machine); !done) {
        return fail(std::move(done.error()));
    }
    const auto part = decode_number(from, "", kPart, 1);
    if (!part) {
        return fail(part.error());
    }
    machine.memory_part = *part;
    return machine;
}

json::object machine_members(const MachineWish& machine) {
    json::object members;
    for (const auto& [name, value] :
         {std::pair("pool", &machine.pool), {"region", &machine.region}}) {
        if (!value->empty()) {
            members[name] = *value;
        }
    }
    json::object gpu;
    if (!machine.gpu.empty()) {
        gpu["gpu_type"] = machine.gpu;
    }
    if (machine.memory_gb > 0) {
        gpu["memory_gb"] = machine.memory_gb;
    }
    if (!gpu.empty()) {
        members[kGpu] = std::move(gpu);
    }
    if (machine.memory_part > 0) {
        members[kPart] = machine.memory_part;
    }
    return members;
}

}  // namespace comfyd::api
