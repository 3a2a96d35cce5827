// JSON Merge Patch (RFC 7396) on BSON bytes.
#include "schemas/document/merge.h"

#include <vector>

#include "schemas/document/bson_view.h"
#include "schemas/document/member_index.h"

namespace strata::document {
namespace {

void AppendMergedMember(const Member& base, const Member& merge, std::string& out) {
  if (merge.type == kBsonNull) return;
  AppendMemberHead(merge.type, merge.name, out);
  if (merge.type == kBsonObject) {
    AppendMerged(base.type == kBsonObject ? base.value : kEmptyDocument, merge.value, out);
  } else {
    out += merge.value;
  }
}

}  // namespace

void AppendMerged(std::string_view base, std::string_view merge, std::string& out) {
  const std::vector<Member> changes = ReadMembers(merge);
  const MemberIndex index(changes);
  std::vector<bool> used(changes.size());
  const size_t start = BeginDocument(out);
  size_t expected = 0;
  Member member;
  for (MemberReader reader(base); reader.Next(member);) {
    const size_t change = index.Find(member.name, expected);
    if (change == kNoMember) {
      AppendMember(member, out);
      continue;
    }
    used[change] = true;
    expected = change + 1;
    AppendMergedMember(member, changes[change], out);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!used[i]) AppendMergedMember(Member{}, changes[i], out);
  }
  EndDocument(start, out);
}

}  // namespace strata::document
