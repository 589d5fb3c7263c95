#include "services/postgres/tables.hpp"

#include <catch2/catch.hpp>

using namespace godwit::postgres;

TEST_CASE("the schema's name takes its places in a statement") {
  CHECK(in_schema("SELECT * FROM @.a JOIN @.b", "godwit") == "SELECT * FROM godwit.a JOIN godwit.b");
  CHECK(in_schema("SELECT 1", "godwit") == "SELECT 1");
}

TEST_CASE("a schema has one lock for its migrations, and another schema another") {
  // FNV-1a of "godwit journal godwit": nodes of all versions have to agree upon it.
  CHECK(migration_lock("godwit") == -6925222907574792390);
  CHECK(migration_lock("godwit") != migration_lock("godwit_2"));
}

TEST_CASE("names of schemas that could be more than a name are no good") {
  for (const auto* bad : {"", "a b", "a;b", "A", "1a", "pg_x", "a\"b", "a.b"})
    CHECK_FALSE(good_schema_name(bad));
  CHECK(good_schema_name("godwit_2"));
}
