#include "net/address_guard.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "net/client.hpp"

namespace comfyd::net {
namespace {

namespace ip = boost::asio::ip;

// Docker, etcd, PostgreSQL, Redis, Kubernetes, ComfyUI, Elasticsearch, kubelet, memcached and their
// like: some answer anybody who gets as far as them, some take HTTP for their own commands.
constexpr std::array<std::uint16_t, 21> kServices{
    2049, 2375, 2376, 2379, 2380, 3306, 4194,  5432,  5672,  5984,  6379,
    6443, 8188, 8500, 9042, 9200, 9300, 10250, 10255, 11211, 27017,
};

constexpr std::array<std::string_view, 3> kNames{"localhost", "instance-data", "metadata.goog"};
constexpr std::array<std::string_view, 3> kEndings{".localhost", ".internal", ".local"};

std::string plain_name(std::string_view host) {
    std::string name = lower(host);
    while (name.ends_with('.')) {
        name.pop_back();
    }
    return name;
}

// As the URL standard has it: such a host is an address, in whichever writing.
bool ends_in_a_number(std::string_view host) {
    const std::string_view last = host.substr(host.rfind('.') + 1);
    const bool is_decimal =
        !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
    return is_decimal || last.starts_with("0x");
}

ip::address without_mapping(const ip::address& address) {
    return address.is_v6() && address.to_v6().is_v4_mapped()
               ? ip::address(ip::make_address_v4(ip::v4_mapped, address.to_v6()))
               : address;
}

// The four bytes behind a prefix; byte 8 is always passed over (RFC 6052, 2.2).
ip::address_v4 embedded(const ip::address_v6::bytes_type& bytes, std::size_t bits) {
    ip::address_v4::bytes_type inside{};
    std::size_t at = bits / 8;
    for (auto& byte : inside) {
        at += at == 8 ? 1 : 0;
        byte = bytes[at++];
    }
    return ip::address_v4(inside);
}

}  // namespace

bool is_guarded_name(std::string_view host) {
    const std::string name = plain_name(host);
    boost::system::error_code no_address;
    ip::make_address(name, no_address);
    const auto is_ending = [&name](std::string_view ending) { return name.ends_with(ending); };
    return no_address && (std::ranges::find(kNames, name) != kNames.end() ||
                          std::ranges::any_of(kEndings, is_ending) ||
                          name.starts_with("kubernetes.default") || ends_in_a_number(name));
}

bool is_guarded_port(std::uint16_t port) {
    const bool is_of_web = port == 80 || port == 443 || port > 1023;
    return !is_of_web || std::ranges::find(kServices, port) != kServices.end();
}

AddressGuard& AddressGuard::of_process() {
    static AddressGuard guard;
    return guard;
}

std::shared_ptr<const AddressGuard::Rules> AddressGuard::rules() const {
    const Lock lock(mutex_);
    return rules_;
}

Result<> AddressGuard::set_nat64(const std::vector<std::string>& prefixes) {
    std::vector<Prefix> parsed;
    for (const std::string& text : prefixes) {
        const auto slash = text.find('/');
        boost::system::error_code error;
        const auto address = ip::make_address_v6(text.substr(0, slash), error);
        std::size_t bits = 0;
        if (slash != std::string::npos) {
            std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
        }
        constexpr std::array<std::size_t, 6> kLengths{32, 40, 48, 56, 64, 96};
        if (error || std::ranges::find(kLengths, bits) == kLengths.end()) {
            return fail(
                Code::invalid_argument,
                "'" + text +
                    "' is no prefix of NAT64, such as 2001:db8:64::/96 (RFC 6052: 32, 40, "
                    "48, 56, 64 or 96 bits)"
            );
        }
        parsed.push_back({address.to_bytes(), bits});
    }
    const Lock lock(mutex_);
    auto next = std::make_shared<Rules>(*rules_);
    next->nat64 = std::move(parsed);
    rules_ = std::move(next);
    return {};
}

void AddressGuard::set_own(
    std::vector<std::string> names, const std::vector<std::string>& addresses
) {
    std::ranges::transform(names, names.begin(), plain_name);
    std::vector<ip::address> own;
    for (const std::string& text : addresses) {
        boost::system::error_code error;
        const auto address = ip::make_address(text, error);
        if (!error) {
            own.push_back(without_mapping(address));
        }
    }
    std::ranges::sort(own);
    const Lock lock(mutex_);
    auto next = std::make_shared<Rules>(*rules_);
    next->own = std::move(own);
    next->own_names = std::move(names);
    rules_ = std::move(next);
}

bool AddressGuard::refuses(const Rules& rules, const ip::address& given) {
    const ip::address address = without_mapping(given);
    if (std::ranges::binary_search(rules.own, address)) {
        return true;
    }
    if (address.is_v6()) {
        const auto bytes = address.to_v6().to_bytes();
        for (const Prefix& prefix : rules.nat64) {
            if (std::equal(
                    bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(prefix.bits / 8),
                    prefix.bytes.begin()
                )) {
                return refuses(rules, embedded(bytes, prefix.bits));
            }
        }
    }
    return is_private_address(address.to_string());
}

bool AddressGuard::refuses_name(std::string_view host) const {
    const auto known = rules();
    return is_guarded_name(host) ||
           std::ranges::find(known->own_names, plain_name(host)) != known->own_names.end();
}

bool AddressGuard::refuses(const ip::address& address) const {
    return refuses(*rules(), address);
}

}  // namespace comfyd::net
