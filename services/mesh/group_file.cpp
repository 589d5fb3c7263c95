#include "services/mesh/group_file.hpp"

#include "services/mesh/block_yaml.hpp"

#include <charconv>
#include <optional>

namespace godwit {

namespace {

tl::unexpected<error> wrong(const block_yaml& where, const std::string& what) {
  return fail(errc::corrupt, "line " + std::to_string(where.line) + ": " + what);
}

result<std::uint16_t> port_of(const block_yaml& value) {
  std::uint16_t out = 0;
  const auto* const text = value.text();
  if (text != nullptr) {
    const auto* const end = text->data() + text->size();
    if (const auto [stop, code] = std::from_chars(text->data(), end, out);
        code == std::errc{} && stop == end && out != 0)
      return out;
  }
  return wrong(value, "a port is a number from 1 to 65535");
}

result<group_file::instance> instance_of(const block_yaml& value) {
  group_file::instance out;
  const auto* const address = value.find("address");
  if (address == nullptr || address->text() == nullptr || address->text()->empty())
    return wrong(value, "an instance has no address");
  out.address = *address->text();
  const auto* const ports = value.find("ports");
  if (ports == nullptr)
    return out;
  if (ports->fields() == nullptr)
    return wrong(*ports, "ports are not names with numbers");
  for (const auto& [name, number] : *ports->fields()) {
    const auto port = port_of(number);
    if (!port)
      return fail(port);
    out.ports.emplace(name, *port);
  }
  return out;
}

} // namespace

result<group_file> parse_group_file(std::string_view text) {
  const auto whole = block_yaml::parse(text);
  if (!whole)
    return fail(whole);
  group_file out;
  const auto* const group = whole->find("group");
  const auto* const name = group == nullptr ? nullptr : group->find("name");
  if (name == nullptr || name->text() == nullptr || name->text()->empty())
    return wrong(*whole, "there is no name of the group");
  out.name = *name->text();
  const auto* const roles = whole->find("roles");
  if (roles == nullptr || roles->fields() == nullptr)
    return wrong(*whole, "there are no roles");
  for (const auto& [role, about] : *roles->fields()) {
    const auto* const instances = about.find("instances");
    if (instances == nullptr || instances->items() == nullptr)
      return wrong(about, "the role " + role + " has no list of instances");
    auto& all = out.roles[role];
    for (const auto& each : *instances->items()) {
      auto one = instance_of(each);
      if (!one)
        return fail(one);
      all.push_back(std::move(*one));
    }
  }
  return out;
}

} // namespace godwit
