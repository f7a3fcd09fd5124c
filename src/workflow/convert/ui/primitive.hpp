// Primitive nodes: before anything is converted they write their value into the widgets that they
// are linked to, through the limits and steps of those. Pure; any thread.
#pragma once

#include "workflow/convert/ui/graph.hpp"

namespace comfyd::workflow::ui {

void apply_primitives(Document& document);

}  // namespace comfyd::workflow::ui
