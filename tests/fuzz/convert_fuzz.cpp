// A file that somebody says holds a workflow, from bytes to a prompt, over the classes of a real
// server. Whatever comes in, the answer is a prompt whose links lead somewhere, or an error.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/convert/convert.hpp"
#include "workflow/files/embedded.hpp"
#include "workflow/rules/check.hpp"

namespace {

using namespace comfyd;

const workflow::Catalogue& catalogue() {
    static const auto loaded = [] {
        std::ifstream file(
            COMFYD_TEST_DATA "/ui-workflows/object_info.facts.json", std::ios::binary
        );
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        auto classes = workflow::NodeClasses::from_object_info(json::parse(text).value());
        return workflow::Catalogue({{"worker", classes.value()}});
    }();
    return loaded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto read = workflow::read_workflow_file({reinterpret_cast<const char*>(data), size});
    if (!read || !workflow::is_ui_format(*read)) {
        return 0;
    }
    const auto prompt = workflow::convert_ui(*read, catalogue());
    if (!prompt) {
        if (prompt.error().code != Code::invalid_workflow) {
            std::abort();
        }
        return 0;
    }
    for (const auto& node : *prompt) {
        for (const auto& input : node.value().at("inputs").as_object()) {
            const json::array* link = input.value().if_array();
            if (link != nullptr && !prompt->contains(link->at(0).as_string())) {
                std::abort();
            }
        }
    }
    return 0;
}
