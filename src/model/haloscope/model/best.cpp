#include "haloscope/model/best.hpp"

#include <algorithm>
#include <cmath>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope::model {

namespace {

/// Throws for faults that no strategy, schedule or depth could fix.
void check(const Choice& choice) {
  for (const int number : {choice.depth, choice.threads, choice.tiles})
    if (number < 1)
      throw UsageError(std::to_string(number) + " is not a depth, number of threads or of tiles; use 1 or more");
  make_layout(choice);
  problem_of(choice);
}

std::string listed(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int n : numbers) words.push_back(std::to_string(n));
  return "[" + join(words, ", ") + "]";
}

int layers_at(Choice choice, int depth) {
  choice.depth = depth;
  return layers_of(choice);
}

/// Returns the depths that a halo has room for. Adds a note when others were requested.
std::vector<int> fitting_depths(const BestQuestion& q, std::vector<std::string>& notes) {
  const std::vector<int>& depths = q.depths.empty() ? usual_depths() : q.depths;
  const int least = *std::min_element(depths.begin(), depths.end());
  if (least < 1)
    throw UsageError("depths " + listed(depths) + " are not possible; give time steps per exchange, each >= 1");
  if (*std::max_element(depths.begin(), depths.end()) > bound.depth.most)
    throw UsageError("depths " + listed(depths) + " are not possible; give at most " +
                     std::to_string(static_cast<int>(bound.depth.most)) + " time steps per exchange");
  if (!q.halo) return depths;
  std::vector<int> fit;
  for (const int depth : depths)
    if (layers_at(q.choice, depth) <= *q.halo) fit.push_back(depth);
  if (fit.empty())
    throw UsageError("a halo of " + std::to_string(*q.halo) + " layers has no room for depth " + std::to_string(least) +
                     " of " + q.choice.app + ", which needs " + std::to_string(layers_at(q.choice, least)) +
                     "; give the field a wider halo");
  if (fit.size() < depths.size())
    notes.push_back("deeper exchanges were skipped: the field has " + std::to_string(*q.halo) + " ghost layers");
  return fit;
}

/// Sets the profile for a program's sweep: this cost per cell for every block and number of busy cores.
void replace_kernel(Profile& profile, const std::string& kernel, double seconds) {
  if (!(seconds > 0) || !std::isfinite(seconds))
    throw UsageError("seconds_per_cell " + shown(seconds) + " is not possible; give the seconds of one cell, > 0");
  Segment row;
  row.slope.value = seconds;
  if (!profile.kernels) profile.kernels.emplace();
  Table& table = (*profile.kernels)[kernel];
  table.clear();
  for (const int count : {1, profile.cores_per_socket}) table[count] = {row};
}

/// The part of the profile that holds for this program.
Profile profile_for(const BestQuestion& q, const Profile& profile) {
  Profile own = profile;
  if (!q.fused || q.seconds_per_cell) own.fused.clear();
  if (!q.shared_memory)
    std::erase_if(own.transports, [](const auto& entry) { return needs_shared_fields("ordered/" + entry.first); });
  if (q.seconds_per_cell) replace_kernel(own, kernel_of(Candidate(q.choice)), *q.seconds_per_cell);
  return own;
}

void check_kernels(const BestQuestion& q, const Profile& profile) {
  try {
    require_kernels(profile, sweep_names(Candidate(q.choice)));
  } catch (const UnavailableError& error) {
    throw UnavailableError(std::string(error.what()) +
                           "; or name the app whose sweep is like yours, or pass seconds_per_cell");
  }
}

}  // namespace

std::string standard_app(int dims) {
  if (dims == 2) return "laplace2d";
  if (dims == 3) return "laplace3d";
  std::vector<std::string> names;
  for (const App* app : apps()) names.push_back(app->name);
  throw UsageError("no app represents grids of " + std::to_string(dims) +
                   " dimensions; name one: " + join(names, ", "));
}

int layers_of(const Choice& choice) {
  int most = 0;
  const Candidate candidate(choice);
  for (const Stage& stage : candidate.step.stages)
    for (const SweepSpec& sweep : stage.sweeps)
      for (const Access& read : sweep.reads) most = std::max(most, read.layers);
  return choice.depth * most;
}

BestAnswer find_best(const BestQuestion& q, const Profile& profile) {
  BestAnswer answer;
  if (q.assumed_app)
    answer.notes.push_back("the sweep is assumed to be the sweep of " + q.choice.app +
                           "; name another app, or give seconds_per_cell, if it is not");
  check(q.choice);
  for (std::string& text : profile.foreign(q.cpu, q.mpi_library, "this program")) answer.notes.push_back(text);
  const std::vector<int> depths = fitting_depths(q, answer.notes);
  const Profile own = profile_for(q, profile);
  check_kernels(q, own);
  const Advice advice =
      advise(q.among ? candidates_of(*q.among) : candidates_of(q.choice, depths), own, {}, q.samples, Extent::best);
  answer.prediction = advice.candidates.front().prediction;
  for (const Ranked& other : advice.candidates)
    if (other.equal() && &other != &advice.candidates.front()) answer.equals.push_back(other.prediction.choice);
  for (const std::string& note : answer.prediction.notes) answer.notes.push_back(note);
  for (const std::string& text : answer.prediction.outside)
    answer.notes.push_back("outside the calibrated range: " + text);
  return answer;
}

}  // namespace haloscope::model
