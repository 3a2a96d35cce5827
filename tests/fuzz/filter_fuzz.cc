// Filters, as clients send them: whatever compiles gives each document one answer, and the
// operators that are each other's negation agree on it.
#include <optional>
#include <string>

#include "schemas/document/filter.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;
using document::Filter;
using document::Limits;
using document::Value;

constexpr int kFilterDepthMax = 6;

// A document of a few members that are named as they are added.
class Builder {
 public:
  Builder() : start_(document::BeginDocument(bytes_)) {}
  Builder& Add(std::string_view name, const Value& value) {
    document::AppendMember(value.type, name, value.bytes, bytes_);
    return *this;
  }
  std::string Take() {
    document::EndDocument(start_, bytes_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  size_t start_;
};

Value Object(std::string_view name, const Value& value) {
  return {document::kBsonObject, Builder().Add(name, value).Take()};
}
Value ListOf(const Value& value) {
  return {document::kBsonArray, Builder().Add("0", value).Take()};
}
Value Text(std::string_view text) {
  Value value{document::kBsonString, {}};
  document::AppendStringValue(text, value.bytes);
  return value;
}

class FilterMaker {
 public:
  FilterMaker(Input& input, const Content& content) : input_(input), content_(content) {}

  std::string Clauses(int depth) {
    Builder builder;
    if (depth >= kFilterDepthMax || input_.Below(4) != 0) {
      builder.Add(FieldName(), Condition(depth));
      if (input_.Chance(4)) builder.Add(FieldName() + "x", Condition(depth));
      return builder.Take();
    }
    static constexpr std::string_view kLogic[] = {"$and", "$or", "$nor"};
    Builder list;
    document::IndexName index;
    for (size_t i = 1 + input_.Below(3); i > 0; --i, index.Next()) {
      list.Add(index.text(), {document::kBsonObject, Clauses(depth + 1)});
    }
    return builder.Add(kLogic[input_.Below(3)], {document::kBsonArray, list.Take()}).Take();
  }

  // Dotted, or a pointer.
  std::string FieldName() {
    const document::Path path = input_.Path(content_);
    if (input_.Chance(3)) return path.ToString();
    std::string name;
    for (const std::string& segment : path.segments()) {
      if (!name.empty()) name += '.';
      name += segment;
    }
    return name.empty() ? "a" : name;
  }

  // At times just what the document has.
  Value Operand() {
    std::string_view container = content_.bytes();
    Value found = input_.Value();
    for (size_t steps = input_.Below(4); steps > 0; --steps) {
      document::MemberReader reader(container);
      document::Member member;
      for (size_t at = 1 + input_.Below(4); at > 0 && reader.Next(member); --at) {
        found = {member.type, std::string(member.value)};
        if (document::IsContainer(member.type)) container = member.value;
      }
    }
    return found;
  }

  Value Condition(int depth) {
    switch (input_.Below(12)) {
      case 0:
        return Operand();
      case 1:
        return Object("$exists", {document::kBsonBool, std::string(1, input_.Chance(2) ? 1 : 0)});
      case 2: {
        static constexpr std::string_view kTypes[] = {"number", "string", "null",  "array",
                                                      "object", "int",    "minKey"};
        return Object("$type", Text(kTypes[input_.Below(std::size(kTypes))]));
      }
      case 3: {
        Value size{document::kBsonInt64, {}};
        document::AppendNumber(static_cast<int64_t>(input_.Below(6)) - 1, size.bytes);
        return Object("$size", size);
      }
      case 4:
        return {document::kBsonObject, Builder()
                                           .Add("$regex", Text(input_.Text()))
                                           .Add("$options", Text(input_.Chance(2) ? "ims" : ""))
                                           .Take()};
      case 5:
        if (depth >= kFilterDepthMax) return Operand();
        return Object("$elemMatch", input_.Chance(2)
                                        ? Value{document::kBsonObject, Clauses(depth + 1)}
                                        : Condition(depth + 1));
      case 6:
        if (depth >= kFilterDepthMax) return Operand();
        return Object("$not", Condition(depth + 1));
      case 7: {
        static constexpr std::string_view kLists[] = {"$in", "$nin", "$all"};
        const std::string_view name = kLists[input_.Below(3)];
        return Object(name, input_.Chance(2) ? ListOf(Operand()) : input_.Array());
      }
      default: {
        static constexpr std::string_view kCompare[] = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"};
        return Object(kCompare[input_.Below(std::size(kCompare))], Operand());
      }
    }
  }

 private:
  Input& input_;
  const Content& content_;
};

std::optional<bool> Answer(std::string bytes, const Content& content) {
  const auto filter = Filter::Compile(Content::FromTrusted(std::move(bytes)));
  if (!filter.ok()) return std::nullopt;
  return filter->Matches(content);
}

// Both compile and answer each other's opposite, or at least one is refused.
void RequireOpposite(std::string_view path, const Value& yes, const Value& no,
                     const Content& content, std::string_view what) {
  const auto one = Answer(Builder().Add(path, yes).Take(), content);
  const auto other = Answer(Builder().Add(path, no).Take(), content);
  Require(!one || !other || *one != *other, what);
}

void CheckFilter(const std::string& bytes, const Content& content) {
  const auto filter = Filter::Compile(Content::FromTrusted(bytes));
  if (!filter.ok()) return;
  const bool matches = filter->Matches(content);
  Require(filter->Matches(content) == matches, "the answer stays the same");
  Require(filter->bytes() == bytes, "a filter is what was given");
  const Value clause{document::kBsonObject, bytes};
  const auto not_it = Answer(Builder().Add("$nor", ListOf(clause)).Take(), content);
  Require(!not_it || *not_it != matches, "$nor of one filter is its negation");
  const auto same = Answer(Builder().Add("$and", ListOf(clause)).Take(), content);
  Require(!same || *same == matches, "$and of one filter is the filter");
  const auto either = Answer(Builder().Add("$or", ListOf(clause)).Take(), content);
  Require(!either || *either == matches, "$or of one filter is the filter");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Content content = input.Document();
  FilterMaker maker(input, content);
  CheckFilter(maker.Clauses(1), content);
  const std::string path = maker.FieldName();
  const Value operand = maker.Operand();
  RequireOpposite(path, Object("$eq", operand), Object("$ne", operand), content, "$ne denies $eq");
  RequireOpposite(path, Object("$in", ListOf(operand)), Object("$nin", ListOf(operand)), content,
                  "$nin denies $in");
  const Value condition = maker.Condition(kFilterDepthMax);
  RequireOpposite(path, condition, Object("$not", condition), content, "$not denies its condition");
  if (const auto raw = Content::FromBson(input.Bytes(), Limits{}); raw.ok()) {
    CheckFilter(std::string(raw->bytes()), content);
  }
  return 0;
}

}  // namespace strata::fuzz
