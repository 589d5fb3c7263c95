#pragma once

#include "messages/text.hpp"
