#include "schemas/document/path.h"

#include <gtest/gtest.h>
