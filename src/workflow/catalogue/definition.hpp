// A node class as ComfyUI's GET /object_info describes it. Immutable; any thread.
//
// Inputs that appear only with certain values (COMFY_DYNAMICCOMBO_V3, COMFY_AUTOGROW_V3,
// COMFY_DYNAMICSLOT_V3) are named in prompts by flat dotted keys: "resize_type": "scale by
// multiplier", "resize_type.multiplier": 2.0, "images.image0": ["1", 0]. inputs_for() gives the
// inputs that a node has with its values. All of them are read once, when the class is; what
// inputs_for() and find_input() give points into the definition and lives as long as it.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

enum class Need { required, optional };

struct InputDefinition {
    std::string name;  // flat, as in prompts
    std::string
        type;  // "IMAGE", "INT", "FLOAT,INT", "*", …; "COMBO" for both ways to write a choice
    Need need = Need::required;
    bool lazy = false;
    bool combo_v1 = false;                  // the choices stand in the place of the type
    bool nested = false;                    // part of a dynamic input
    const json::value* config = nullptr;    // the [type, options] pair, as in /object_info
    const json::object* options = nullptr;  // its second part; nullptr: none
    const json::array* choices = nullptr;   // of a COMBO; nullptr where they are not known
    std::shared_ptr<const std::unordered_set<std::string_view>> choice_index;  // of a long list

    // It is one of the choices, by Python's ==.
    bool offers(const json::value& choice) const;
    // A file that clients upload is chosen here: the list is what one machine happens to hold.
    bool takes_upload() const;
};

// A range of InputDefinition.
class InputList {
public:
    class iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = InputDefinition;
        using difference_type = std::ptrdiff_t;
        using pointer = const InputDefinition*;
        using reference = const InputDefinition&;

        iterator() = default;
        explicit iterator(const InputDefinition* const* at) : at_(at) {}
        reference operator*() const { return **at_; }
        pointer operator->() const { return *at_; }
        iterator& operator++() {
            ++at_;
            return *this;
        }
        iterator operator++(int) { return iterator(at_++); }
        bool operator==(const iterator&) const = default;

    private:
        const InputDefinition* const* at_ = nullptr;
    };

    explicit InputList(const std::vector<const InputDefinition*>& fixed) : fixed_(&fixed) {}
    explicit InputList(std::vector<const InputDefinition*>&& expanded)
        : expanded_(std::move(expanded)) {}

    iterator begin() const { return iterator(list().data()); }
    iterator end() const { return iterator(list().data() + list().size()); }
    std::size_t size() const { return list().size(); }
    bool empty() const { return list().empty(); }
    const InputDefinition& operator[](std::size_t at) const { return *list()[at]; }

private:
    const std::vector<const InputDefinition*>& list() const {
        return fixed_ != nullptr ? *fixed_ : expanded_;
    }
    const std::vector<const InputDefinition*>* fixed_ = nullptr;
    std::vector<const InputDefinition*> expanded_;
};

class NodeDefinition {
public:
    // Refuses what is not in the form of an /object_info entry (Code::protocol_error), bounded in
    // depth and size.
    static Result<std::shared_ptr<const NodeDefinition>> from_object_info(
        std::string_view name, json::object info
    );
    ~NodeDefinition();
    NodeDefinition(const NodeDefinition&) = delete;
    NodeDefinition& operator=(const NodeDefinition&) = delete;

    const std::string& name() const { return name_; }
    bool output_node() const { return output_node_; }
    bool input_is_list() const { return input_is_list_; }
    // Their types; "COMBO" where a list of choices stands in the place of the type.
    const std::vector<std::string>& outputs() const { return outputs_; }
    // The type as in /object_info. `slot` is below outputs().size().
    const json::value& output_type(std::size_t slot) const;
    bool output_is_list(std::size_t slot) const;
    bool hides_unique_id() const { return hides_unique_id_; }
    const json::object& info() const { return info_; }  // as given
    bool has_dynamic_inputs() const { return dynamic_; }
    // Written for ComfyUI's newer node interface ("V3").
    bool is_v3() const;
    // Comes from a custom node pack, not from ComfyUI itself.
    bool is_custom() const;

    // In declaration order, required ones first; dynamic ones expanded, those whose values are not
    // there left out, as ComfyUI does it. Allocates nothing for a class without dynamic inputs.
    InputList inputs_for(const json::object& values) const;
    // One of them by its flat name; nullptr: there is none with these values.
    const InputDefinition* find_input(std::string_view flat_name, const json::object& values) const;
    // Every input that it has with some values.
    const std::vector<const InputDefinition*>& all_inputs() const { return all_; }

private:
    struct Item;
    class Reader;
    class Expander;
    NodeDefinition();

    std::string name_;
    json::object info_;
    std::vector<std::string> outputs_;
    const json::array* output_types_ = nullptr;
    const json::array* output_lists_ = nullptr;
    bool output_node_ = false;
    bool input_is_list_ = false;
    bool hides_unique_id_ = false;
    bool dynamic_ = false;
    std::vector<Item> items_;
    std::vector<const InputDefinition*> fixed_;  // the answer where nothing is dynamic
    std::vector<const InputDefinition*> all_;
};

}  // namespace comfyd::workflow
