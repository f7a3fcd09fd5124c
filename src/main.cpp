#include "app/commands/cli.hpp"

int main(int argc, char** argv) {
    return comfyd::app::run_command_line(argc, argv);
}
