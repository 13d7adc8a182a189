// Reads a module of PTX: what nvcc makes of kullback_cuda.cu, and no more.
#pragma once

#include <fstream>
#include <sstream>

#include "machine.h"

namespace ptx {

// f(T()) for the type of that name; of bits, for unsigned numbers.
template <class F>
Run ofType(const std::string &type, F f) {
  if (type == "f64") return f(double());
  if (type == "f32") return f(float());
  if (type == "s64") return f(int64_t());
  if (type == "s32") return f(int32_t());
  if (type == "s16") return f(int16_t());
  if (type == "s8") return f(int8_t());
  if (type == "u64" || type == "b64") return f(uint64_t());
  if (type == "u32" || type == "b32") return f(uint32_t());
  if (type == "u16" || type == "b16") return f(uint16_t());
  return type == "u8" || type == "b8" ? f(uint8_t()) : nullptr;
}

// Numbers that wrap around do so as unsigned ones.
template <class T>
auto wrapping() {
  if constexpr (std::is_integral_v<T>) {
    return std::make_unsigned_t<T>();
  } else {
    return T();
  }
}

template <class T, bool = (sizeof(T) < 8 && std::is_integral_v<T>)>
struct Twice {
  using type = T;
};

template <class T>
struct Twice<T, true> {
  using type = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 4, int64_t, int32_t>,
                                  std::conditional_t<sizeof(T) == 4, uint64_t, uint32_t>>;
};

// The instruction of a name less what is said of rounding to nearest and the like; null for one that is not known. `what` is the name
// without its type.
inline Run arithmetic(const std::string &what, const std::string &type) {
  return ofType(type, [&](auto zero) -> Run {
    using T = decltype(zero);
    using W = decltype(wrapping<T>());
    using D = typename Twice<T>::type;
    if (what == "add") return two<W, W, Add>;
    if (what == "sub") return two<W, W, Subtract>;
    if (what == "mul") return two<W, W, Multiply>;
    if (what == "neg") return one<W, W, Negate>;
    if (what == "min") return two<T, T, Least>;
    if (what == "max") return two<T, T, Most>;
    if constexpr (std::is_floating_point_v<T>) {
      if (what == "abs") return one<T, T, Magnitude>;
      if (what == "fma") return three<T, T, Fused>;
      if (what == "div") return two<T, T, Divide>;
      if (what == "sqrt") return one<T, T, Root>;
      if (what == "rcp") return one<T, T, Inverse>;
      if (what == "rcp.approx.ftz" && sizeof(T) == 8) return one<T, T, RoughInverse>;
    } else {
      if (what == "mad") return three<W, W, MultiplyAdd>;
      if (what == "div") return divide<T, Divide>;
      if (what == "rem") return divide<T, Remainder>;
      if (what == "and") return two<W, W, And>;
      if (what == "or") return two<W, W, Or>;
      if (what == "xor") return two<W, W, Xor>;
      if (what == "not") return one<W, W, Not>;
      if (what == "shl") return shift<W, Left>;
      if (what == "shr") return shift<T, Right>;
      if (what == "popc") return one<uint32_t, W, Population>;
      if (what == "bfi") return insertBits<W>;
      if (what == "prmt") return permuteBytes;
      if constexpr (std::is_signed_v<T>) {
        if (what == "abs") return one<T, T, Magnitude>;
      }
      if constexpr (sizeof(T) < 8) {
        if (what == "mul.wide") return two<D, T, MultiplyWide<D>>;
        if (what == "mad.wide") return three<D, T, MultiplyAddWide<D>>;
        if (what == "mul.hi") return two<T, T, MultiplyHigh<D>>;
      } else if (what == "mul.hi") {
        return two<T, T, MultiplyHigh<std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;
      }
    }
    if (what == "mov" || what == "cvta.to.global") return one<W, W, Same>;
    return nullptr;
  });
}

inline Run comparison(const std::string &type, int which) {
  return ofType(type, [&](auto zero) -> Run {
    using T = decltype(zero);
    const Run all[COMPARISONS] = {compare<T, EQ>, compare<T, NE>, compare<T, LT>, compare<T, LE>, compare<T, GT>, compare<T, GE>,
                                  compare<T, NUMBERS>};
    return all[which];
  });
}

inline Run conversion(const std::string &to, const std::string &from) {
  return ofType(to, [&](auto zero) { return ofType(from, [&](auto x) -> Run { return convert<decltype(zero), decltype(x)>; }); });
}

inline Run access(bool isLoad, int size) {
  return size == 8   ? (isLoad ? load<8> : store<8>)
         : size == 4 ? (isLoad ? load<4> : store<4>)
         : size == 2 ? (isLoad ? load<2> : store<2>)
                     : (isLoad ? load<1> : store<1>);
}

class Parser {
public:
  std::vector<std::unique_ptr<Kernel>> kernels;

  explicit Parser(const std::string &path) {
    std::ifstream in(path);
    if (!in) {
      stop("no file '" + path + "'");
    }
    std::string text;
    bool isSection = false; // of debugging information
    while (std::getline(in, text)) {
      line++;
      text = trimmed(text.substr(0, text.find("//")));
      if (text.rfind(".section", 0) == 0) {
        isSection = true;
      } else if (isSection) {
        isSection = text != "}";
      } else if (!text.empty()) {
        read(text);
      }
    }
  }

private:
  int line = 0, file = 0, sourceLine = 0;
  Kernel *kernel = nullptr;
  std::vector<std::map<std::string, int>> scopes;   // registers and, as −1 − number, predicates
  std::map<std::string, int64_t> symbols;           // of parameters and shared memory
  std::map<std::string, int> labels, registerOf;    // registerOf: constants
  std::vector<std::pair<int, std::string>> jumps;

  [[noreturn]] void refuse(const std::string &what) { stop("line " + std::to_string(line) + " is not understood: " + what); }

  static std::string trimmed(const std::string &s) {
    size_t from = s.find_first_not_of(" \t");
    return from == std::string::npos ? "" : s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
  }

  // Between separators that are not within brackets.
  static std::vector<std::string> split(const std::string &s, char separator = ',') {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (char c : s) {
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      if (c == separator && depth == 0) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    for (std::string &part : parts) part = trimmed(part);
    return parts;
  }

  void read(const std::string &text) {
    std::istringstream words(text);
    std::string word;
    words >> word;
    if (word == ".loc") {
      words >> file >> sourceLine;
    } else if (word == ".file") {
      std::string name;
      words >> file >> name;
      auto &files = state().files;
      files.resize(std::max(files.size(), (size_t)file + 1));
      files[file] = name.substr(name.rfind('/') + 1, name.rfind('"') - name.rfind('/') - 1);
    } else if (text.find(".entry ") != std::string::npos) {
      begin(text.substr(text.find(".entry ") + 7));
    } else if (word == ".param") {
      parameter(text);
    } else if (word == ".extern") {
      symbols[text.substr(text.rfind(' ') + 1, text.find('[') - text.rfind(' ') - 1)] = 0;
    } else if (word == ".reg") {
      declare(text);
    } else if (text == "{") {
      scopes.emplace_back();
    } else if (text == "}") {
      scopes.pop_back();
      if (scopes.empty()) {
        finish();
      }
    } else if (word == ".shared" || word == ".local") {
      refuse(text);
    } else if (word[0] != '.' && word != ")" && word[0] != '(') {
      size_t colon = text[0] == '$' ? text.find(':') : std::string::npos;
      if (colon != std::string::npos) {
        labels[text.substr(0, colon)] = (int)kernel->code.size();
      } else if (text.back() == ';') {
        instruction(text.substr(0, text.size() - 1));
      } else {
        refuse(text);
      }
    }
  }

  void begin(const std::string &name) {
    kernels.push_back(std::make_unique<Kernel>());
    kernel = kernels.back().get();
    kernel->name = name.substr(0, name.find('('));
    kernel->registers = SPECIALS;
    scopes.clear();
    labels.clear();
    registerOf.clear();
    jumps.clear();
    kernel->constants[ZERO] = 0;
  }

  // .param .align 8 .b8 NAME[SIZE] or .param .TYPE NAME
  void parameter(const std::string &text) {
    std::string name = text.substr(text.rfind(' ') + 1);
    size_t bracket = name.find('[');
    size_t dot = text.rfind('.', text.rfind(' '));
    int size = bracket == std::string::npos ? sizeOf(text.substr(dot + 1, text.rfind(' ') - dot - 1)) : std::stoi(name.substr(bracket + 1));
    kernel->parameterBytes = (kernel->parameterBytes + 15) / 16 * 16;
    symbols[name.substr(0, name.find_first_of("[,"))] = kernel->parameterBytes;
    kernel->parameterOffset.push_back(kernel->parameterBytes);
    kernel->parameterSize.push_back(size);
    kernel->parameterBytes += size;
  }

  static int sizeOf(const std::string &type) { return atoi(type.c_str() + 1) / 8; }

  // .reg .TYPE NAME; or .reg .TYPE NAME<COUNT>;
  void declare(const std::string &text) {
    bool isPredicate = text.find(".pred") != std::string::npos;
    std::string name = text.substr(text.find('%'), text.find(';') - text.find('%'));
    size_t bracket = name.find('<');
    int count = bracket == std::string::npos ? 1 : std::stoi(name.substr(bracket + 1));
    for (int n = 0; n < count; n++) {
      int number = isPredicate ? -1 - kernel->predicates++ : kernel->registers++;
      scopes.back()[bracket == std::string::npos ? name : name.substr(0, bracket) + std::to_string(n)] = number;
    }
  }

  int find(const std::string &name) {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      auto at = scope->find(name);
      if (at != scope->end()) {
        return at->second;
      }
    }
    refuse("'" + name + "'");
  }

  int predicate(const std::string &name) {
    int n = find(name);
    return n < 0 ? -1 - n : (refuse("no predicate"), 0);
  }

  // Also of a constant.
  int operand(const std::string &s) {
    static const std::map<std::string, int> special = {
        {"%tid.x", TID}, {"%ctaid.x", CTAID}, {"%ntid.x", NTID}, {"_", -1}};
    auto at = special.find(s);
    if (at != special.end()) {
      return at->second;
    }
    auto symbol = symbols.find(s);
    if (s[0] == '%') {
      int n = find(s);
      return n >= 0 ? n : (refuse("a predicate"), 0);
    }
    uint64_t value;
    if (symbol != symbols.end()) {
      value = (uint64_t)symbol->second;
    } else if (s.size() > 2 && (s[1] == 'd' || s[1] == 'f')) {
      value = std::stoull(s.substr(2), nullptr, 16);
    } else if (isdigit(s[0]) || s[0] == '-') {
      value = s[0] == '-' ? (uint64_t)std::stoll(s) : std::stoull(s, nullptr, 0);
    } else {
      refuse("'" + s + "'");
    }
    auto [known, isNew] = registerOf.insert({s, kernel->registers});
    if (isNew) {
      kernel->constants[kernel->registers++] = value;
    }
    return known->second;
  }

  // {A, B, …} or A
  std::vector<int> list(const std::string &s) {
    std::vector<int> all;
    for (auto &part : split(s[0] == '{' ? s.substr(1, s.size() - 2) : s)) all.push_back(operand(part));
    return all;
  }

  // [BASE] or [BASE+OFFSET]
  int address(const std::string &s, int64_t &offset) {
    std::string inner = s.substr(1, s.size() - 2);
    size_t plus = inner.find('+');
    offset = plus == std::string::npos ? 0 : std::stoll(inner.substr(plus + 1));
    return operand(inner.substr(0, plus));
  }

  void instruction(std::string text) {
    Instruction in;
    in.line = line;
    in.file = file;
    in.sourceLine = sourceLine;
    if (text[0] == '@') {
      size_t space = text.find_first_of(" \t");
      in.guarded = true;
      in.guardNegated = text[1] == '!';
      in.guard = predicate(text.substr(in.guardNegated ? 2 : 1, space - (in.guardNegated ? 2 : 1)));
      text = trimmed(text.substr(space));
    }
    size_t space = std::min(text.find_first_of(" \t"), text.size());
    std::vector<std::string> name = split(text.substr(0, space), '.');
    std::vector<std::string> args = split(text.substr(space));
    const std::string op = name[0];
    const std::string type = name.back();
    auto has = [&](const char *part) { return std::find(name.begin(), name.end(), part) != name.end(); };
    auto take = [&](size_t from = 0) {
      for (size_t n = from; n < args.size(); n++) in.o[n] = operand(args[n]);
    };
    if (op == "bra") {
      in.kind = BRANCH;
      in.run = nothing;
      jumps.push_back({(int)kernel->code.size(), args[0]});
    } else if (op == "ret") {
      in.kind = EXIT;
      in.run = nothing;
    } else if (op == "bar" && has("sync") && args[0] == "0" && args.size() == 1) {
      in.kind = BARRIER;
      in.run = nothing;
    } else if (type == "pred") { // and, or, xor, not, mov
      static const std::map<std::string, int> modes = {{"and", 'a'}, {"or", 'o'}, {"xor", 'x'}, {"not", 'n'}, {"mov", 'm'}};
      in.mode = modes.count(op) ? modes.at(op) : (refuse(text), 0);
      in.run = logic;
      for (size_t n = 0; n < args.size(); n++) {
        if (op == "mov" && n == 1 && args[n][0] != '%') {
          in.mode = args[n] == "0" ? '0' : '1';
        } else {
          in.o[n] = predicate(args[n]);
        }
      }
    } else if (op == "mov" && args[0][0] == '{') {
      std::vector<int> to = list(args[0]);
      in.o[0] = to[0];
      in.o[1] = to[1];
      in.o[2] = operand(args[1]);
      in.run = type == "b64" ? unpack : (Run) nullptr;
    } else if (op == "mov" && args[1][0] == '{') {
      std::vector<int> from = list(args[1]);
      in.o[0] = operand(args[0]);
      in.o[1] = from[0];
      in.o[2] = from[1];
      in.run = type == "b64" ? pack : (Run) nullptr;
    } else if (op == "setp") {
      static const std::map<std::string, std::pair<int, bool>> which = {
          {"eq", {EQ, false}}, {"ne", {NE, false}}, {"lt", {LT, false}}, {"le", {LE, false}}, {"gt", {GT, false}}, {"ge", {GE, false}},
          {"equ", {NE, true}}, {"neu", {EQ, true}}, {"ltu", {GE, true}}, {"leu", {GT, true}}, {"gtu", {LE, true}}, {"geu", {LT, true}},
          {"lo", {LT, false}}, {"ls", {LE, false}}, {"hi", {GT, false}}, {"hs", {GE, false}},
          {"num", {NUMBERS, false}}, {"nan", {NUMBERS, true}}};
      if (!which.count(name[1]) || has("xor")) {
        refuse(text);
      }
      in.run = comparison(type, which.at(name[1]).first);
      in.negated = which.at(name[1]).second;
      in.o[0] = predicate(args[0]);
      in.o[1] = operand(args[1]);
      in.o[2] = operand(args[2]);
      if (args.size() == 4) {
        in.mode = has("and") ? 'a' : 'o';
        in.o[3] = predicate(args[3]);
      }
    } else if (op == "selp") {
      for (int n = 0; n < 3; n++) in.o[n] = operand(args[n]);
      in.o[3] = predicate(args[3]);
      in.run = choose;
    } else if (op == "cvt") {
      take();
      static const std::map<std::string, int> modes = {
          {"rn", 'n'}, {"rz", 'z'}, {"rm", 'm'}, {"rp", 'p'}, {"rni", 'N'}, {"rzi", 'Z'}, {"rmi", 'M'}, {"rpi", 'P'}};
      if (name.size() == 4) {
        in.mode = modes.count(name[1]) ? modes.at(name[1]) : (refuse(text), 0);
      }
      in.run = conversion(name[name.size() - 2], type);
    } else if (op == "ld" || op == "st") {
      if (has("local") || has("const")) {
        refuse(text);
      }
      bool isLoad = op == "ld";
      in.space = has("shared") ? SHARED : has("param") ? PARAMETER : GLOBAL;
      int size = sizeOf(type);
      in.isSigned = type[0] == 's';
      in.o[0] = address(args[isLoad ? 1 : 0], in.offset);
      std::vector<int> values = list(args[isLoad ? 0 : 1]);
      in.parts = (uint8_t)values.size();
      std::copy(values.begin(), values.end(), in.o + 1);
      in.run = access(isLoad, size);
      if (in.space == SHARED) {
        kernel->shift = std::min(kernel->shift, __builtin_ctz(size));
      }
    } else if ((op == "atom" || op == "red") && has("add") && has("shared") && type == "u32") {
      bool hasResult = op == "atom";
      in.space = SHARED;
      kernel->shift = std::min(kernel->shift, 2);
      in.o[0] = address(args[hasResult], in.offset);
      in.o[1] = operand(args[hasResult + 1]);
      in.o[2] = hasResult ? operand(args[0]) : -1;
      in.run = atomicAdd;
    } else if (op == "cp" && has("commit_group")) {
      in.run = commitCopies;
    } else if (op == "cp" && has("wait_group")) {
      in.mode = std::stoi(args[0]);
      in.run = waitForCopies;
    } else if (op == "cp" && has("async") && args.size() == 3 && args[2] == "16") {
      in.o[0] = address(args[0], in.offset);
      in.o[1] = address(args[1], in.otherOffset);
      in.run = copyAsync;
    } else if (op == "shfl" && has("sync") && (has("bfly") || has("idx"))) {
      in.kind = TOGETHER;
      in.mode = has("bfly") ? 'b' : 'i';
      size_t bar = args[0].find('|');
      in.o[0] = operand(args[0].substr(0, bar));
      for (int n = 1; n < 5; n++) in.o[n] = operand(args[n]);
      in.o[5] = bar == std::string::npos ? -1 : predicate(args[0].substr(bar + 1));
      in.run = shuffle;
    } else if (op == "mma" && has("row") && has("col") && std::count(name.begin(), name.end(), "f64") == 4) {
      in.kind = TOGETHER;
      int n = 0;
      for (auto &arg : args) {
        for (int o : list(arg)) in.o[n++] = o;
      }
      in.run = has("m8n8k4") && n == 6 ? multiplyMatrices<8, 4> : has("m16n8k8") && n == 14 ? multiplyMatrices<16, 8> : (Run) nullptr;
    } else {
      take();
      std::string what = op;
      for (size_t n = 1; n + 1 < name.size(); n++) {
        if (name[n] != "rn" && name[n] != "lo") {
          what += "." + name[n];
        }
      }
      in.run = arithmetic(what, type);
    }
    if (in.run == nullptr) {
      refuse(text);
    }
    kernel->code.push_back(in);
  }

  void finish() {
    for (auto &[at, label] : jumps) {
      if (!labels.count(label)) {
        refuse("no label " + label);
      }
      kernel->code[at].target = labels[label];
    }
    kernel = nullptr;
  }
};

} // namespace ptx
