// What the routes of named workflows share.
#pragma once

#include <optional>
#include <string>

#include "api/dialects/named/named.hpp"
#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api::named {

Task<> refuse(Call& call, const Services& services, Error error);
Task<> answer(Call& call, net::Response response);
std::string etag_of(const jobs::NamedWorkflow& workflow);
// With its ETag.
net::Response tagged(int status, const json::value& body, const jobs::NamedWorkflow& workflow);
jobs::WorkflowName name_of(const Call& call, const Choice& choice);

// If-Match and If-None-Match: the tag that a change must find; nullopt: any.
Task<Result<std::optional<std::string>>> read_condition(
    const Call& call, const Services& services, jobs::WorkflowName of
);

// ?limit= (1..1000), ?cursor=
struct Paging {
    int limit = 50;
    std::string cursor;
};
Result<Paging> decode_paging(const Call& call);

Task<> list_versions(Call& call, const Services& services);
Task<> get_version(Call& call, const Services& services);
Task<> remove_version(Call& call, const Services& services);
Task<> set_label(Call& call, const Services& services);
Task<> remove_label(Call& call, const Services& services);
Task<> run(Call& call, const Services& services);

}  // namespace comfyd::api::named
