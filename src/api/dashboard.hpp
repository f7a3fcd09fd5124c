// The dashboard's page and its files, which are part of the program: web/ is bundled and embedded
// at build time. They say nothing of anybody, so they need no key; what the page shows it asks of
// the API, as whoever looks at it.
#pragma once

#include <span>
#include <string_view>

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {

struct DashboardFile {
    std::string_view name;  // has the hash in it, but for the page
    std::string_view content_type;
    std::string_view hash;
    std::string_view bytes;
};
// The page is the last. Made by web/embed.cmake.
extern const std::span<const DashboardFile> kDashboardFiles;

// /ui/… is the page, whatever follows: what to show is for its scripts to tell by the address.
void add_dashboard(Router& router, const ApiOptions& options);

}  // namespace comfyd::api
