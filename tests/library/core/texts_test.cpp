// Texts and files of others: their printed form, the JSON that is read, the refusals.
#include "texts.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <locale>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/file.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/profile.hpp"

namespace haloscope::test {
namespace {

TEST(Texts, AreShownWithoutWhatSteersATerminal) {
  EXPECT_EQ(shown("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82"), "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82");
  EXPECT_EQ(shown("\x1b]52;c;\x07\n\t\x7f"), "\\x1b]52;c;\\x07\\x0a\\x09\\x7f");
  EXPECT_EQ(shown("\xc2\x9b \xe2\x80\xae \xe2\x81\xa6"), "\\x9b \\u202e \\u2066");
  EXPECT_EQ(shown("\xff\xc3 \xe2\x82"), "\\xff\\xc3 \\xe2\\x82");           // no UTF-8
  EXPECT_EQ(shown("\xc0\x80 \xed\xa0\x80"), "\\xc0\\x80 \\xed\\xa0\\x80");  // nor this: too long, half a character
  EXPECT_EQ(printable("two\nlines\x1b"), "two\nlines\\x1b");
}

TEST(Texts, AreCutBetweenCharacters) {
  EXPECT_EQ(shown(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shown(std::string(201, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(shown("\xc3\xa4\xc3\xa4\xc3\xa4", 2), "\xc3\xa4\xc3\xa4...");
}

TEST(Texts, OfErrorsArePrintable) {
  const UsageError error("name '\x1b[2J\xff'");
  EXPECT_STREQ(error.what(), "name '\\x1b[2J\\xff'");
  EXPECT_EQ(error.exit_code(), Exit::usage);
}

TEST(Texts, AreWrittenWholeOrNotAtAll) {
  TextStream text;
  EXPECT_THROW(text.setstate(std::ios::badbit), std::ios::failure) << "where memory is exhausted";
}

/// Numbers as in German: 1.234,5.
struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Texts, HaveTheSameNumbersInEveryLocaleOfTheProgram) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  TextStream text;
  text << 1234 << ' ' << 0.5;
  std::locale::global(before);
  EXPECT_EQ(text.str(), "1234 0.5");
  EXPECT_EQ(with_digits(1234.25, 1), "1234.2");
  EXPECT_EQ(with_digits(-1e308, 2).size(), 313u);
}

TEST(Texts, AreSplitAtEachSeparator) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split("", ','), Words{});
  EXPECT_EQ(split("one", ','), Words{"one"});
  EXPECT_EQ(split("one,,two", ','), (Words{"one", "", "two"}));
  EXPECT_EQ(split(",one,", ','), (Words{"", "one"}));
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParsedJson, IsReadToADepth) {
  EXPECT_EQ(parsed_json(nested(64), "it").dump(), nested(64));
  EXPECT_THROW(parsed_json(nested(65), "it"), UsageError);
  EXPECT_THROW(parsed_json(nested(1000000), "it"), UsageError);
  EXPECT_THROW(parsed_json(std::string(1000000, '['), "it"), UsageError);
  EXPECT_EQ(parsed_json("\"[[[[ \\\" [[\" ", "it"), "[[[[ \" [[");
  EXPECT_EQ(parsed_json("\"" + std::string(100, '[') + "\"", "it").get<std::string>().size(), 100u);
}

TEST(ParsedJson, HasNoNumbersThatAreNone) {
  for (const char* text : {"", "{", "NaN", "[Infinity]", "1e999", "\"\xff\""})
    EXPECT_THROW(parsed_json(text, "it"), UsageError);
}

/// The reason why a text is refused.
std::string complaint(const std::string& text) {
  return error_of([&] { parsed_json(text, "it"); });
}

TEST(ParsedJson, IsRefusedWithThePlaceAndTheReason) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"{\"a\":}", "column 6: syntax error while parsing value - unexpected '}'"},
      {"[1,\n2,\n NaN]\n", "line 3, column 2: "},
      {"[1,\n\n", "line 3, column 1: "},
      {"[1, 1e999]", "column 9: number overflow"},  // nlohmann's own text has no place for this
      {"", "column 1: "}};
  for (const auto& [text, why] : refused)
    EXPECT_EQ(complaint(text).rfind("it is not JSON: " + why, 0), 0u) << complaint(text);
  EXPECT_LT(complaint("[\"" + std::string(1000, 'x')).size(), 300u) << "what was read last is cut";
}

TEST(ParsedJson, HasALength) { EXPECT_THROW(parsed_json(std::string(most_json_bytes, ' ') + "1", "it"), UsageError); }

/// A folder that ends with the test.
struct Folder {
  std::string path = std::filesystem::temp_directory_path() / "haloscope-test-XXXXXX";
  Folder() { static_cast<void>(mkdtemp(path.data())); }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// A file's text, or the reason why it cannot be read.
std::string text_of(const std::string& path, std::size_t most = 100) {
  try {
    return text_of_file(path, "the file", "give another", most);
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Files, AreRegularAndBounded) {
  const Folder folder;
  const std::string path = folder.path + "/file", pipe = folder.path + "/pipe";
  std::ofstream(path) << "text";
  EXPECT_EQ(text_of(path, 4), "text");
  EXPECT_EQ(text_of(path, 3), "cannot read the file " + path + ": it holds more than 3 bytes; give another");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& other : {pipe, folder.path, std::string("/dev/zero")})
    EXPECT_EQ(text_of(other), "cannot read the file " + other + ": it is not a regular file; give another");
  const std::string none = folder.path + "/none";
  EXPECT_EQ(text_of(none), "cannot read the file " + none + ": No such file or directory; give another");
  EXPECT_THROW(model::read_profile(pipe), UsageError);
  EXPECT_THROW(model::read_profile("/dev/zero"), UsageError);
}

/// A system where no file grows beyond this number of bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit most{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &most);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(Drafts, TakeThePlaceOfAFileThroughALinkWithItsPermissions) {
  const Folder folder;
  const std::string file = folder.path + "/file", link = folder.path + "/link";
  std::ofstream(file) << "old";
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  std::filesystem::create_symlink(file, link);
  Draft draft(link);
  draft.text() << "new";
  EXPECT_EQ(text_of(file), "old");
  EXPECT_TRUE(draft.keep());
  EXPECT_EQ(text_of(file), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  struct stat state {};
  ASSERT_EQ(stat(file.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0640u);
}

TEST(Drafts, ThatAreNotKeptOrNotWholeLeaveTheFileAlone) {
  const Folder folder;
  const std::string file = folder.path + "/file";
  std::ofstream(file) << "old";
  { Draft(file).text() << "never kept"; }
  {
    Draft draft(file);
    const FullDisk full(16);
    draft.text() << std::string(1000, 'x');
    EXPECT_FALSE(draft.keep());
  }
  EXPECT_FALSE(Draft(folder.path + "/none/file").keep());
  EXPECT_EQ(text_of(file), "old");
  EXPECT_EQ(files_in(folder.path), 1u);
}

TEST(Bounds, HaveTwoEndsAndAName) {
  ASSERT_GT(bounds().size(), 10u);
  for (const Bound& one : bounds()) EXPECT_LT(one.least, one.most) << one.name;
}

}  // namespace
}  // namespace haloscope::test
