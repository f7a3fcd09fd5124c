// The names of what comfyd itself puts on workers: "comfyd_<32 hex digits>/…", a folder for each
// tenant that nobody can guess, so that tenants who share a worker do not meet there. Clients never
// name these folders, and are shown everything as if it lay outside of them. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::workflow {

// The same for the same secret and tenant.
std::string private_folder(std::string_view secret, std::string_view tenant);

// Something in the text looks like such a folder, or like the name of a file that earlier versions
// put on workers ("comfyd_<16 hex digits>.png").
bool holds_private_name(std::string_view text);

// The hash ("blake3:…") of the content of an input file, which is its name in the tenant's folder.
// Pictures that ComfyUI saves tell these names, so they come back with workflows that are taken out
// of them. nullopt: no such name.
std::optional<std::string> hash_in_private_name(std::string_view name);

// As if the files lay outside of the folders: "comfyd_…/a/b.png" is "a/b.png".
std::string without_private_folders(std::string text);
// The same for all texts in the value, at any depth.
void hide_private_folders(json::value& value);
void hide_private_folders(json::object& value);

// The class without private names among its choices; nullopt: it has none. `info`: an entry of
// /object_info.
std::optional<json::object> without_private_choices(const json::object& info);

// Lets the nodes that save files under a "filename_prefix" do it in `folder`. Prefixes that lead
// out of the output folder stay as they are, for the worker to refuse. True: something was changed.
bool save_in_folder(json::object& node, const std::string& folder);
// Takes the folders out of all prefixes: of a workflow that was taken out of a picture.
void forget_folders(json::object& workflow);

}  // namespace comfyd::workflow
