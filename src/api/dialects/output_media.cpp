#include "api/dialects/output_media.hpp"

#include <utility>

#include "api/dialects/literal.hpp"

namespace comfyd::api {

void add_media(
    const jobs::Output& output,
    const std::function<Download(const AssetId&)>& link,
    json::object& into
) {
    if (!output.media.empty()) {
        into["media"] = output.media;
    }
    json::array thumbnails;
    json::array variants;
    for (const jobs::Output& variant : output.variants) {
        const Download download = link(variant.asset);
        json::object made = variant.media;
        made["variant"] = variant.variant;
        made["name"] = variant.name;
        made["content_type"] = variant.content_type;
        made["size_bytes"] = variant.size_bytes;
        made["asset_id"] = variant.asset.to_string();
        made["hash"] = variant.hash;
        made["url"] = download.url;
        made["url_expires_at"] = to_rfc3339(download.expires_at);
        (variant.variant == "thumbnail" ? thumbnails : variants).emplace_back(std::move(made));
    }
    for (const json::value& failed : output.failed_variants) {
        variants.push_back(failed);
    }
    if (!thumbnails.empty()) {
        into["thumbnails"] = std::move(thumbnails);
    }
    if (!variants.empty()) {
        into["variants"] = std::move(variants);
    }
}

json::object media_schemas() {
    return literal(R"json({
        "OutputMedia": {"type": "object", "description": "What the file is. Members that are not known are left out.", "properties": {
            "kind": {"type": "string", "enum": ["image", "animated_image", "video", "audio", "text", "3d", "other"]},
            "format": {"type": "string"},
            "width": {"type": "integer"}, "height": {"type": "integer"},
            "bit_depth": {"type": "integer"}, "has_alpha": {"type": "boolean"},
            "frames": {"type": "integer"}, "duration_seconds": {"type": "number"}, "fps": {"type": "number"},
            "codec": {"type": "string"}, "audio_codec": {"type": "string"},
            "sample_rate": {"type": "integer"}, "channels": {"type": "integer"},
            "has_workflow": {"type": "boolean", "description": "ComfyUI's workflow or prompt is written in the file."},
            "blurhash": {"type": "string"}, "dominant_color": {"type": "string", "example": "#7f6a55"}}},
        "OutputVariant": {"type": "object", "required": ["variant"], "properties": {
            "variant": {"type": "string", "enum": ["converted", "stripped", "poster", "thumbnail", "inspection", "placeholder"]},
            "size": {"type": "integer", "description": "Of a thumbnail: the longest side that was asked for."},
            "format": {"type": "string"}, "width": {"type": "integer"}, "height": {"type": "integer"},
            "name": {"type": "string"}, "content_type": {"type": "string"}, "size_bytes": {"type": "integer"},
            "asset_id": {"type": "string", "format": "uuid"}, "hash": {"type": "string"},
            "url": {"type": "string", "format": "uri"}, "url_expires_at": {"type": "string", "format": "date-time"},
            "error": {"type": "object", "description": "Why it could not be made.", "properties": {
                "code": {"type": "string"}, "message": {"type": "string"}}}}},
        "OutputConfig": {"type": "object", "additionalProperties": true, "properties": {
            "format": {"type": "string", "enum": ["png", "jpeg", "jpg", "webp", "avif"], "description": "Of pictures. Animations stay animations, which jpeg cannot hold."},
            "quality": {"type": "integer", "minimum": 1, "maximum": 100},
            "lossless": {"type": "boolean"},
            "max_size": {"type": "integer", "minimum": 1, "maximum": 16384, "description": "Pixels of the longest side."},
            "max_width": {"type": "integer", "minimum": 1, "maximum": 16384},
            "max_height": {"type": "integer", "minimum": 1, "maximum": 16384},
            "strip_metadata": {"type": "boolean", "description": "Without the workflow that is written in the file."},
            "thumbnails": {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "integer", "enum": [256, 512, 1024]}}]},
            "poster": {"type": "boolean", "description": "A picture of each video and animation."},
            "storage": {"type": "object", "properties": {
                "provider": {"type": "string"}, "bucket": {"type": "string"}, "path": {"type": "string"}}}}}
    })json");
}

}  // namespace comfyd::api
