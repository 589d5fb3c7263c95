#include "actors/jinja/budget.hpp"

namespace godwit::jinja {

outcome<void> budget::check() const {
  switch (cause_) {
  case cause::none:
    return {};
  case cause::steps:
    return stop(errc::too_large, "rendering takes more than " + std::to_string(limits_.steps) + " steps");
  case cause::memory:
    return stop(errc::too_large, "rendering needs more than " + std::to_string(limits_.memory) + " bytes");
  case cause::nesting:
    return stop(
      errc::too_large, "a value is nested more than " + std::to_string(limits_.nesting) + " levels deep");
  }
  return {};
}

} // namespace godwit::jinja
