// Node classes of the pack that ComfyUI is tested with, for the engine: nodes that fail, report
// their progress, stop those behind them and add others to the run. Recorded conversations use
// them; the product does not have them.
#pragma once

#include "engine/nodes/registry.hpp"

namespace comfyd::support {

// TestSyncError, TestSyncProgressUpdate, TestExecutionBlocker, TestDynamicAsyncGeneration,
// TestSleep, TestVariadicAverage. Those that take their time there take none here: their reports
// are the same.
void add_test_nodes(engine::Registry& registry);

}  // namespace comfyd::support
