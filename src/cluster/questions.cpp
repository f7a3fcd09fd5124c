#include "cluster/questions.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "cluster/leader_json.hpp"
#include "cluster/members.hpp"

namespace comfyd::cluster {
namespace {

tl::unexpected<Error> no_job() {
    return fail(Code::protocol_error, "the question names no job");
}

tl::unexpected<Error> not_led() {
    return fail(Code::lead_lost, "this node does not lead the job's domain");
}

const json::object& object_of(const json::value& details) {
    static const json::object none;
    return details.is_object() ? details.get_object() : none;
}

Task<Result<json::value>> answer_cancel(jobs::Leader& here, json::value details) {
    const auto job = led_job_from_json(details);
    if (!job) {
        co_return no_job();
    }
    const auto how = flag_in(object_of(details), "while_waiting") ? jobs::Cancel::while_waiting
                                                                  : jobs::Cancel::anyway;
    auto done = co_await here.cancel(*job, how);
    if (!done) {
        co_return fail(std::move(done.error()));
    }
    co_return json::value(json::object());
}

Task<Result<json::value>> answer_live(jobs::Leader& here, json::value details) {
    const auto job = led_job_from_json(details);
    if (!job) {
        co_return no_job();
    }
    auto live = co_await here.live(*job);
    if (!live) {
        co_return not_led();
    }
    co_return json::value(to_json(*live));
}

Task<Result<json::value>> answer_explain(jobs::Leader& here, json::value details) {
    const auto job = led_job_from_json(details);
    if (!job) {
        co_return no_job();
    }
    auto waiting = co_await here.explain(*job);
    if (!waiting) {
        co_return not_led();
    }
    co_return json::value(to_json(*waiting));
}

Task<Result<json::value>> answer_read_output(jobs::Leader& here, json::value details) {
    const auto job = led_job_from_json(details);
    if (!job) {
        co_return no_job();
    }
    const json::object& asked = object_of(details);
    jobs::WorkerFile file{
        text_in(asked, "name"), text_in(asked, "subfolder"), text_in(asked, "folder")
    };
    const auto bytes_max = std::min(count_in(asked, "bytes_max"), question::kFileBytesMax);
    auto bytes = co_await here.read_output(*job, std::move(file), bytes_max);
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    co_return json::value(json::object{{"bytes", to_base64(*bytes)}});
}

Task<Result<json::value>> answer_load(jobs::Leader& here, json::value details) {
    auto load = co_await here.load(text_in(object_of(details), "domain"));
    if (!load) {
        co_return not_led();
    }
    co_return json::value(to_json(*load));
}

Task<Result<json::value>> answer_workers(jobs::Leader& here) {
    const auto workers = co_await here.workers();
    json::array list;
    for (const jobs::WorkerInfo& worker : workers) {
        list.emplace_back(to_json(worker));
    }
    co_return json::value(json::object{{"workers", std::move(list)}});
}

Task<Result<json::value>> answer_free_memory(jobs::Leader& here, json::value details) {
    const json::object& asked = object_of(details);
    co_await here.free_idle_workers(flag_in(asked, "models"), flag_in(asked, "results"));
    co_return json::value(json::object());
}

}  // namespace

void answer_questions(Mail& mail, jobs::Leader& here) {
    mail.on_question(question::kCancel, [&here](NodeId, json::value details) {
        return answer_cancel(here, std::move(details));
    });
    mail.on_question(question::kLive, [&here](NodeId, json::value details) {
        return answer_live(here, std::move(details));
    });
    mail.on_question(question::kExplain, [&here](NodeId, json::value details) {
        return answer_explain(here, std::move(details));
    });
    mail.on_question(question::kReadOutput, [&here](NodeId, json::value details) {
        return answer_read_output(here, std::move(details));
    });
    mail.on_question(question::kLoad, [&here](NodeId, json::value details) {
        return answer_load(here, std::move(details));
    });
    mail.on_question(question::kWorkers, [&here](NodeId, json::value) {
        return answer_workers(here);
    });
    mail.on_question(question::kFreeMemory, [&here](NodeId, json::value details) {
        return answer_free_memory(here, std::move(details));
    });
}

}  // namespace comfyd::cluster
