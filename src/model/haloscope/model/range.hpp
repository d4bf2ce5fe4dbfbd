// Amounts beyond the calibrated range of a profile whose costs were needed, by kind of cost.
#pragma once

#include <string>
#include <vector>

namespace haloscope::model {

class Range {
 public:
  /// Notes an amount outside [low, high). @param label  a text that lives as long as the object.
  void check(const char* label, double amount, double low, double high) {
    if (!(low <= amount && amount < high)) note(label, amount, low, high);
  }
  /// For every cost the amounts needed and the range that the profile covers.
  std::vector<std::string> texts() const;

 private:
  void note(const char* label, double amount, double low, double high);

  struct Needed {
    std::string label;
    double least, most;
    std::string known;
  };
  std::vector<Needed> needed_;
};

/// A number as sentences print it, with at most six digits.
std::string shown(double number);

}  // namespace haloscope::model
