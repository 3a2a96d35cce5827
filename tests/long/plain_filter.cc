// As plain as can be: candidates are collected in a vector, every operator is a loop.
#include "tests/long/plain_filter.h"

#include <bson/bson.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace strata::fault {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << std::endl;
  std::abort();
}

Json JsonAt(const bson_iter_t& at);

std::vector<std::pair<std::string, Json>> MembersAt(const bson_iter_t& at, bool named) {
  std::vector<std::pair<std::string, Json>> members;
  bson_iter_t child;
  if (!bson_iter_recurse(&at, &child)) Die("a container without members");
  while (bson_iter_next(&child)) {
    members.emplace_back(named ? bson_iter_key(&child) : "", JsonAt(child));
  }
  return members;
}

Json JsonAt(const bson_iter_t& at) {
  Json json;
  switch (bson_iter_type(&at)) {
    case BSON_TYPE_NULL:
      json.kind = Json::Kind::kNull;
      break;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
      json.kind = Json::Kind::kNumber;
      json.number = bson_iter_as_double(&at);
      break;
    case BSON_TYPE_BOOL:
      json.kind = Json::Kind::kBool;
      json.boolean = bson_iter_bool(&at);
      break;
    case BSON_TYPE_UTF8: {
      json.kind = Json::Kind::kString;
      uint32_t size = 0;
      const char* const text = bson_iter_utf8(&at, &size);
      json.text.assign(text, size);
      break;
    }
    case BSON_TYPE_DOCUMENT:
      json.kind = Json::Kind::kObject;
      json.members = MembersAt(at, true);
      break;
    case BSON_TYPE_ARRAY:
      json.kind = Json::Kind::kArray;
      json.members = MembersAt(at, false);
      break;
    default:
      Die("a value that JSON has not");
  }
  return json;
}

void AppendQuoted(const std::string& text, std::string& out) {
  char* const escaped = bson_utf8_escape_for_json(text.data(), static_cast<ssize_t>(text.size()));
  out += '"';
  out += escaped;
  out += '"';
  bson_free(escaped);
}

std::vector<std::string> Segments(const std::string& path) {
  const bool pointer = path.starts_with("/");
  const char separator = pointer ? '/' : '.';
  std::vector<std::string> segments(1);
  for (size_t i = pointer ? 1 : 0; i < path.size(); ++i) {
    if (path[i] == separator) {
      segments.emplace_back();
    } else if (pointer && path[i] == '~') {
      segments.back() += path[++i] == '0' ? '~' : '/';
    } else {
      segments.back() += path[i];
    }
  }
  return segments;
}

bool IsIndex(const std::string& segment) {
  return !segment.empty() && segment.size() < 6 && (segment == "0" || segment[0] != '0') &&
         std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
}

const Json& Missing() {
  static const Json missing;
  return missing;
}

// What the path leads to; `elements`: those of an array at its end too.
void Candidates(const Json& from, const std::vector<std::string>& path, size_t at, bool elements,
                std::vector<const Json*>& found) {
  if (at == path.size()) {
    found.push_back(&from);
    if (from.kind == Json::Kind::kArray && elements) {
      for (const auto& [name, element] : from.members) found.push_back(&element);
    }
  } else if (from.kind == Json::Kind::kObject) {
    const Json* const member = from.Member(path[at]);
    if (member == nullptr) {
      found.push_back(&Missing());
    } else {
      Candidates(*member, path, at + 1, elements, found);
    }
  } else if (from.kind == Json::Kind::kArray) {
    if (IsIndex(path[at]) &&
        static_cast<size_t>(std::atoi(path[at].c_str())) < from.members.size()) {
      const Json& element = from.members[static_cast<size_t>(std::atoi(path[at].c_str()))].second;
      Candidates(element, path, at + 1, elements && at + 1 < path.size(), found);
    }
    for (const auto& [name, element] : from.members) {
      if (element.kind == Json::Kind::kObject) {
        Candidates(element, path, at, elements, found);
      }
    }
  } else {
    found.push_back(&Missing());
  }
}

bool Comparable(const Json& a, const Json& b) {
  return a.kind == b.kind && (a.kind == Json::Kind::kNumber || a.kind == Json::Kind::kString);
}
bool Less(const Json& a, const Json& b) {
  return a.kind == Json::Kind::kNumber ? a.number < b.number : a.text < b.text;
}

bool HasType(const Json& value, const std::string& type) {
  switch (value.kind) {
    case Json::Kind::kString:
      return type == "string";
    case Json::Kind::kObject:
      return type == "object";
    case Json::Kind::kArray:
      return type == "array";
    case Json::Kind::kBool:
      return type == "bool";
    case Json::Kind::kNumber:
      return type == "number";
    case Json::Kind::kNull:
      return type == "null";
    case Json::Kind::kMissing:
      break;
  }
  return false;
}

bool HasText(const Json& value, const std::string& pattern) {
  if (value.kind != Json::Kind::kString) return false;
  if (pattern.starts_with("^")) return value.text.starts_with(pattern.substr(1));
  return value.text.find(pattern) != std::string::npos;
}

bool Holds(const std::string& operation, const Json& operand, const Json& document,
           const std::vector<std::string>& path);

// All operators of an operator object.
bool HoldAll(const Json& operators, const Json& document, const std::vector<std::string>& path) {
  return std::all_of(operators.members.begin(), operators.members.end(), [&](const auto& each) {
    return Holds(each.first, each.second, document, path);
  });
}

bool IsOperators(const Json& condition) {
  return condition.kind == Json::Kind::kObject && !condition.members.empty() &&
         condition.members[0].first.starts_with("$");
}

bool ElementMatches(const Json& condition, const Json& element) {
  if (IsOperators(condition)) return HoldAll(condition, element, {});
  return element.kind == Json::Kind::kObject && PlainlyMatches(condition, element);
}

bool Holds(const std::string& operation, const Json& operand, const Json& document,
           const std::vector<std::string>& path) {
  if (operation == "$ne") return !Holds("$eq", operand, document, path);
  if (operation == "$nin") return !Holds("$in", operand, document, path);
  if (operation == "$not") return !HoldAll(operand, document, path);
  if (operation == "$all") {
    return !operand.members.empty() &&
           std::all_of(operand.members.begin(), operand.members.end(),
                       [&](const auto& each) { return Holds("$eq", each.second, document, path); });
  }
  const bool whole = operation == "$size" || operation == "$elemMatch";
  std::vector<const Json*> candidates;
  Candidates(document, path, 0, !whole, candidates);
  if (operation == "$exists") {
    return operand.boolean ==
           std::any_of(candidates.begin(), candidates.end(),
                       [](const Json* each) { return each->kind != Json::Kind::kMissing; });
  }
  return std::any_of(candidates.begin(), candidates.end(), [&](const Json* each) {
    if (operation == "$eq") {
      return *each == operand ||
             (operand.kind == Json::Kind::kNull && each->kind == Json::Kind::kMissing);
    }
    if (operation == "$in") {
      return std::any_of(operand.members.begin(), operand.members.end(),
                         [&](const auto& one) { return one.second == *each; });
    }
    if (operation == "$gt") return Comparable(*each, operand) && Less(operand, *each);
    if (operation == "$gte") return Comparable(*each, operand) && !Less(*each, operand);
    if (operation == "$lt") return Comparable(*each, operand) && Less(*each, operand);
    if (operation == "$lte") return Comparable(*each, operand) && !Less(operand, *each);
    if (operation == "$type") return HasType(*each, operand.text);
    if (operation == "$regex") return HasText(*each, operand.text);
    if (each->kind != Json::Kind::kArray) return false;
    if (operation == "$size") return static_cast<double>(each->members.size()) == operand.number;
    if (operation == "$elemMatch") {
      return std::any_of(each->members.begin(), each->members.end(), [&](const auto& element) {
        return ElementMatches(operand, element.second);
      });
    }
    Die("operator " + operation);
  });
}

bool MatchesAny(const Json& filters, const Json& document) {
  return std::any_of(filters.members.begin(), filters.members.end(),
                     [&](const auto& each) { return PlainlyMatches(each.second, document); });
}

}  // namespace

const Json* Json::Member(const std::string& name) const {
  for (const auto& [member, value] : members) {
    if (member == name) return &value;
  }
  return nullptr;
}

void SortMembers(Json& json) {
  for (auto& [name, value] : json.members) SortMembers(value);
  if (json.kind != Json::Kind::kObject) return;
  std::sort(json.members.begin(), json.members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

Json JsonOf(const std::string& bson) {
  Json json;
  json.kind = Json::Kind::kObject;
  bson_iter_t at;
  if (!bson_iter_init_from_data(&at, reinterpret_cast<const uint8_t*>(bson.data()), bson.size())) {
    Die("not BSON");
  }
  while (bson_iter_next(&at)) json.members.emplace_back(bson_iter_key(&at), JsonAt(at));
  return json;
}

std::string TextOf(const Json& json) {
  std::string text;
  switch (json.kind) {
    case Json::Kind::kMissing:
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kNumber:
      return std::to_string(json.number);
    case Json::Kind::kBool:
      return json.boolean ? "true" : "false";
    case Json::Kind::kString:
      AppendQuoted(json.text, text);
      return text;
    case Json::Kind::kObject:
    case Json::Kind::kArray:
      break;
  }
  const bool object = json.kind == Json::Kind::kObject;
  for (const auto& [name, value] : json.members) {
    if (!text.empty()) text += ", ";
    if (object) {
      AppendQuoted(name, text);
      text += ": ";
    }
    text += TextOf(value);
  }
  return (object ? "{" : "[") + text + (object ? "}" : "]");
}

bool PlainlyMatches(const Json& filter, const Json& document) {
  return std::all_of(filter.members.begin(), filter.members.end(), [&](const auto& each) {
    const auto& [name, condition] = each;
    if (name == "$and") {
      return std::all_of(condition.members.begin(), condition.members.end(),
                         [&](const auto& one) { return PlainlyMatches(one.second, document); });
    }
    if (name == "$or") return MatchesAny(condition, document);
    if (name == "$nor") return !MatchesAny(condition, document);
    const std::vector<std::string> path = Segments(name);
    if (IsOperators(condition)) return HoldAll(condition, document, path);
    return Holds("$eq", condition, document, path);
  });
}

}  // namespace strata::fault
