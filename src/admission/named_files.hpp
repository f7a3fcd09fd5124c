// The files that a submission names by a name: each is the tenant's own, or one that the operator
// put on a worker, or it does not exist. What tenants have on the workers besides is named by
// nobody (workflow/files/private_names.hpp), so a name that is another tenant's is refused as one
// that nobody has. For every dialect; runs on the connection's executor.
#pragma once

#include <string>
#include <vector>

#include "admission/desk.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::admission {

struct OwnFile {
    workflow::FileUse use;
    workflow::AssetRef asset;  // for the worker that runs the workflow
};

struct NamedFiles {
    std::size_t uses = 0;  // texts that were looked at
    std::vector<OwnFile> own;
    std::vector<workflow::MissingFile> missing;  // in inputs that choose a file
    std::vector<workflow::Issue> foreign;  // elsewhere: names of files that are not the tenant's
};

Task<Result<NamedFiles>> find_named_files(
    const Desk& desk,
    std::string tenant,
    const json::object& workflow,  // outlives the call
    std::shared_ptr<const workflow::Catalogue> catalogue
);

// Puts the references in the place of the names.
void place_own_files(json::object& workflow, const std::vector<OwnFile>& files);

}  // namespace comfyd::admission
