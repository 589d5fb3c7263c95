#pragma once

#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/generation.capnp.h"
#include "messages/schemas/session.capnp.h"
#include "messages/schemas/tokenizer.capnp.h"
#include "services/api/chat_request.hpp"
#include "services/api/header_fields.hpp"
#include "services/api/session_requests.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit {

/// What checked requests become on their way into the mesh.

letter<schema::RenderRequest> render_letter(const std::vector<client_message>& messages);

/// What the choices of a completion have in common.
struct generation_plan {
  tenant_id tenant;
  std::string model;
  letter<schema::RenderedChat> prompt;
  std::uint32_t max_tokens = 0;
  std::uint64_t seed = 0;  ///< of the first choice; each further one has the next number
  std::uint64_t group = 0; ///< to end them together
};

/// One try of one of them.
struct generation_begin {
  request_id request = 0;
  std::uint32_t choice = 0;
  std::span<const token_id> released; ///< tokens that came before; the next one follows from them
  std::uint32_t credit = 0;
};

letter<schema::GenerateRequest> generate_letter(
  const generation_plan& plan, sampling_settings sampling, const generation_begin& from);

/// @param model of the node, for a request that names none
/// @param seed  for a request that has none
letter<schema::SessionSettings> settings_letter(const create_session_request& request,
  const tenant_id& tenant, const std::string& model, std::uint64_t seed);

letter<schema::PostMessage> message_letter(const message_request& request, const std::string& key);

letter<schema::LocateRequest> locate_letter(const session_id& session, const tenant_id& tenant);

letter<schema::ListRequest> list_letter(const page_query& page, const tenant_id& tenant);

} // namespace godwit
