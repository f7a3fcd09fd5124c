// What Python's operators do alike with texts and with lists: a text input may get a list, since
// the nodes that prepare captions hand their results on as one.
#pragma once

#include <cstdint>

#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

// len(), [start:stop], +, `in` and ==. TypeError in Python's words where it has one.
Result<std::int64_t> python_length(const Value& value);
Result<Value> python_part(const Value& value, std::int64_t start, std::int64_t stop);
Result<Value> python_sum(const Value& a, const Value& b);
Result<bool> python_contains(const Value& whole, const Value& part);
bool python_equal(const Value& a, const Value& b);

// [value]. Lists share nothing here, so their size and depth have limits.
Result<Value> python_list_of(const Value& value);

}  // namespace comfyd::engine::nodes
