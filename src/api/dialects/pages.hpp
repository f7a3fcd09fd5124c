// The two pages that need nothing but this server: no script or style comes from elsewhere.
#pragma once

#include <string_view>

namespace comfyd::api {

extern const std::string_view kLandingPage;
extern const std::string_view kDocsPage;

}  // namespace comfyd::api
