#include "notify/fresh_changes.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::notify {
namespace {

// Takes what the value needs off `left`. False: there was not so much.
bool fits(const json::value& value, std::size_t& left) {
    constexpr std::size_t kValueBytes = 32;
    const auto* text = value.if_string();
    const std::size_t own = kValueBytes + (text == nullptr ? 0 : text->size());
    if (own > left) {
        return false;
    }
    left -= own;
    if (const json::array* list = value.if_array()) {
        return std::ranges::all_of(*list, [&left](const json::value& one) {
            return fits(one, left);
        });
    }
    const json::object* members = value.if_object();
    return members == nullptr || std::ranges::all_of(*members, [&left](const auto& member) {
               return fits(member.value(), left);
           });
}

bool fits(const json::object& members, std::size_t& left) {
    return std::ranges::all_of(members, [&left](const auto& member) {
        return fits(member.value(), left);
    });
}

bool is_small(const jobs::Job& job, const jobs::Event& event) {
    std::size_t left = FreshChanges::kBytesMax;
    return fits(job.ui_outputs, left) && fits(job.metadata, left) && fits(job.dialect_data, left) &&
           fits(event.data, left);
}

}  // namespace

void FreshChanges::put(const jobs::Job& job, const jobs::Event& event) {
    const bool ran = event.type == jobs::EventType::completed && !job.reused_from;
    if (!ran || !is_small(job, event)) {
        drop(job.id);
        return;
    }
    auto fresh = std::make_shared<Fresh>(job, event);
    jobs::each_file(fresh->job.outputs, [](jobs::Output& file) { file.bytes.reset(); });
    const Lock lock(mutex_);
    kept_[job.id] = std::move(fresh);
    order_.push_back(job.id);
    if (order_.size() > kKept) {
        kept_.erase(order_.front());
        order_.pop_front();
    }
}

std::shared_ptr<const FreshChanges::Fresh> FreshChanges::find(
    const JobId& job, std::uint64_t sequence
) const {
    const Lock lock(mutex_);
    const auto found = kept_.find(job);
    const bool is_it = found != kept_.end() && found->second->event.sequence == sequence;
    return is_it ? found->second : nullptr;
}

void FreshChanges::drop(const JobId& job) {
    const Lock lock(mutex_);
    kept_.erase(job);
}

}  // namespace comfyd::notify
