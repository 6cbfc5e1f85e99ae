// tools/repl/values.cpp - the text of values whose types only the compiler knows.
#include "tools/repl/values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <sstream>
#include <vector>

#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecordLayout.h"

#include <kassette/repl.h>

namespace repl {
namespace {

/// A value of the type T, which is at an address.
template <class T>
const T& at(const void* value) {
  return *static_cast<const T*>(value);
}

template <class T>
bool show(const void* value, std::ostream& out) {
  kassette::repl::show(at<T>(value), &out);
  return true;
}

bool write_builtin(const clang::BuiltinType& type, const void* value, std::ostream& out) {
  switch (type.getKind()) {
    case clang::BuiltinType::Bool: return show<bool>(value, out);
    case clang::BuiltinType::Char_S: return show<char>(value, out);
    case clang::BuiltinType::SChar: return show<signed char>(value, out);
    case clang::BuiltinType::UChar: return show<unsigned char>(value, out);
    case clang::BuiltinType::Short: return show<short>(value, out);
    case clang::BuiltinType::UShort: return show<unsigned short>(value, out);
    case clang::BuiltinType::Int: return show<int>(value, out);
    case clang::BuiltinType::UInt: return show<unsigned>(value, out);
    case clang::BuiltinType::Long: return show<long>(value, out);
    case clang::BuiltinType::ULong: return show<unsigned long>(value, out);
    case clang::BuiltinType::LongLong: return show<long long>(value, out);
    case clang::BuiltinType::ULongLong: return show<unsigned long long>(value, out);
    case clang::BuiltinType::Float: return show<float>(value, out);
    case clang::BuiltinType::Double: return show<double>(value, out);
    case clang::BuiltinType::LongDouble: return show<long double>(value, out);
    default: return false;
  }
}

/// Classes that the library prints, and texts.
bool write_known(const clang::CXXRecordDecl& record, const void* value, std::ostream& out) {
  const std::string name = record.getQualifiedNameAsString();
  if (name == "kassette::Tensor") return show<kassette::Tensor>(value, out);
  if (name == "kassette::Tensors") return show<kassette::Tensors>(value, out);
  if (name == "kassette::Shape") return show<kassette::Shape>(value, out);
  if (name == "kassette::DType") return show<kassette::DType>(value, out);
  if (name == "kassette::Device") return show<kassette::Device>(value, out);
  if (name == "kassette::Text") return show<kassette::Text>(value, out);
  if (name != "std::basic_string" && name != "std::__cxx11::basic_string") return false;
  auto* of = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record);
  if (!of || !of->getTemplateArgs()[0].getAsType()->isCharType()) return false;
  return show<std::string>(value, out);
}

/// A std::vector, whose first two members are where its elements begin and end.
bool write_vector(clang::ASTContext& context, const clang::CXXRecordDecl& record, const void* value,
                  std::ostream& out) {
  auto* of = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record);
  if (!of || record.getQualifiedNameAsString() != "std::vector") return false;
  const clang::QualType element = of->getTemplateArgs()[0].getAsType();
  if (element->isBooleanType()) return false;
  const char* const* ends = static_cast<const char* const*>(value);
  const std::int64_t size = context.getTypeSizeInChars(element).getQuantity(), count = (ends[1] - ends[0]) / size;
  out << '{';
  constexpr std::int64_t kShown = 100;
  for (std::int64_t i = 0; i < std::min(count, kShown); ++i) {
    out << (i == 0 ? "" : ", ");
    write_value(context, element, ends[0] + i * size, out);
  }
  if (count > kShown) out << ", ... " << count << " in all";
  out << '}';
  return true;
}

bool write_enumerator(const clang::EnumType& type, const clang::ASTContext& context, const void* value,
                      std::ostream& out) {
  std::uint64_t bits = 0;
  const auto size = static_cast<std::size_t>(context.getTypeSizeInChars(&type).getQuantity());
  std::memcpy(&bits, value, size);
  const auto width = static_cast<unsigned>(8 * size);
  for (const clang::EnumConstantDecl* e : type.getDecl()->enumerators())
    if (llvm::APInt(width, bits) == e->getInitVal().extOrTrunc(width)) {
      const std::string name = type.getDecl()->getNameAsString();
      out << (name.empty() ? "" : name + "::") << e->getNameAsString();
      return true;
    }
  return false;
}

/// Appends the members of a class and of its bases as texts, "name=value".
void write_members(clang::ASTContext& context, const clang::CXXRecordDecl& record, const char* value,
                   std::vector<std::string>* members) {
  const clang::ASTRecordLayout& layout = context.getASTRecordLayout(&record);
  for (const auto& base : record.bases())
    if (const auto* b = base.getType()->getAsCXXRecordDecl())
      write_members(context, *b, value + layout.getBaseClassOffset(b).getQuantity(), members);
  for (const clang::FieldDecl* field : record.fields()) {
    std::ostringstream out;
    out << field->getNameAsString() << '=';
    const auto offset =
        context.toCharUnitsFromBits(static_cast<std::int64_t>(layout.getFieldOffset(field->getFieldIndex())));
    const void* at = value + offset.getQuantity();
    if (field->getType()->isReferenceType()) std::memcpy(&at, at, sizeof at);
    if (field->isBitField()) out << "...";
    else write_value(context, field->getType().getNonReferenceType(), at, out);
    members->push_back(out.str());
  }
}

}  // namespace

bool has_text(clang::QualType type) {
  if (type.isNull()) return false;
  if (type->isEnumeralType()) return true;
  const clang::CXXRecordDecl* record = type->getAsCXXRecordDecl();
  if (!record || !record->hasDefinition() || record->isUnion() || record->isLambda() || record->isDynamicClass())
    return false;
  bool any = false;
  for (const auto& base : record->bases()) {
    if (base.getAccessSpecifier() != clang::AS_public || !has_text(base.getType())) return false;
    any = true;
  }
  for (const clang::FieldDecl* field : record->fields()) {
    if (field->getAccess() != clang::AS_public || field->getNameAsString().empty()) return false;
    any = true;
  }
  return any;
}

void write_value(clang::ASTContext& context, clang::QualType type, const void* value, std::ostream& out) {
  type = type.getCanonicalType().getUnqualifiedType();
  if (const auto* builtin = type->getAs<clang::BuiltinType>())
    if (write_builtin(*builtin, value, out)) return;
  if (const auto* enumeration = type->getAs<clang::EnumType>()) {
    if (write_enumerator(*enumeration, context, value, out)) return;
    return write_value(context, enumeration->getDecl()->getIntegerType(), value, out);
  }
  if (const auto* pointer = type->getAs<clang::PointerType>()) {
    const auto* p = at<const char*>(value);
    if (pointer->getPointeeType()->isCharType()) kassette::repl::show(p, &out);
    else if (p) out << static_cast<const void*>(p);
    else out << "nullptr";
    return;
  }
  clang::CXXRecordDecl* record = type->getAsCXXRecordDecl();
  if (record && (write_known(*record, value, out) || write_vector(context, *record, value, out))) return;
  if (!record || !has_text(type)) {
    out << '(' << type.getAsString(context.getPrintingPolicy()) << ')';
    return;
  }
  std::vector<std::string> members;
  write_members(context, *record, static_cast<const char*>(value), &members);
  bool lines = false;
  for (const std::string& m : members) lines = lines || m.find('\n') != std::string::npos;
  out << record->getNameAsString() << '(';
  for (std::size_t i = 0; i < members.size(); ++i) out << (i == 0 ? "" : lines ? ",\n" : ", ") << members[i];
  out << ')';
}

}  // namespace repl
