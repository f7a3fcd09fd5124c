// `comfyd run FILE --csv TABLE -o DIR`: runs a workflow once for each row of a table, as one batch,
// shows its progress and fetches the outputs, each named after its row. Cut off and begun again, it
// goes on where it was: a note in DIR says which batch that is.
#pragma once

#include "app/commands/run_command.hpp"

namespace comfyd::app {

int run_table(RunOptions options);  // an Exit code

}  // namespace comfyd::app
