// The node classes about texts: strings, regular expressions, JSON.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass string_concatenate();
NodeClass string_substring();
NodeClass string_length();
NodeClass case_converter();
NodeClass string_trim();
NodeClass string_replace();
NodeClass string_contains();
NodeClass string_compare();

NodeClass regex_match();
NodeClass regex_extract();
NodeClass regex_replace();

NodeClass string_format();

NodeClass json_extract_string();
NodeClass convert_array_to_string();
NodeClass convert_dictionary_to_string();
NodeClass build_json_prompt_ideogram();

NodeClass text_to_lowercase();
NodeClass text_to_uppercase();
NodeClass truncate_text();
NodeClass add_text_prefix();
NodeClass add_text_suffix();
NodeClass replace_text();
NodeClass strip_whitespace();
NodeClass merge_text_lists();

NodeClass preview_any();

}  // namespace comfyd::engine::nodes
