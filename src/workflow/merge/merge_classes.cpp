#include "workflow/merge/merge_classes.hpp"

#include <algorithm>

namespace comfyd::workflow {
namespace {

using Kind = MergeKind;
using Count = MergeCount;

// clang-format off
constexpr std::array kClasses{
    // Models and what is done to them alike for every sample.
    MergeClass{"CheckpointLoader"}, MergeClass{"CheckpointLoaderSimple"}, MergeClass{"UNETLoader"},
    MergeClass{"LoraLoader"}, MergeClass{"LoraLoaderModelOnly"}, MergeClass{"LoraLoaderBypass"},
    MergeClass{"LoraLoaderBypassModelOnly"}, MergeClass{"CLIPLoader"}, MergeClass{"DualCLIPLoader"},
    MergeClass{"TripleCLIPLoader"}, MergeClass{"CLIPSetLastLayer"}, MergeClass{"VAELoader"},
    MergeClass{"UpscaleModelLoader"}, MergeClass{"ModelSamplingDiscrete"},
    MergeClass{"ModelSamplingContinuousEDM"}, MergeClass{"ModelSamplingContinuousV"},
    MergeClass{"ModelSamplingSD3"}, MergeClass{"ModelSamplingAuraFlow"},
    MergeClass{"ModelSamplingFlux"}, MergeClass{"RescaleCFG"}, MergeClass{"FreeU"},
    MergeClass{"FreeU_V2"}, MergeClass{"ModelMergeSimple"}, MergeClass{"CLIPMergeSimple"},
    // Texts.
    MergeClass{"CLIPTextEncode"}, MergeClass{"CLIPTextEncodeSDXL"},
    MergeClass{"CLIPTextEncodeSDXLRefiner"}, MergeClass{"CLIPTextEncodeSD3"},
    MergeClass{"CLIPTextEncodeFlux"}, MergeClass{"FluxGuidance"},
    MergeClass{"FluxDisableGuidance"}, MergeClass{"ConditioningZeroOut"},
    MergeClass{"ConditioningConcat"}, MergeClass{"ConditioningAverage"},
    // Schedules and sampling methods.
    MergeClass{"BasicScheduler"}, MergeClass{"KarrasScheduler"}, MergeClass{"ExponentialScheduler"},
    MergeClass{"PolyexponentialScheduler"}, MergeClass{"LaplaceScheduler"},
    MergeClass{"VPScheduler"}, MergeClass{"BetaSamplingScheduler"}, MergeClass{"SDTurboScheduler"},
    MergeClass{"AlignYourStepsScheduler"}, MergeClass{"GITSScheduler"},
    MergeClass{"OptimalStepsScheduler"}, MergeClass{"Flux2Scheduler"}, MergeClass{"ManualSigmas"},
    MergeClass{"SplitSigmas"}, MergeClass{"SplitSigmasDenoise"}, MergeClass{"FlipSigmas"},
    MergeClass{"KSamplerSelect"}, MergeClass{"SamplerEulerAncestral"},
    MergeClass{"SamplerEulerAncestralCFGPP"}, MergeClass{"SamplerLMS"},
    MergeClass{"SamplerDPMPP_3M_SDE"}, MergeClass{"SamplerDPMPP_2M_SDE"},
    MergeClass{"SamplerDPMPP_SDE"}, MergeClass{"SamplerDPMPP_2S_Ancestral"},
    MergeClass{"SamplerER_SDE"},
    // Latents and pictures to begin with.
    MergeClass{"EmptyLatentImage", Kind::shared, Count::value, "batch_size"},
    MergeClass{"EmptySD3LatentImage", Kind::shared, Count::value, "batch_size"},
    MergeClass{"EmptyImage", Kind::shared, Count::value, "batch_size"},
    MergeClass{"LoadImage", Kind::shared, Count::one},
    MergeClass{"VAEEncode", Kind::shared, Count::same, "pixels"},
    MergeClass{"VAEEncodeTiled", Kind::shared, Count::same, "pixels"},
    MergeClass{"RepeatLatentBatch", Kind::shared, Count::repeat, "samples"},
    MergeClass{"RepeatImageBatch", Kind::shared, Count::repeat, "image"},
    MergeClass{"ImageScale", Kind::shared, Count::same, "image"},
    MergeClass{"ImageScaleBy", Kind::shared, Count::same, "image"},
    MergeClass{"ImageScaleToTotalPixels", Kind::shared, Count::same, "image"},
    MergeClass{"ImageScaleToMaxDimension", Kind::shared, Count::same, "image"},
    MergeClass{"ImageUpscaleWithModel", Kind::shared, Count::same, "image"},
    MergeClass{"ImageInvert", Kind::shared, Count::same, "image"},
    MergeClass{"ImageFlip", Kind::shared, Count::same, "image"},
    MergeClass{"ImageCrop", Kind::shared, Count::same, "image"},
    // What costs GPU time and works on each sample alone.
    MergeClass{"VAEDecode", Kind::per_sample, Count::same, "samples"},
    MergeClass{"VAEDecodeTiled", Kind::per_sample, Count::same, "samples"},
    MergeClass{"LatentUpscale", Kind::per_sample, Count::same, "samples"},
    MergeClass{"LatentUpscaleBy", Kind::per_sample, Count::same, "samples"},
    // Sampling.
    MergeClass{"RandomNoise", Kind::noise, Count::none, "", "noise_seed"},
    MergeClass{"BasicGuider", Kind::guider, Count::none, "", "", {"conditioning", "", ""}},
    MergeClass{"CFGGuider", Kind::guider, Count::none, "", "", {"positive", "negative", ""}},
    MergeClass{"DualCFGGuider", Kind::guider, Count::none, "", "", {"cond1", "cond2", "negative"}},
    MergeClass{"KSampler", Kind::sampler, Count::none, "", "seed", {"positive", "negative", ""}},
    MergeClass{"KSamplerAdvanced", Kind::sampler, Count::none, "", "noise_seed",
               {"positive", "negative", ""}},
    MergeClass{"SamplerCustom", Kind::sampler, Count::none, "", "noise_seed",
               {"positive", "negative", ""}},
    MergeClass{"SamplerCustomAdvanced", Kind::sampler},
    // What leaves the worker.
    MergeClass{"SaveImage", Kind::saver, Count::same, "images"},
    MergeClass{"PreviewImage", Kind::saver, Count::same, "images"},
    MergeClass{"SaveImageWebsocket", Kind::refused},
};

// Left out: dpm_adaptive, the length of whose steps depends on the whole batch, and ddim, which draws
// noise of its own.
constexpr auto kSamplers = std::to_array<std::string_view>({
    "euler", "euler_cfg_pp", "euler_ancestral", "euler_ancestral_cfg_pp", "heun", "heunpp2",
    "exp_heun_2_x0", "exp_heun_2_x0_sde", "dpm_2", "dpm_2_ancestral", "lms", "dpm_fast",
    "dpmpp_2s_ancestral", "dpmpp_2s_ancestral_cfg_pp", "dpmpp_sde", "dpmpp_sde_gpu", "dpmpp_2m",
    "dpmpp_2m_cfg_pp", "dpmpp_2m_sde", "dpmpp_2m_sde_gpu", "dpmpp_2m_sde_heun",
    "dpmpp_2m_sde_heun_gpu", "dpmpp_3m_sde", "dpmpp_3m_sde_gpu", "ddpm", "lcm", "ipndm", "ipndm_v",
    "deis", "res_multistep", "res_multistep_cfg_pp", "res_multistep_ancestral",
    "res_multistep_ancestral_cfg_pp", "gradient_estimation", "gradient_estimation_cfg_pp",
    "er_sde", "seeds_2", "seeds_3", "sa_solver", "sa_solver_pece", "uni_pc", "uni_pc_bh2",
});
// clang-format on

}  // namespace

bool MergeClass::joins(std::string_view input) const {
    return std::ranges::find(conditionings, input) != conditionings.end();
}

const MergeClass* find_merge_class(std::string_view class_type) {
    const auto found = std::ranges::find(kClasses, class_type, &MergeClass::name);
    return found == kClasses.end() ? nullptr : &*found;
}

bool is_mergeable_sampler(std::string_view sampler_name) {
    return std::ranges::find(kSamplers, sampler_name) != kSamplers.end();
}

}  // namespace comfyd::workflow
