#include "engine/nodes/text/text.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_text(Registry& registry) {
    registry.add(string_concatenate());
    registry.add(string_substring());
    registry.add(string_length());
    registry.add(case_converter());
    registry.add(string_trim());
    registry.add(string_replace());
    registry.add(string_contains());
    registry.add(string_compare());
    registry.add(regex_match());
    registry.add(regex_extract());
    registry.add(regex_replace());
    registry.add(string_format());
    registry.add(json_extract_string());
    registry.add(convert_array_to_string());
    registry.add(convert_dictionary_to_string());
    registry.add(build_json_prompt_ideogram());
    registry.add(text_to_lowercase());
    registry.add(text_to_uppercase());
    registry.add(truncate_text());
    registry.add(add_text_prefix());
    registry.add(add_text_suffix());
    registry.add(replace_text());
    registry.add(strip_whitespace());
    registry.add(merge_text_lists());
    registry.add(preview_any());
}

}  // namespace comfyd::engine::nodes
