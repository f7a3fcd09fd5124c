// What /openapi.json says about looking at workflows.
#include "api/dialects/literal.hpp"
#include "api/dialects/openapi_parts.hpp"
#include "api/dialects/workflow_tools/workflow_tools.hpp"

namespace comfyd::api::workflow_tools {

json::object operation_validate() {
    return openapi::operation("validateWorkflowV2", "workflows v2", R"json({
        "summary": "Say what is wrong with a workflow",
        "description": "Looks at a workflow in five stages (syntax, semantic, security, resource, optimization) and gives all findings of each. Nothing is run or stored. The answer is 200 whether the workflow is valid or not.",
        "requestBody": {"workflow": "WorkflowToolRequest"},
        "responses": {
            "200": ["The findings.", "WorkflowValidation"],
            "default": ["The request itself is wrong."]
        }
    })json");
}

json::object operation_plan() {
    return openapi::operation("planWorkflowV2", "workflows v2", R"json({
        "summary": "Say what running a workflow would take",
        "description": "Models, GPU memory, work, time, cost, what can run side by side, and the keys by which workflows are the same. Nothing is run or stored.",
        "requestBody": {"workflow": "WorkflowToolRequest"},
        "responses": {
            "200": ["The plan.", "WorkflowPlan"],
            "default": ["The request or its workflow is not valid; details names every finding."]
        }
    })json");
}

json::object schemas() {
    json::object made = literal(R"json({
        "WorkflowToolRequest": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "input_params": {"type": "object", "additionalProperties": true,
                    "description": "As of an execution."},
                "auto_fix": {"type": "boolean", "default": false,
                    "description": "Put right what is plainly a slip; each change is told in warnings."},
                "check_urls": {"type": "boolean", "default": false,
                    "description": "Look whether addresses in inputs can be reached (validate only)."},
                "plan": {"type": "boolean", "default": false,
                    "description": "Give the plan too (validate only)."},
                "pool": {"type": "string",
                    "description": "Only workers of this pool count. Where none of them can run it, details.other_pools names those that could."},
                "region": {"type": "string", "maxLength": 64, "description": "Only workers that stand there count."},
                "gpu_requirements": {"type": "object", "description": "Only workers with such a GPU count.", "properties": {"gpu_type": {"type": "string", "maxLength": 64}, "memory_gb": {"type": "number", "minimum": 0, "maximum": 4096}}}
            }
        },
        "WorkflowFinding": {
            "type": "object",
            "properties": {
                "stage": {"type": "string", "enum": ["syntax", "semantic", "security", "resource", "optimization"]},
                "severity": {"type": "string", "enum": ["error", "warning", "info"]},
                "code": {"type": "string", "example": "VALUE_NOT_IN_LIST"},
                "message": {"type": "string"},
                "node_id": {"type": "string"},
                "class_type": {"type": "string"},
                "input": {"type": "string"},
                "expected": {"description": "What would be right."},
                "got": {"description": "What came."},
                "suggestion": {"type": "string", "description": "The nearest value that would be right."},
                "reason": {"type": "string", "description": "ComfyUI's own word."},
                "details": {"type": "object", "additionalProperties": true}
            }
        },
        "WorkflowFix": {
            "type": "object",
            "properties": {
                "event": {"type": "string", "enum": ["execution.warning"]},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "node_id": {"type": "string"},
                "class_type": {"type": "string"},
                "input": {"type": "string"},
                "from": {},
                "to": {},
                "field": {"type": "string", "description": "Of the request, where the warning is about one."}
            }
        },
        "WorkflowValidation": {
            "type": "object",
            "properties": {
                "valid": {"type": "boolean"},
                "node_count": {"type": "integer"},
                "error_count": {"type": "integer"},
                "warning_count": {"type": "integer"},
                "stages": {"type": "array", "items": {"type": "object", "properties": {
                    "stage": {"type": "string"},
                    "valid": {"type": "boolean"},
                    "skipped": {"type": "string", "description": "Why the stage was not judged."},
                    "findings": {"type": "array", "items": {"$ref": "#/components/schemas/WorkflowFinding"}}
                }}},
                "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/WorkflowFix"}},
                "workflow": {"type": "object", "additionalProperties": true,
                    "description": "In API format, where it was converted or put right."},
                "chosen_parameters": {"type": "object", "additionalProperties": true},
                "plan": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/WorkflowPlan"}]}
            }
        },
        "WorkflowPlan": {
            "type": "object",
            "properties": {
                "models": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string"},
                    "kind": {"type": "string"},
                    "node_id": {"type": "string"},
                    "input": {"type": "string"},
                    "size_bytes": {"type": "integer", "nullable": true},
                    "estimated_bytes": {"type": "integer"},
                    "size_source": {"type": "string", "enum": ["configured", "file", "estimated"], "description": "Whether the size stands in the configuration, is that of the file, which somebody has read, or is what files of its kind usually have."}
                }}},
                "model_family": {"type": "string"},
                "sampling": {"type": "array", "items": {"type": "object", "additionalProperties": true}},
                "model_bytes": {"type": "integer"},
                "estimated_vram_mb": {"type": "integer"},
                "vram_source": {"type": "string", "enum": ["learned", "estimated"], "description": "Whether runs of this workflow taught it, or it is reckoned from the sizes of models and pictures."},
                "work_units": {"type": "number",
                    "description": "One unit is one step of an SD 1.5 model over 512x512 pixels."},
                "estimated_duration_seconds": {"type": "number", "description": "With all models loaded."},
                "estimated_load_seconds": {"type": "number"},
                "estimate_basis": {"type": "string", "enum": ["history", "other_gpu", "similar", "heuristic"]},
                "estimate_confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "estimated_cost_usd": {"type": "number"},
                "node_weights": {"type": "object", "additionalProperties": {"type": "number"},
                    "description": "The share of each node that runs; they sum up to 1."},
                "parallel_stages": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                "batch_key": {"type": "string",
                    "description": "The same for workflows that differ in texts, seeds and input files only."},
                "fingerprint": {"type": "string",
                    "description": "The same for workflows that make the same pictures."},
                "reusable": {"type": "boolean",
                    "description": "Whether a job with it may be answered with the outputs of an earlier one ('reuse')."},
                "not_reusable": {"type": "object", "description": "Where it is not: the first node that may give something else each time.",
                    "properties": {"node_id": {"type": "string"}, "class_type": {"type": "string"}, "reason": {"type": "string"}}},
                "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/WorkflowFix"}},
                "chosen_parameters": {"type": "object", "additionalProperties": true}
            }
        }
    })json");
    made["WorkflowToolRequest"].at("properties").as_object()["workflow"] =
        openapi::workflow_property("As of an execution.");
    return made;
}

}  // namespace comfyd::api::workflow_tools
