#include "models/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_server.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::models {
namespace {

using testing::HasSubstr;

std::string with_length(const std::string& head, const std::string& data) {
    std::string file;
    for (std::size_t i = 0; i < 8; ++i) {
        file += static_cast<char>(head.size() >> (8 * i) & 0xff);
    }
    return file + head + data;
}

Result<SafetensorsInfo> read(
    const std::string& file, std::size_t step = 1'000'000, std::uint64_t told = 0
) {
    SafetensorsReader reader(told == 0 ? file.size() : told);
    for (std::size_t at = 0; at < file.size() && !reader.is_done(); at += step) {
        if (auto put = reader.put(std::string_view(file).substr(at, step)); !put) {
            return fail(put.error());
        }
    }
    return reader.info();
}

// Tensors of one byte for each name, with these shapes' first numbers.
std::string file_of(const std::vector<std::pair<std::string, std::string>>& tensors) {
    std::string head = "{\"__metadata__\":{\"format\":\"pt\"}";
    std::uint64_t at = 0;
    for (const auto& [name, shape] : tensors) {
        std::uint64_t bytes = 2;
        for (std::size_t from = 0; from < shape.size();) {
            const auto comma = std::min(shape.find(',', from), shape.size());
            bytes *= std::stoull(shape.substr(from, comma - from));
            from = comma + 1;
        }
        head += ",\"" + name + "\":{\"dtype\":\"F16\",\"shape\":[" + shape +
                "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + bytes) +
                "]}";
        at += bytes;
    }
    head += "}";
    std::string data(at, '\x11');
    return with_length(head, data);
}

TEST(Safetensors, AreReadInPiecesOfAnySize) {
    const std::string file = with_length(
        R"({"__metadata__":{"a":"{\"b\": [1, {\"dtype\": 3}]}"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
        R"("b":{"data_offsets":[0,4],"shape":[],"dtype":"F32"},"none":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]}}    )",
        std::string(16, 'x')
    );
    for (const std::size_t step : {1u, 2u, 3u, 7u, 64u, 4096u}) {
        const auto info = read(file, step);
        ASSERT_TRUE(info) << step << ": " << info.error().message;
        EXPECT_EQ(info->bytes, file.size());
        EXPECT_EQ(info->tensors, 3u);
        EXPECT_EQ(info->dtype, "BF16");
        EXPECT_EQ(info->family, Family());
    }
    EXPECT_TRUE(read(with_length("{}", "")));
    EXPECT_TRUE(read(with_length(R"({"__metadata__":{}})", "")));
}

TEST(Safetensors, AFileThatWasCutOffIsFound) {
    const std::string file = support::safetensors_file(1000);
    ASSERT_TRUE(read(file));
    for (const std::size_t size :
         {std::size_t{0},
          std::size_t{1},
          std::size_t{7},
          std::size_t{8},
          std::size_t{9},
          std::size_t{60},
          file.size() - 1}) {
        EXPECT_FALSE(read(file.substr(0, size))) << size;
    }
    EXPECT_FALSE(read(file + "x"));
    // Also from its first bytes, where its size is told.
    const auto early = read(file.substr(0, 200), 50, file.size() - 10);
    ASSERT_FALSE(early);
    EXPECT_THAT(early.error().message, HasSubstr("990"));
}

TEST(Safetensors, HostileOnesAreRefused) {
    const std::string one = R"("shape":[4],"data_offsets":[0,4]})";
    for (const std::string& head : std::vector<std::string>{
             "[]",
             "{",
             "{]",
             "{}x",
             "{} {}",
             R"({"a":1})",
             R"({"a":[1]})",
             R"({"a":null})",
             R"({"a":{}})",
             R"({"":{"dtype":"U8",)" + one + "}",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[-1,3]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4.5]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":{"0":1}}})",
             R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})",
             R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,99999999999999999999]}})",
             R"({"a":{"dtype":"UUUUUUUUUUUUUUUUU","shape":[4],"data_offsets":[0,4]}})",
             // Two over one another, a hole, a name twice.
             R"({"a":{"dtype":"U8",)" + one + R"(,"b":{"dtype":"U8",)" + one + "}",
             R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
             R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
             R"({"a":)" + std::string(1000, '[') + std::string(1000, ']') + "}",
             "{\"" + std::string(5000, 'a') + R"(":{"dtype":"U8",)" + one + "}",
         }) {
        for (const std::size_t step : {1u, 1000u}) {
            const auto info = read(with_length(head, "data"), step);
            ASSERT_FALSE(info) << head.substr(0, 100);
            EXPECT_EQ(info.error().code, Code::invalid_argument);
        }
    }
    EXPECT_FALSE(read(" " + with_length("{}", "").substr(1)));
    EXPECT_FALSE(read("\xff\xff\xff\xff\xff\xff\xff\xff{}"));
    EXPECT_FALSE(read(std::string("PK\x03\x04") + std::string(1000, 'x')));
    EXPECT_FALSE(read("<html><body>Please log in</body></html>"));
}

TEST(Safetensors, AreReadFromDisk) {
    const support::TempDir folder;
    const auto info = read_safetensors(folder.write("a", support::safetensors_file(3'000'000)));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->dtype, "U8");
    EXPECT_EQ(read_safetensors(folder.path()).error().code, Code::not_found);
    EXPECT_EQ(read_safetensors(folder / "b").error().code, Code::not_found);
    EXPECT_FALSE(read_safetensors(folder.write("c", "short")));
}

struct FamilyCase {
    const char* kind;
    const char* name;
    std::vector<std::pair<std::string, std::string>> tensors;
};

class FamilyOfAFile : public testing::TestWithParam<FamilyCase> {};

TEST_P(FamilyOfAFile, IsToldByItsKeys) {
    const auto info = read(file_of(GetParam().tensors));
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->family.kind, GetParam().kind);
    EXPECT_EQ(info->family.name, GetParam().name);
}

const std::string kUnet = "model.diffusion_model.";
const std::string kAttention = ".transformer_blocks.0.attn2.to_k.weight";

INSTANTIATE_TEST_SUITE_P(
    Known,
    FamilyOfAFile,
    testing::Values(
        FamilyCase{
            "checkpoint",
            "sd15",
            {{kUnet + "input_blocks.1.1" + kAttention, "2,768"},
             {"cond_stage_model.transformer.text_model.embeddings.position_ids", "1,77"},
             {"first_stage_model.decoder.conv_in.weight", "2,4,3,3"}}
        },
        FamilyCase{
            "checkpoint",
            "sd2",
            {{kUnet + "input_blocks.1.1" + kAttention, "2,1024"},
             {"cond_stage_model.model.ln_final.weight", "4"}}
        },
        FamilyCase{
            "checkpoint",
            "sdxl",
            {{kUnet + "input_blocks.4.1" + kAttention, "2,2048"},
             {"conditioner.embedders.1.model.ln_final.weight", "4"}}
        },
        FamilyCase{
            "checkpoint",
            "sdxl-refiner",
            {{kUnet + "input_blocks.4.1" + kAttention, "2,1280"},
             {"conditioner.embedders.0.model.ln_final.weight", "4"}}
        },
        FamilyCase{
            "diffusion_model", "sdxl", {{"down_blocks.1.attentions.0" + kAttention, "2,2048"}}
        },
        FamilyCase{
            "checkpoint",
            "sd3",
            {{kUnet + "joint_blocks.0.context_block.attn.qkv.weight", "2,2"},
             {"first_stage_model.decoder.conv_in.weight", "2,16,3,3"}}
        },
        FamilyCase{
            "diffusion_model",
            "flux",
            {{"double_blocks.0.img_attn.norm.key_norm.scale", "4"},
             {"guidance_in.in_layer.weight", "2,2"}}
        },
        FamilyCase{
            "diffusion_model",
            "flux-schnell",
            {{"double_blocks.0.img_attn.norm.key_norm.scale", "4"}}
        },
        FamilyCase{
            "diffusion_model",
            "chroma",
            {{"double_blocks.0.img_attn.norm.key_norm.scale", "4"},
             {"distilled_guidance_layer.norms.0.scale", "4"}}
        },
        FamilyCase{"diffusion_model", "wan", {{"head.modulation", "1,2"}}},
        FamilyCase{
            "lora",
            "sd15",
            {{"lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k.lora_down."
              "weight",
              "4,768"},
             {"lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k.lora_up.weight",
              "320,4"}}
        },
        FamilyCase{
            "lora",
            "sdxl",
            {{"unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.lora_A.weight",
              "4,2048"},
             {"unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.lora_B.weight",
              "640,4"}}
        },
        FamilyCase{
            "lora",
            "sdxl",
            {{"lora_te2_text_model_encoder_layers_0_mlp_fc1.lora_down.weight", "4,4"}}
        },
        FamilyCase{
            "lora", "flux", {{"lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight", "4,4"}}
        },
        FamilyCase{
            "lora",
            "flux",
            {{"transformer.single_transformer_blocks.0.attn.to_q.lora_A.weight", "4,4"}}
        },
        FamilyCase{
            "lora",
            "hunyuan-video",
            {{"transformer.double_blocks.19.img_attn_qkv.lora_A.weight", "4,4"},
             {"transformer.double_blocks.0.img_attn_qkv.lora_A.weight", "4,4"}}
        },
        FamilyCase{"lora", "", {{"something.lora_down.weight", "4,4"}}},
        FamilyCase{"controlnet", "", {{"controlnet_cond_embedding.conv_in.weight", "2,3,3,3"}}},
        FamilyCase{"vae", "4-channel", {{"decoder.conv_in.weight", "2,4,3,3"}}},
        FamilyCase{"vae", "16-channel", {{"decoder.conv_in.weight", "2,16,3,3"}}},
        FamilyCase{
            "text_encoder", "clip-l", {{"text_model.encoder.layers.0.layer_norm1.bias", "4"}}
        },
        FamilyCase{
            "text_encoder",
            "clip-g",
            {{"text_model.encoder.layers.0.layer_norm1.bias", "4"},
             {"text_model.encoder.layers.22.layer_norm1.bias", "4"}}
        },
        FamilyCase{
            "text_encoder", "t5", {{"encoder.block.0.layer.0.SelfAttention.k.weight", "2,2"}}
        },
        FamilyCase{"", "", {{"something.else", "4"}}}
    )
);

}  // namespace
}  // namespace comfyd::models
