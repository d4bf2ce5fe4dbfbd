// Published data of the studies, read for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "haloscope/core/names.hpp"

using Row = std::map<std::string, std::string>;

/// The rows of a file such as davis2017/data/decomposition.csv, by column name.
inline std::vector<Row> published(const std::string& file) {
  const std::filesystem::path root = HALOSCOPE_STUDIES_FOLDER;
  std::ifstream in(root / file);
  if (!in) throw std::runtime_error("cannot read " + (root / file).string());
  std::string line;
  std::getline(in, line);
  const auto columns = haloscope::split(line, ',');
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const auto words = haloscope::split(line, ',');
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = words.at(i);
    rows.push_back(row);
  }
  return rows;
}

inline int number(const Row& row, const std::string& column) { return std::stoi(row.at(column)); }
