#include "haloscope/model/range.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace haloscope::model {

std::string shown(double number) {
  char text[32];  // as by %g of printf, which depends on the locale of the program
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::general, 6).ptr};
}

void Range::note(const char* label, double amount, double low, double high) {
  auto known = std::find_if(needed_.begin(), needed_.end(), [&](const Needed& n) { return n.label == label; });
  if (known == needed_.end()) known = needed_.insert(known, {label, amount, amount, ""});
  known->least = std::min(known->least, amount);
  known->most = std::max(known->most, amount);
  known->known = shown(low) + (std::isinf(high) ? "" : " to " + shown(high));
}

std::vector<std::string> Range::texts() const {
  std::vector<std::string> texts;
  for (const Needed& n : needed_)
    texts.push_back(n.label + " of " + shown(n.least) + (n.most > n.least ? " to " + shown(n.most) : "") +
                    "; calibrated: " + n.known);
  return texts;
}

}  // namespace haloscope::model
