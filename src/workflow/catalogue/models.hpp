// Which model files a workflow needs, of what kind and how large: by what loaders call their
// inputs, by the choices that look like model files, and by embeddings that prompts name. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/graph/graph.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

enum class ModelKind {
    checkpoint,
    unet,
    lora,
    vae,
    clip,
    clip_vision,
    controlnet,
    upscale,
    style,
    gligen,
    hypernetwork,
    ipadapter,
    embedding,
    other,
};
std::string_view to_string(ModelKind kind);

// What the picture is made with; decides the cost of a step.
enum class ModelFamily { none, sd15, sdxl, sd3, flux, video };
std::string_view to_string(ModelFamily family);

struct ModelNeed {
    std::string name;
    ModelKind kind = ModelKind::other;
    std::string node_id;  // the first that needs it
    std::string input;
    std::optional<std::uint64_t> size_bytes;  // where it is known
    std::uint64_t estimated_bytes = 0;        // that, or what files of its kind usually have
    bool is_read = false;                     // the size is that of a file that somebody has read
    ModelFamily family = ModelFamily::none;   // by what is in it; none: nobody has looked
};

// nullopt: not known. `name` as in the workflow.
using ModelSizes =
    std::function<std::optional<std::uint64_t>(ModelKind kind, std::string_view name)>;

// What is known of a file by what is in it.
struct ModelFacts {
    std::optional<std::uint64_t> bytes{};
    ModelFamily family = ModelFamily::none;  // none: not known
};
struct ModelFiles {
    // `name` as in the workflow; empty: nobody has read any.
    std::function<ModelFacts(ModelKind kind, std::string_view name)> find{};
    // Rises whenever more is known; empty: it never is.
    std::function<std::uint64_t()> changes{};
};

// True for inputs in which loaders name a model file.
bool is_model_input(std::string_view input);
// nullopt: the input does not name a model.
std::optional<ModelKind> model_kind(std::string_view class_type, std::string_view input);
// By its extension.
bool is_model_file(std::string_view name);

// Each model once, of the nodes that are `needed` (empty: of all), in the order of the workflow.
// `sizes` count before those of `files`.
std::vector<ModelNeed> find_models(
    const Graph& graph,
    const std::vector<bool>& needed,
    const PromptClasses& classes,
    const ModelSizes& sizes,
    const ModelFiles& files = {}
);
// By what is in the checkpoint and unet files, else by their names, and by the class of latents
// where they do not tell.
ModelFamily find_family(const Graph& graph, const std::vector<ModelNeed>& models);

}  // namespace comfyd::workflow
