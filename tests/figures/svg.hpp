#pragma once
// Figures read again, for the tests of what draws them.
#include <cstddef>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "testing.hpp"

namespace testing {

// At the edge of what can be drawn, and beyond it.
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double most = std::numeric_limits<double>::max();

struct Tag {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

/// A reader of just the XML that a figure may be: elements in order, and in `error` the first thing wrong.
struct Svg {
  explicit Svg(const std::string& source) : s(source) {
    while (error.empty() && i < s.size()) s[i] == '<' ? tag() : content();
    if (error.empty() && !open.empty()) error = "not closed: " + elements[open.back()].name;
  }
  void content() {
    const std::size_t end = std::min(s.find('<', i), s.size());
    std::string text = s.substr(i, end - i);
    for (std::size_t at = 0; (at = text.find('&', at)) != std::string::npos; ++at) {
      const std::string entity = text.substr(at, text.find(';', at) - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;") error = "bad entity " + entity;
      text.replace(at, entity.size(), entity == "&amp;" ? "&" : entity == "&lt;" ? "<" : ">");
    }
    if (!open.empty()) elements[open.back()].text += text;
    i = end;
  }
  void tag() {
    const std::size_t end = s.find('>', i);
    if (end == std::string::npos) return void(error = "a tag without end");
    std::string inside = s.substr(i + 1, end - i - 1);
    i = end + 1;
    if (inside[0] == '/') {
      if (open.empty() || elements[open.back()].name != inside.substr(1))
        return void(error = "closes wrongly: " + inside);
      return open.pop_back();
    }
    const bool empty = inside.back() == '/';
    if (empty) inside.pop_back();
    Tag e;
    std::size_t at = std::min(inside.find(' '), inside.size());
    e.name = inside.substr(0, at);
    while ((at = inside.find_first_not_of(' ', at)) != std::string::npos) {
      const std::size_t equals = inside.find("='", at), quote = inside.find('\'', equals + 2);
      if (equals == std::string::npos || quote == std::string::npos) return void(error = "attributes: " + inside);
      if (!e.attributes.emplace(inside.substr(at, equals - at), inside.substr(equals + 2, quote - equals - 2)).second)
        error = "an attribute twice: " + inside;
      at = quote + 1;
    }
    elements.push_back(e);
    if (!empty) open.push_back(elements.size() - 1);
  }
  std::vector<Tag> named(const std::string& name) const {
    std::vector<Tag> found;
    for (const auto& e : elements)
      if (e.name == name) found.push_back(e);
    return found;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    for (const auto& e : named("text")) found.push_back(e.text);
    return found;
  }
  bool says(const std::string& text) const {
    for (const auto& t : texts())
      if (t == text) return true;
    return false;
  }
  std::string s, error;
  std::size_t i = 0;
  std::vector<Tag> elements;
  std::vector<std::size_t> open;
};

/// What holds for every figure: well-formed, a title, a description, both colour sets, and everything inside.
inline Svg checked(const std::string& source) {
  const Svg svg(source);
  CHECK(svg.error == ""sv);
  REQUIRE(!svg.elements.empty());
  const Tag& root = svg.elements[0];
  CHECK(root.name == "svg"sv);
  CHECK(svg.elements.at(1).name == "title"sv);
  CHECK(!svg.elements.at(1).text.empty());
  CHECK(svg.elements.at(2).name == "desc"sv);
  CHECK(!svg.elements.at(2).text.empty());
  CHECK(svg.named("style").at(0).text.find("prefers-color-scheme:dark") != std::string::npos);
  const double width = root.number("width"), height = root.number("height");
  const auto inside = [&](double x, double y) { CHECK((x >= 0 && y >= 0 && x <= width && y <= height)); };
  for (const auto& e : svg.elements) {
    if (e.attributes.count("points") != 0) {
      std::istringstream points(e.attributes.at("points"));
      char comma;
      for (double x, y; points >> x >> comma >> y;) inside(x, y);
      CHECK(points.eof());
    }
    if (e.name == "rect" || e.name == "text") inside(e.number("x"), e.number("y"));
    if (e.name == "rect") inside(e.number("x") + e.number("width"), e.number("y") + e.number("height"));
    if (e.name == "line") inside(e.number("x1"), e.number("y1")), inside(e.number("x2"), e.number("y2"));
    if (e.name == "circle") inside(e.number("cx"), e.number("cy"));
  }
  return svg;
}

}  // namespace testing
