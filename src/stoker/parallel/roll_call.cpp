// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/roll_call.h"

#include <algorithm>
#include <sstream>

#include "stoker/base/fmt.h"

namespace stoker::parallel {
namespace {

constexpr std::size_t kNamed = 4;  // ranks in a sentence

std::string name_of(std::size_t rank, const Member& member) {
  return fmt::format("rank {} ({}, process {})", rank, member.host, member.process);
}

std::string list(const std::vector<std::string>& sentences) {
  const std::size_t named = std::min(kNamed, sentences.size());
  std::string text =
      fmt::format("{}", fmt::join(sentences.begin(), sentences.begin() + static_cast<long>(named), "; "));
  return sentences.size() > named ? text + fmt::format("; and {} more", sentences.size() - named) : text;
}

// All ranks wait: in different collectives, or over a connection that is gone.
std::string who_differs(const std::vector<Member>& members, const std::vector<std::optional<Standing>>& answers) {
  const Standing& first = *answers.front();
  for (std::size_t rank = 1; rank < answers.size(); ++rank) {
    if (answers[rank]->operation != first.operation) {
      return fmt::format("ranks do not take the same steps: {} waits in a {}, but {} in a {}", name_of(0, members[0]),
                         first.operation, name_of(rank, members[rank]), answers[rank]->operation);
    }
  }
  return "all ranks live, but a connection between them is gone";
}

// Of the ranks that answered: those that all others wait for, since they have begun fewer collectives.
std::string who_is_behind(const std::vector<Member>& members, const std::vector<std::optional<Standing>>& answers) {
  const auto fewer = [](const std::optional<Standing>& a, const std::optional<Standing>& b) {
    return a->newest < b->newest;
  };
  const auto [least, most] = std::ranges::minmax(answers, fewer);
  std::vector<std::string> behind;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    const Standing& standing = *answers[rank];
    const std::string name = name_of(rank, members[rank]);
    if (!standing.waits && standing.newest < most->newest) {
      behind.push_back(fmt::format("{} has not joined collective {} ({}) for {:.0f} s: it is busy elsewhere", name,
                                   most->newest, most->operation, standing.seconds));
    } else if (!standing.waits && least->newest == most->newest) {
      behind.push_back(
          fmt::format("{} has exchanged nothing for {:.0f} s: it is busy elsewhere", name, standing.seconds));
    }
  }
  return behind.empty() ? who_differs(members, answers) : list(behind);
}

}  // namespace

std::string to_text(const Standing& standing) {
  return fmt::format("{} {} {:.3f} {}", standing.newest, standing.waits ? 1 : 0, standing.seconds, standing.operation);
}

Standing standing_from(const std::string& text) {
  Standing standing;
  std::istringstream words(text);
  words >> standing.newest >> standing.waits >> standing.seconds;
  words.get();
  std::getline(words, standing.operation);
  return standing;
}

std::string who_is_missing(const std::vector<Member>& members, const std::vector<std::optional<Standing>>& answers,
                           const std::function<std::string(const Member&)>& look) {
  std::vector<std::string> silent;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (!answers[rank]) {
      const std::string known = look(members[rank]);
      silent.push_back(fmt::format(
          "{} {}", name_of(rank, members[rank]),
          known.empty() ? "does not answer: its process, its machine or the network to it is gone" : known));
    }
  }
  return silent.empty() ? who_is_behind(members, answers) : list(silent);
}

}  // namespace stoker::parallel
