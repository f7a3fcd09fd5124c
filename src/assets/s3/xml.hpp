// The answers of S3 services are small, flat XML: a scan for tags reads them. It makes no tree,
// resolves no entities but the five and numbers, and knows no DTD, so a hostile answer can ask for
// nothing. Pure functions; what they return views into `xml`, but for texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::assets::s3 {

// The content of the first element with this name, at any depth, prefixes of names ignored;
// nullopt: there is none that is also closed.
std::optional<std::string_view> find_element(std::string_view xml, std::string_view name);
// Of all that do not lie in one another, in order; at most `count_max`.
std::vector<std::string_view> find_elements(
    std::string_view xml, std::string_view name, std::size_t count_max
);
// The content of the first such element as text; empty when there is none.
std::string find_text(std::string_view xml, std::string_view name);

// "a&lt;b" for "a<b".
std::string escape_xml(std::string_view text);

}  // namespace comfyd::assets::s3
