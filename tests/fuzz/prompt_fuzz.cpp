// The body of POST /prompt, from bytes to verdict, over the classes of a real server. Whatever
// comes in, the answer is a verdict in ComfyUI's form.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/prompt_request.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace {

using namespace comfyd;

const workflow::Catalogue& catalogue() {
    static const auto loaded = [] {
        std::ifstream file(COMFYD_TEST_DATA "/comfyui/object_info.facts.json", std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        auto classes = workflow::NodeClasses::from_object_info(json::parse(text).value());
        return workflow::Catalogue({{"worker", classes.value()}});
    }();
    return loaded;
}

// Recorded cases hold the body beside the answer.
json::value body_of(json::value given) {
    if (const json::object* recorded = given.if_object()) {
        if (const json::value* request = recorded->if_contains("request");
            request != nullptr && request->is_object()) {
            if (const json::value* body = request->get_object().if_contains("body")) {
                return *body;
            }
        }
    }
    return given;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto body = workflow::read_prompt_body({reinterpret_cast<const char*>(data), size});
    if (!body) {
        return body.error().contains("type") ? 0 : (std::abort(), 0);
    }
    auto request = workflow::parse_prompt_request(body_of(std::move(*body)));
    if (!request) {
        return request.error().contains("type") ? 0 : (std::abort(), 0);
    }
    workflow::PromptOptions options;
    options.targets = request->targets ? &*request->targets : nullptr;
    const auto verdict = workflow::judge_prompt(request->prompt, catalogue(), options);
    if (verdict.accepted == verdict.outputs_to_execute.empty()) {
        std::abort();
    }
    if (verdict.accepted) {
        // What was accepted can be sent on.
        if (!json::parse(json::serialize(request->prompt))) {
            std::abort();
        }
    }
    return 0;
}
