#include "workflow/files/address_names.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {
namespace {

TEST(AddressNames, SayWhoseTheyAre) {
    const std::string folder = address_folder("red", "https://example.com/a");
    EXPECT_EQ(folder, address_folder("red", "https://example.com/a"));
    EXPECT_NE(folder, address_folder("red", "https://example.com/b"));
    const std::vector<std::string> names{
        folder + "/a.safetensors", folder + "\\sub\\a.safetensors"
    };
    for (const std::string& name : names) {
        EXPECT_TRUE(is_address_name(name));
        EXPECT_TRUE(is_address_name_of(name, "red"));
        EXPECT_FALSE(is_address_name_of(name, "blue"));
    }
    const std::vector<std::string> others{
        folder,
        "x/" + folder + "/a",
        "from-above/a",
        "from-",
        "from-" + std::string(32, 'g') + "/a",
        "",
    };
    for (const std::string& other : others) {
        EXPECT_FALSE(is_address_name(other)) << other;
        EXPECT_FALSE(is_address_name_of(other, "red")) << other;
    }
}

TEST(AddressNames, AreNoChoicesForAnybodyAndStillThere) {
    const std::string name = address_folder("red", "address") + "/a.safetensors";
    json::object info =
        *json::parse_object(R"({"Loader": {"input": {"required": {"file": [["b.safetensors"]]}}}})"
        );
    json::value& inputs = info.at("Loader").at("input").at("required");
    inputs.at("file").at(0).as_array().emplace_back(name);
    const auto classes = *NodeClasses::from_object_info(info);
    const InputDefinition* input = classes->find("Loader")->find_input("file", {});
    ASSERT_NE(input, nullptr);
    EXPECT_FALSE(input->offers(json::value(name)));
    EXPECT_TRUE(input->offers(json::value("b.safetensors")));
    EXPECT_TRUE(classes->has("Loader", "file", name)) << "a worker that has it can run it";
    EXPECT_FALSE(classes->has("Loader", "file", name + "x"));
    EXPECT_FALSE(classes->has("Other", "file", name));
}

}  // namespace
}  // namespace comfyd::workflow
