#include "services/link/keys.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <fstream>

using namespace godwit;
using namespace godwit::link;

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

mode_t mode_of(const std::filesystem::path& file) {
  struct stat about {};
  REQUIRE(::stat(file.c_str(), &about) == 0);
  return about.st_mode & 0777;
}

node_keys keys_of(const char* name) {
  auto made = make_keys(node_name(name));
  REQUIRE(made);
  return *made;
}

} // namespace

TEST_CASE("Z85 is the one of its specification") {
  // The key pair of CurveZMQ's test vectors in libzmq's manual (zmq_curve).
  const auto key = from_z85("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
  REQUIRE(key);
  const unsigned char expected[] = {0xBB, 0x88, 0x47, 0x1D, 0x65, 0xE2, 0x65, 0x9B, 0x30, 0xC5, 0x5A, 0x53,
    0x21, 0xCE, 0xBB, 0x5A, 0xAB, 0x2B, 0x70, 0xA3, 0x98, 0x64, 0x5C, 0x26, 0xDC, 0xA2, 0xB2, 0xFC, 0xB4,
    0x3F, 0xC5, 0x18};
  CHECK(std::equal(key->bytes.begin(), key->bytes.end(), std::begin(expected),
    [](std::byte a, unsigned char b) { return a == std::byte{b}; }));
  CHECK(to_z85(*key) == "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
}

TEST_CASE("texts that are no key are refused") {
  CHECK_FALSE(from_z85(""));
  CHECK_FALSE(from_z85(std::string(39, '0')));
  CHECK_FALSE(from_z85(std::string(41, '0')));
  CHECK_FALSE(from_z85(std::string(40, '~')));
  CHECK_FALSE(from_z85(std::string(39, '0') + '\0'));
  CHECK_FALSE(from_z85(std::string(40, '#'))); // a group over 2^32
  CHECK(from_z85(std::string(40, '0')));
}

TEST_CASE("keys are written for their owner alone and read back") {
  const temporary_folder folder;
  const auto made = keys_of("alpha");
  REQUIRE(save_keys(made, folder.path() / "keys"));
  const auto secret = secret_file(folder.path() / "keys", made.node);
  CHECK(mode_of(secret) == 0600);
  CHECK(mode_of(public_file(folder.path() / "keys", made.node)) == 0644);
  const auto back = load_keys(secret);
  REQUIRE(back);
  CHECK(back->node == made.node);
  CHECK(back->open == made.open);
  CHECK(back->secret.bytes() == made.secret.bytes());
  const auto known = load_known_keys(public_file(folder.path() / "keys", made.node));
  REQUIRE(known);
  REQUIRE(known->size() == 1);
  CHECK(known->front() == known_key{made.node, made.open});
}

TEST_CASE("the known pair of libzmq's manual is a pair here") {
  const temporary_folder folder;
  const auto file = folder.path() / "known.secret";
  write(file, "godwit-secret-1 known D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs\n");
  ::chmod(file.c_str(), 0600);
  const auto keys = load_keys(file);
  REQUIRE(keys);
  CHECK(to_z85(keys->open) == "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
}

TEST_CASE("two pairs of keys differ") {
  CHECK(keys_of("alpha").open != keys_of("alpha").open);
}

TEST_CASE("keys are not overwritten") {
  const temporary_folder folder;
  const auto first = keys_of("alpha");
  REQUIRE(save_keys(first, folder.path()));
  const auto again = save_keys(keys_of("alpha"), folder.path());
  REQUIRE_FALSE(again);
  CHECK(again.error().code == errc::conflict);
  CHECK(load_keys(secret_file(folder.path(), first.node))->open == first.open);
}

TEST_CASE("a secret that others can read is refused with what to do") {
  const temporary_folder folder;
  REQUIRE(save_keys(keys_of("alpha"), folder.path()));
  const auto file = secret_file(folder.path(), node_name("alpha"));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0777U}) {
    ::chmod(file.c_str(), mode);
    const auto out = load_keys(file);
    REQUIRE_FALSE(out);
    CHECK(out.error().code == errc::permission);
    CHECK(out.error().message.find("chmod 600") != std::string::npos);
  }
}

TEST_CASE("a secret behind a link is refused") {
  const temporary_folder folder;
  REQUIRE(save_keys(keys_of("alpha"), folder.path()));
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(secret_file(folder.path(), node_name("alpha")), link);
  CHECK(load_keys(link).error().code == errc::permission);
  CHECK(load_keys(folder.path() / "none").error().code == errc::not_found);
}

TEST_CASE("secret files that are none are refused") {
  const temporary_folder folder;
  const auto file = folder.path() / "x.secret";
  const std::string key = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
  for (const auto& text :
    {std::string(), std::string("\n"), "godwit-secret-1 known " + key, "godwit-secret-2 known " + key + "\n",
      "godwit-secret-1 " + key + "\n", "godwit-secret-1 a/b " + key + "\n",
      "godwit-secret-1 known " + key + "x\n", "godwit-secret-1 known  " + key + "\n",
      "godwit-secret-1 known " + key + "\n\n", std::string(2 << 20, 'x')}) {
    write(file, text);
    ::chmod(file.c_str(), 0600);
    const auto out = load_keys(file);
    REQUIRE_FALSE(out);
    CHECK(out.error().code == errc::corrupt);
    // A key is never part of a message.
    CHECK(out.error().message.find(key) == std::string::npos);
  }
}

TEST_CASE("an allow-list says which line is wrong") {
  const temporary_folder folder;
  const auto one = to_line({node_name("alpha"), keys_of("alpha").open});
  const auto two = to_line({node_name("beta"), keys_of("beta").open});
  const auto file = folder.path() / "known";
  write(file, "# our nodes\n\n" + one + "\n" + two);
  const auto known = load_known_keys(file);
  REQUIRE(known);
  REQUIRE(known->size() == 2);
  CHECK(known->back().node == node_name("beta"));
  write(file, one + "\n# x\ngodwit-public-1 beta short\n");
  const auto out = load_known_keys(file);
  REQUIRE_FALSE(out);
  CHECK(out.error().message.find("line 3") != std::string::npos);
}

TEST_CASE("an allow-list finds a node by its key") {
  const auto alpha = keys_of("alpha").open;
  const auto beta = keys_of("beta").open;
  allow_list list;
  REQUIRE(list.allow({node_name("alpha"), alpha}));
  REQUIRE(list.find(alpha));
  CHECK(*list.find(alpha) == node_name("alpha"));
  CHECK(list.find(beta) == nullptr);
  // Two nodes with one key could not be told apart.
  CHECK(list.allow({node_name("beta"), alpha}).error().code == errc::conflict);
  // A node's new key takes the place of the old one.
  REQUIRE(list.allow({node_name("alpha"), beta}));
  CHECK(list.find(alpha) == nullptr);
  CHECK(list.size() == 1);
  CHECK(list.forget(node_name("alpha")));
  CHECK_FALSE(list.forget(node_name("alpha")));
  CHECK(list.find(beta) == nullptr);
}
