#include "workflow/files/private_names.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {
namespace {

json::object saver(const char* class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

std::string prefix_of(const json::object& node) {
    return std::string(node.at("inputs").at("filename_prefix").as_string());
}

TEST(PrivateNames, AFolderIsTheTenantsAndTheInstallations) {
    const std::string folder = private_folder("secret", "red");
    EXPECT_EQ(folder, private_folder("secret", "red"));
    EXPECT_NE(folder, private_folder("secret", "blue"));
    EXPECT_NE(folder, private_folder("other secret", "red"));
    EXPECT_EQ(folder.size(), std::string("comfyd_").size() + 32);
    EXPECT_EQ(folder.find("red"), std::string::npos);
}

TEST(PrivateNames, AreRecognisedWhereverTheyStand) {
    const std::string folder = private_folder("secret", "red");
    std::string loud = folder;
    for (char& c : loud) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    for (const std::string& text :
         {folder,
          loud,
          folder + "/x.png [output]",
          "../output/" + folder + "\\x.png",
          "comfyd_ comfyd_" + folder,
          std::string("comfyd_0123456789abcdef.png"),
          "_______ _comfyd_ comfy_" + std::string(1000, 'c') + folder}) {
        EXPECT_TRUE(holds_private_name(text)) << text;
    }
    for (const char* text :
         {"",
          "_",
          "omfyd_0123456789abcdef",
          "comfyd_",
          "comfyd_batch",
          "comfyd_0123456789abcde.png",
          "cat"}) {
        EXPECT_FALSE(holds_private_name(text)) << text;
    }
}

TEST(PrivateNames, InputsTellTheirHash) {
    const std::string digits(64, 'a');
    const std::string folder = private_folder("secret", "red");
    EXPECT_EQ(hash_in_private_name(folder + "/" + digits + ".png"), "blake3:" + digits);
    EXPECT_EQ(hash_in_private_name(folder + "/" + digits), "blake3:" + digits);
    for (const std::string& name :
         {folder,
          folder + "/cat.png",
          folder + "/" + digits + "a.png",
          folder + "/sub/" + digits + ".png",
          digits + ".png"}) {
        EXPECT_FALSE(hash_in_private_name(name)) << name;
    }
}

TEST(PrivateNames, ClientsSeeWhatLiesOutsideOfTheFolder) {
    const std::string folder = private_folder("secret", "red");
    EXPECT_EQ(without_private_folders(folder), "");
    EXPECT_EQ(without_private_folders(folder + "/a/b.png"), "a/b.png");
    EXPECT_EQ(without_private_folders(folder + "\\a"), "a");
    EXPECT_EQ(without_private_folders("/srv/output/" + folder), "/srv/output");
    EXPECT_EQ(without_private_folders(folder + "_00001_.png"), "._00001_.png");
    EXPECT_EQ(
        without_private_folders("no " + folder + "/x and no " + folder + "/y"), "no x and no y"
    );
    EXPECT_EQ(without_private_folders("comfyd_batch/x"), "comfyd_batch/x");

    json::object ui{
        {"images", {{{"filename", "x.png"}, {"subfolder", folder + "/sub"}, {"type", "output"}}}},
        {"text", {7, nullptr, folder + "/y"}}
    };
    hide_private_folders(ui);
    EXPECT_EQ(ui.at("images").at(0).at("subfolder"), "sub");
    EXPECT_EQ(ui.at("text").at(2), "y");
}

TEST(PrivateNames, NodesSaveInTheFolder) {
    const std::string folder = private_folder("secret", "red");
    json::object plain = saver("SaveImage", {{"filename_prefix", "ComfyUI"}});
    EXPECT_TRUE(save_in_folder(plain, folder));
    EXPECT_EQ(prefix_of(plain), folder + "/ComfyUI");
    json::object graph{{"1", plain}, {"2", "no node"}};
    forget_folders(graph);
    EXPECT_EQ(prefix_of(graph.at("1").as_object()), "ComfyUI");

    json::object inner = saver("SaveVideo", {{"filename_prefix", "video/../clip"}});
    EXPECT_TRUE(save_in_folder(inner, folder));
    EXPECT_EQ(prefix_of(inner), folder + "/video/../clip");

    for (const char* outside : {"../x", "a/../../x", "/tmp/x", ".."}) {
        json::object node = saver("SaveImage", {{"filename_prefix", outside}});
        EXPECT_FALSE(save_in_folder(node, folder)) << outside;
        EXPECT_EQ(prefix_of(node), outside);
    }
    json::object linked = saver("SaveImage", {{"filename_prefix", {"1", 0}}});
    EXPECT_FALSE(save_in_folder(linked, folder));
    json::object apart = saver("X", {{"filename_prefix", "x"}, {"folder_name", "set"}});
    EXPECT_FALSE(save_in_folder(apart, folder));
    json::object none = saver("PreviewImage", {{"images", {"1", 0}}});
    EXPECT_FALSE(save_in_folder(none, folder));
}

TEST(PrivateNames, AreNoChoicesOfAnyClass) {
    const std::string folder = private_folder("secret", "red");
    const json::object info{
        {"LoadImage",
         {{"input",
           {{"required",
             {{"image",
               {{"a.png", "comfyd_0123456789abcdef.png", folder + "/x.png"},
                {{"image_upload", true}}}},
              {"folder", {"COMBO", {{"options", {folder, "set"}}}}}}}}},
          {"output", json::array{"IMAGE"}}}},
    };
    const auto classes = NodeClasses::from_object_info(info);
    ASSERT_TRUE(classes);
    const NodeDefinition* loader = (*classes)->find("LoadImage");
    ASSERT_NE(loader, nullptr);
    EXPECT_EQ(json::serialize(loader->info()).find("comfyd_"), std::string::npos);
    EXPECT_TRUE(loader->find_input("image", {})->offers("a.png"));
    EXPECT_TRUE(loader->find_input("folder", {})->offers("set"));
}

}  // namespace
}  // namespace comfyd::workflow
