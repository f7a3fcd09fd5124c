#include "support/double/catalogue.hpp"

namespace comfyd::support {

// The node pack in worker/comfyui_nodes/comfyd, and the class of ComfyUI that merged prompts
// need besides. The further inputs of the joining classes are added by the catalogue.
// clang-format off
const char* const kBatchPackNodes = R"json({
"ComfydLatentBatch": {"input": {"required": {"jobs": ["STRING", {"default": "0:1"}], "latent0": ["LATENT"]}, "optional": {}}, "input_order": {"required": ["jobs", "latent0"], "optional": []}, "is_input_list": false, "output": ["LATENT", "INT"], "output_is_list": [false, false], "output_name": ["latents", "seeds"], "name": "ComfydLatentBatch", "display_name": "Join Latents of Jobs (comfyd)", "description": "", "python_module": "custom_nodes.comfyd", "category": "comfyd", "output_node": false},
"ComfydConditioningBatch": {"input": {"required": {"counts": ["STRING", {"default": "1"}], "conditioning0": ["CONDITIONING"]}, "optional": {}}, "input_order": {"required": ["counts", "conditioning0"], "optional": []}, "is_input_list": false, "output": ["CONDITIONING"], "output_is_list": [false], "output_name": ["CONDITIONING"], "name": "ComfydConditioningBatch", "display_name": "Join Conditionings of Jobs (comfyd)", "description": "", "python_module": "custom_nodes.comfyd", "category": "comfyd", "output_node": false},
"ComfydSaveImage": {"input": {"required": {"images": ["IMAGE"], "prompt": ["STRING", {"default": "{}"}], "extra_pnginfo": ["STRING", {"default": "{}"}], "preview": ["BOOLEAN", {"default": false}]}, "optional": {"filename_prefix": ["STRING", {"default": "ComfyUI"}]}}, "input_order": {"required": ["images", "prompt", "extra_pnginfo", "preview"], "optional": ["filename_prefix"]}, "is_input_list": false, "output": ["IMAGE"], "output_is_list": [false], "output_name": ["images"], "name": "ComfydSaveImage", "display_name": "Save Images of a Job (comfyd)", "description": "", "python_module": "custom_nodes.comfyd", "category": "comfyd", "output_node": true},
"ComfydWarm": {"input": {"required": {"loaded0": ["*"]}, "optional": {}}, "input_order": {"required": ["loaded0"], "optional": []}, "is_input_list": false, "output": [], "output_is_list": [], "output_name": [], "name": "ComfydWarm", "display_name": "Load Models Ahead (comfyd)", "description": "", "python_module": "custom_nodes.comfyd", "category": "comfyd", "output_node": true},
"ImageFromBatch": {"input": {"required": {"image": ["IMAGE", {}], "batch_index": ["INT", {"default": 0, "min": -16384, "max": 16384}], "length": ["INT", {"default": 1, "min": 1, "max": 4096}]}}, "input_order": {"required": ["image", "batch_index", "length"]}, "is_input_list": false, "output": ["IMAGE"], "output_is_list": [false], "output_name": ["IMAGE"], "name": "ImageFromBatch", "display_name": "Get Image from Batch", "python_module": "comfy_extras.nodes_images", "category": "image/batch", "output_node": false}
})json";
// clang-format on

}  // namespace comfyd::support
