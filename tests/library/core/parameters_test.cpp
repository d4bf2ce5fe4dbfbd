// Parameters of apps: values that users may write, and refusals with their reasons.
#include "haloscope/extend/parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "haloscope/error.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::error_of;

const Parameter flag{.name = "flag", .value = true, .help = ""};
const Parameter whole{.name = "whole", .value = std::int64_t{3}, .help = "", .least = -2, .most = 9};
const Parameter real{.name = "real", .value = 0.5, .help = "", .least = 0};
const Parameter word{.name = "word", .value = std::string("zero"), .help = "", .words = {"zero", "random", "gaussian"}};
const Parameter text{.name = "text", .value = std::string("any"), .help = ""};
const Parameter list{.name = "list", .value = std::vector<double>{1, 2}, .help = "", .most = 100};

/// The text of the UsageError that reading `input` gets; empty when it is read.
std::string refusal(const Parameter& parameter, const std::string& input) {
  return error_of([&] { parse_value(parameter, input); });
}

std::string refusal_of(const Parameter& parameter, const ParameterValue& value) {
  return error_of([&] { checked_value(parameter, value); });
}

void expect_refused(const Parameter& parameter, const std::vector<std::string>& texts, const std::string& wanted) {
  for (const std::string& input : texts)
    EXPECT_EQ(refusal(parameter, input),
              "parameter " + parameter.name + " = '" + input + "' is not possible; give " + wanted);
}

TEST(ParameterText, AFlagIsOnOrOff) {
  EXPECT_EQ(parse_value(flag, "on"), ParameterValue(true));
  EXPECT_EQ(parse_value(flag, "off"), ParameterValue(false));
  expect_refused(flag, {"", "1", "true", "On", "on "}, "on or off");
}

TEST(ParameterText, AWholeNumberHasNeitherFractionNorBlanksAndIsInRange) {
  EXPECT_EQ(parse_value(whole, "7"), ParameterValue(std::int64_t{7}));
  EXPECT_EQ(parse_value(whole, "-2"), ParameterValue(std::int64_t{-2}));
  EXPECT_EQ(parse_value(whole, "9"), ParameterValue(std::int64_t{9}));
  expect_refused(whole,
                 {"", "x", "1.5", "1.0", "1e0", " 1", "1 ", "1x", "+1", "-3", "10", "nan", "9223372036854775808"},
                 "a whole number from -2 to 9");
}

TEST(ParameterText, ARealNumberIsFiniteAndInRange) {
  EXPECT_EQ(parse_value(real, "0"), ParameterValue(0.0));
  EXPECT_EQ(parse_value(real, "1e-3"), ParameterValue(1e-3));
  EXPECT_EQ(parse_value(real, "12"), ParameterValue(12.0));
  expect_refused(real, {"", "x", "nan", "-nan", "inf", "infinity", "1e400", "-inf", "-1e-300", "1,5", "1.5 "},
                 "a finite number of 0 or more");
}

TEST(ParameterText, ARangeIsToldAsFarAsThereIsOne) {
  Parameter p{.name = "p", .value = 1.0, .help = ""};
  EXPECT_PART(refusal(p, "nan"), "give a finite number");
  EXPECT_FALSE(test::has_part(refusal(p, "nan"), " of "));
  p.most = 2.5;
  EXPECT_PART(refusal(p, "3"), "a finite number of 2.5 or less");
  p.least = -1e-6;
  EXPECT_PART(refusal(p, "3"), "a finite number from -1e-06 to 2.5");
}

TEST(ParameterText, AWordIsOneOfItsWordsAndTheNearestIsNamed) {
  EXPECT_EQ(parse_value(word, "random"), ParameterValue(std::string("random")));
  EXPECT_EQ(refusal(word, "randmo"), "unknown value of parameter word 'randmo'; did you mean random?");
  EXPECT_EQ(refusal(word, "gauss"), "unknown value of parameter word 'gauss'; did you mean gaussian?");
  EXPECT_EQ(refusal(word, ""), "unknown value of parameter word ''; valid names are zero, random, gaussian");
  EXPECT_EQ(refusal(word, "something else"),
            "unknown value of parameter word 'something else'; valid names are zero, random, gaussian");
}

TEST(ParameterText, TextWithoutWordsIsAnyText) {
  for (const char* input : {"", "a b", "1,2", "on"})
    EXPECT_EQ(parse_value(text, input), ParameterValue(std::string(input)));
}

TEST(ParameterText, SeveralNumbersAreSeparatedByCommasEachInRange) {
  EXPECT_EQ(parse_value(list, "1"), ParameterValue(std::vector<double>{1}));
  EXPECT_EQ(parse_value(list, "1,-2.5,1e2"), ParameterValue(std::vector<double>{1, -2.5, 100}));
  expect_refused(list, {"x", "1,", "1,,2", ",1", "1;2", "1, 2", "1,nan", "inf,1", "1,101"},
                 "finite numbers of 100 or less, separated by commas");
}

TEST(ParameterText, IsReadBackAsTheSameValue) {
  for (const Parameter& p : {flag, whole, real, word, text, list}) EXPECT_EQ(parse_value(p, to_text(p.value)), p.value);
  Parameter any{.name = "any", .value = 0.0, .help = ""};
  for (const double number : {0.1, 1.0 / 3, 1e300, 5e-324, -2.5, 123456789.0, 0x1.fffffffffffffp1023})
    EXPECT_EQ(parse_value(any, to_text(number)), ParameterValue(number)) << to_text(number);
  EXPECT_TRUE(std::signbit(std::get<double>(parse_value(any, to_text(-0.0)))));
  any.value = std::vector<double>{};
  const ParameterValue several = std::vector<double>{0.1, -1e-7, 3};
  EXPECT_EQ(parse_value(any, to_text(several)), several);
}

TEST(ParameterValues, AWholeNumberCountsAsARealOne) {
  EXPECT_EQ(checked_value(real, std::int64_t{4}), ParameterValue(4.0));
  EXPECT_PART(refusal_of(real, std::int64_t{-4}), "a finite number of 0 or more");
}

TEST(ParameterValues, OfAnotherTypeAreRefused) {
  const std::vector<Parameter> all{flag, whole, real, word, text, list};
  for (const Parameter& p : all)
    for (const Parameter& other : all) {
      const bool fits = p.value.index() == other.value.index() || (&p == &all[2] && &other == &all[1]);
      if (fits) continue;
      const std::string message = refusal_of(p, other.value);
      EXPECT_EQ(message.find("parameter " + p.name + " = '" + to_text(other.value) + "' is not possible; give "), 0u)
          << p.name << " from " << other.name << ": " << message;
      EXPECT_FALSE(message.ends_with("give ") || message.ends_with("of ")) << message;
    }
}

TEST(ParameterValues, ThatAreNotFiniteOrOutOfRangeAreRefused) {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity(), -1e-9}) {
    EXPECT_NE(refusal_of(real, number), "no error");
    EXPECT_NE(refusal_of(list, std::vector<double>{1, -number * std::numeric_limits<double>::infinity()}), "no error");
  }
  EXPECT_NE(refusal_of(whole, std::int64_t{10}), "no error");
  EXPECT_NE(refusal_of(whole, std::int64_t{-3}), "no error");
  EXPECT_NE(refusal_of(word, std::string("nothing")), "no error");
}

TEST(ParameterSets, HoldWhatIsSetAndDefaultsForTheRest) {
  const Parameters set({flag, whole, real, word, text, list},
                       {{"whole", std::int64_t{5}}, {"real", std::int64_t{2}}, {"word", std::string("random")}},
                       "mine");
  EXPECT_TRUE(set.flag("flag"));
  EXPECT_EQ(set.integer("whole"), 5);
  EXPECT_EQ(set.real("real"), 2.0);
  EXPECT_EQ(set.word("word"), "random");
  EXPECT_EQ(set.word("text"), "any");
  EXPECT_EQ(set.reals("list"), (std::vector<double>{1, 2}));
  EXPECT_EQ(set.all().size(), 6u);
  EXPECT_EQ(set, Parameters({flag, whole, real, word, text, list},
                            {{"whole", std::int64_t{5}}, {"real", 2.0}, {"word", std::string("random")}}, "mine"));
}

std::string set_refusal(const std::vector<Parameter>& schema, const Parameters::Given& values) {
  return error_of([&] { Parameters(schema, values, "mine"); });
}

TEST(ParameterSets, RefuseUnknownNamesAndNameTheNearest) {
  EXPECT_EQ(set_refusal({whole, real, list}, {{"raal", 1.0}}),
            "unknown parameter of app 'mine' 'raal'; did you mean real?");
  EXPECT_EQ(set_refusal({whole, real}, {{"velocity", 1.0}}),
            "unknown parameter of app 'mine' 'velocity'; valid names are whole, real");
  EXPECT_EQ(set_refusal({}, {{"real", 1.0}}), "app 'mine' has no parameters; drop --set real=...");
}

TEST(ParameterSets, RefuseValuesThatCannotBe) {
  EXPECT_PART(set_refusal({whole}, {{"whole", std::int64_t{99}}}), "from -2 to 9");
  EXPECT_PART(set_refusal({whole}, {{"whole", 1.5}}), "a whole number");
}

}  // namespace
}  // namespace haloscope
