#!/usr/bin/env python3
"""Translates the PTX of the GPU kernels to C, which runs each thread of a block as a thread of the host.

    translate.py KERNELS.ptx FOLDER [--parts N] [--only NAME,NAME] [--replace FROM TO]

Leaves part_0.c … part_N-1.c and kernels.h in FOLDER. A register becomes a local variable, and each access to memory a
call of ptx.h, which checks it and orders it as PTX's memory model allows. An instruction that is not known here is an
error: the list below has what nvcc makes of src/gpu/kernel today. --replace changes the text of the kernels first; it
is for mutants, and fails where there is no FROM.
"""
import argparse
import os
import re
import sys

C_TYPES = {"pred": "bool", "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "b16": "uint16_t", "u16": "uint16_t",
           "s16": "int16_t", "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t", "b64": "uint64_t",
           "u64": "uint64_t", "s64": "int64_t", "f32": "float", "f64": "double"}
CLASSES = {"p": "bool", "rs": "uint16_t", "r": "uint32_t", "rd": "uint64_t", "f": "float", "fd": "double"}
SPECIAL = {"%tid.x": "self->tid", "%ntid.x": "self->ntid", "%ctaid.x": "self->ctaid", "%nctaid.x": "self->nctaid",
           "%globaltimer": "ptx_clock()"}
BINARY = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
REGISTER = re.compile(r"%(rs|rd|fd|p|r|f)(\d+)$")


class Unknown(Exception):
    """An instruction that has no translation."""


class Kernel:
    """One kernel: its name, its lines and what they name."""

    def __init__(self, name, lines):
        self.name, self.lines = name, lines
        self.used, self.shared, self.shared_bytes = set(), {}, 0

    def class_of(self, operand):
        match = REGISTER.match(operand)
        return CLASSES[match.group(1)] if match else None

    def register(self, operand):
        match = REGISTER.match(operand)
        if not match:
            raise Unknown(operand)
        name = match.group(1) + match.group(2)
        self.used.add((match.group(1), name))
        return name

    def value(self, operand, ctype):
        """The operand as a C expression of that type: the bits of a register of another kind."""
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith(("0f", "0d")):
            kind = "ptx_float" if operand[1] == "f" else "ptx_double"
            return f"{kind}(0x{operand[2:]}u{'' if operand[1] == 'f' else 'll'})"
        if operand in self.shared:
            return str(self.shared[operand])
        if "_param_" in operand:
            return "(uint64_t)(uintptr_t)param"
        if not operand.startswith("%"):
            return f"({ctype}){operand}{'ll' if ctype.endswith('64_t') else ''}"
        name, own = self.register(operand), self.class_of(operand)
        if own == ctype:
            return name
        if own in ("float", "double") or ctype in ("float", "double"):
            return {"float": f"ptx_float({name})", "double": f"ptx_double({name})",
                    "uint32_t": f"ptx_bits({name})", "uint64_t": f"ptx_bits64({name})"}[ctype]
        return f"({ctype}){name}"

    def set(self, operand, expression):
        name = self.register(operand)
        return f"{name} = ({self.class_of(operand)})({expression});"

    def address(self, operand):
        """[base+offset]: its base, and the sum of both as an expression."""
        match = re.match(r"\[([^\]+]+)(?:\+(-?\d+))?\]$", operand)
        if not match:
            raise Unknown(operand)
        base = match.group(1)
        ctype = "uint32_t" if self.class_of(base) == "uint32_t" else "uint64_t"
        return f"{self.value(base, ctype)} + ({match.group(2) or 0})"

    def access(self, parts, operands):
        """ld and st, of one value or of several in a row."""
        loads, ctype = parts[0] == "ld", C_TYPES[parts[-1]]
        n = next((int(p[1]) for p in parts if p in ("v2", "v4")), 1)
        order = next((p for p in parts if p in ("acquire", "release", "relaxed", "volatile")), "weak")
        if "shared" in parts:
            place = "shared"
        elif "param" in parts:
            place = "param"
        else:
            place = order if order != "volatile" else "relaxed"
        at, what = (operands[1], operands[0]) if loads else operands
        values = [v.strip() for v in what.strip("{}").split(",")]
        lines = [f"{ctype} v[{n}];"]
        if loads:
            lines.append(f"ptx_load_{place}(self, {self.address(at)}, v, sizeof v[0], {n});")
            lines += [self.set(v, self.loaded(v, ctype, i)) for i, v in enumerate(values)]
        else:
            lines += [f"v[{i}] = {self.value(v, ctype)};" for i, v in enumerate(values)]
            lines.append(f"ptx_store_{place}(self, {self.address(at)}, v, sizeof v[0], {n});")
        return "{ " + " ".join(lines) + " }"

    def loaded(self, register, ctype, i):
        own = self.class_of(register)
        if own in ("float", "double") and ctype != own:
            return f"ptx_{own}(v[{i}])"
        return f"v[{i}]"

    def compare(self, how, kind, a, b):
        if kind == "pred":
            raise Unknown("setp of predicates")
        ctype = C_TYPES[kind]
        a, b = self.value(a, ctype), self.value(b, ctype)
        if how in ("num", "nan"):
            return f"{'' if how == 'num' else '!'}({a} == {a} && {b} == {b})"
        if how in ORDERED:
            both = f" && {a} == {a} && {b} == {b}" if how == "ne" and kind in ("f32", "f64") else ""
            return f"{a} {ORDERED[how]} {b}{both}"
        if how[:-1] in ORDERED and how.endswith("u") and kind in ("f32", "f64"):
            return f"!({a} == {a} && {b} == {b}) || {a} {ORDERED[how[:-1]]} {b}"
        raise Unknown(f"setp.{how}")

    def mov(self, operands):
        to, what = operands
        if to.startswith("{"):
            halves = [h.strip() for h in to.strip("{}").split(",")]
            bits = 16 if self.class_of(halves[0]) == "uint16_t" else 32
            value = self.value(what, f"uint{2 * bits}_t")
            return " ".join(self.set(h, f"{value} >> {i * bits}") for i, h in enumerate(halves))
        if what.startswith("{"):
            halves = [h.strip() for h in what.strip("{}").split(",")]
            bits = 16 if self.class_of(halves[0]) == "uint16_t" else 32
            wide = f"uint{2 * bits}_t"
            low, high = (self.value(h, f"uint{bits}_t") for h in halves)
            value = f"({wide})(({wide}){high} << {bits} | {low})"
            own = self.class_of(to)
            return self.set(to, f"ptx_{own}({value})" if own in ("float", "double") else value)
        return self.set(to, self.value(what, self.class_of(to)))

    def convert(self, parts, to, what):
        if parts[1] == "rn":
            return self.set(to, f"({C_TYPES[parts[2]]}){self.value(what, C_TYPES[parts[3]])}")
        if len(parts) != 3 or "f" in parts[1] + parts[2]:
            raise Unknown(".".join(parts))
        return self.set(to, f"({C_TYPES[parts[1]]})({C_TYPES[parts[2]]}){self.value(what, C_TYPES[parts[2]])}")

    def arithmetic(self, parts, o):
        name, kind = parts[0], parts[-1]
        ctype = C_TYPES[kind]
        if kind in ("f32", "f64") and name in ("add", "sub", "mul", "div") and parts[1:-1] == ["rn"]:
            sign = "/" if name == "div" else BINARY[name]
            return self.set(o[0], f"{self.value(o[1], ctype)} {sign} {self.value(o[2], ctype)}")
        if kind in ("f32", "f64"):
            raise Unknown(".".join(parts))
        if name in ("mul", "mad") and parts[1] == "wide":
            wide = {"u16": "uint32_t", "s16": "int32_t", "u32": "uint64_t", "s32": "int64_t"}[kind]
            product = f"({wide}){self.value(o[1], ctype)} * ({wide}){self.value(o[2], ctype)}"
            return self.set(o[0], product)
        unsigned = ctype if ctype.startswith(("u", "b")) else "u" + ctype
        if name in ("add", "sub", "and", "or", "xor") or (name == "mul" and parts[1] == "lo"):
            return self.set(o[0], f"{self.value(o[1], unsigned)} {BINARY[name]} {self.value(o[2], unsigned)}")
        if name == "mad" and parts[1] == "lo":
            a, b, c = (self.value(x, unsigned) for x in o[1:])
            return self.set(o[0], f"{a} * {b} + {c}")
        if name == "not":
            return self.set(o[0], f"{'!' if kind == 'pred' else '~'}{self.value(o[1], ctype)}")
        a, b = self.value(o[1], ctype), self.value(o[2], ctype)
        if name in ("div", "rem"):
            return self.set(o[0], f"ptx_{name}_{kind}({a}, {b})")
        if name in ("min", "max"):
            return self.set(o[0], f"{a} {'<' if name == 'min' else '>'} {b} ? {a} : {b}")
        if name in ("shl", "shr"):
            return self.set(o[0], f"ptx_{name}_{kind}({a}, {self.value(o[2], 'uint32_t')})")
        raise Unknown(".".join(parts))

    def instruction(self, text):
        name, _, rest = text.partition(" ")
        operands = [x.strip() for x in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]\s]+", rest)]
        parts = name.split(".")
        if parts[0] == "bra":
            return f"goto {operands[-1].lstrip('$')};"
        if parts[0] == "ret":
            return "return;"
        if parts[0] in ("ld", "st"):
            return self.access(parts, operands)
        if parts[0] == "mov":
            return self.mov(operands)
        if parts[0] == "cvta":
            return self.set(operands[0], self.value(operands[1], "uint64_t"))
        if parts[0] == "cvt":
            return self.convert(parts, *operands)
        if parts[0] == "setp":
            return self.set(operands[0], self.compare(parts[1], parts[2], operands[1], operands[2]))
        if parts[0] == "selp":
            kind = C_TYPES[parts[1]]
            a, b, p = self.value(operands[1], kind), self.value(operands[2], kind), self.register(operands[3])
            return self.set(operands[0], f"{p} ? {a} : {b}")
        if parts[0] == "prmt":
            return self.set(operands[0], "ptx_prmt({}, {}, {})".format(*(self.value(x, "uint32_t")
                                                                         for x in operands[1:])))
        if parts[0] == "bfi":
            return self.set(operands[0], "ptx_bfi({}, {}, {}, {})".format(*(self.value(x, "uint32_t")
                                                                            for x in operands[1:])))
        if name == "bar.sync":
            return "(void)ptx_barrier(self, false);"
        if name == "bar.red.or.pred":
            return self.set(operands[0], f"ptx_barrier(self, {self.register(operands[2])})")
        return self.arithmetic(parts, operands)

    def line(self, text):
        """One line of PTX as C; None for what says nothing to a host."""
        text = text.split("//")[0].strip()
        if not text or text.startswith((".pragma", ".reg")):
            return None
        if text in ("{", "}"):
            return text
        if text.startswith(".shared"):
            match = re.match(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];", text)
            if not match:
                raise Unknown(text)
            align = int(match.group(1))
            at = -(-self.shared_bytes // align) * align
            self.shared[match.group(2)], self.shared_bytes = at, at + int(match.group(3))
            return None
        if text.endswith(":"):
            return text.lstrip("$") + ";"
        if not text.endswith(";"):
            raise Unknown(text)
        text = text[:-1].strip()
        match = re.match(r"@(!?)(%p\d+)\s+(.*)", text)
        if match:
            return f"if ({match.group(1)}{self.register(match.group(2))}) {{ {self.instruction(match.group(3))} }}"
        return self.instruction(re.sub(r"\s+", " ", text, count=1))

    def scopes(self, lines):
        """Registers that a block in braces declares are its own: they get names of their own."""
        depth, n, inner = 0, 0, {}
        for line in lines:
            text = line.strip()
            if text == "{":
                depth, n, inner = depth + 1, n + 1, {}
            elif text == "}":
                depth, inner = depth - 1, {}
            elif depth and text.startswith(".reg"):
                inner.update({r: f"%p{100000 + 100 * n + i}"
                              for i, r in enumerate(re.findall(r"%p\d+", text))})
                continue
            elif depth and inner:
                line = re.sub(r"%p\d+\b", lambda m: inner.get(m.group(), m.group()), line)
            if text not in ("{", "}"):
                yield line

    def text(self):
        body = []
        for line in self.scopes(self.lines):
            try:
                c = self.line(line)
            except (Unknown, KeyError, IndexError, TypeError, ValueError) as error:
                sys.exit(f"translate.py: {self.name}: no translation of '{line.strip()}' ({error})")
            if c:
                body.append(c)
        declared = [f"{ctype} " + ", ".join(f"{name} = 0" for of, name in sorted(self.used) if of == kind) + ";"
                    for kind, ctype in CLASSES.items() if any(of == kind for of, _ in self.used)]
        bound = f"_Static_assert({self.shared_bytes} <= PTX_SHARED, \"shared memory\");"
        return "\n".join([f"void {self.name}(const void *param, ptx_thread_t *self)", "{", bound, "(void)param;"]
                         + declared + body + ["}"])


def kernels_of(ptx):
    lines, name, kernels = [], None, []
    for line in ptx.splitlines():
        match = re.match(r"\.visible \.entry (\w+)\(", line)
        if match:
            name, lines = match.group(1), None
        elif name and line == "{":
            lines = []
        elif name and line == "}":
            kernels.append((name, lines))
            name = None
        elif name and lines is not None:
            lines.append(line)
    return kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ptx")
    parser.add_argument("folder")
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--replace", nargs=2, metavar=("FROM", "TO"))
    given = parser.parse_args()
    with open(given.ptx, encoding="ascii") as file:
        kernels = kernels_of(file.read())
    if given.only:
        wanted = given.only.split(",")
        kernels = [k for k in kernels if k[0] in wanted]
        if len(kernels) != len(wanted):
            sys.exit(f"translate.py: {given.ptx} has not all of {given.only}")
    if not kernels:
        sys.exit(f"translate.py: {given.ptx} has no kernels")
    if given.replace:
        before, after = given.replace
        if not any(before in line for _, lines in kernels for line in lines):
            sys.exit(f"translate.py: no '{before}' in {given.ptx}: the mutant must be told what to change")
        kernels = [(name, [line.replace(before, after) for line in lines]) for name, lines in kernels]
    os.makedirs(given.folder, exist_ok=True)
    names = [name for name, _ in kernels]
    with open(os.path.join(given.folder, "kernels.h"), "w", encoding="ascii") as file:
        file.write("#define PTX_KERNELS(X) " + " ".join(f"X({n})" for n in names) + "\n")
    for part in range(given.parts):
        with open(os.path.join(given.folder, f"part_{part}.c"), "w", encoding="ascii") as file:
            file.write('#include "ptx.h"\n')
            for name, lines in kernels[part::given.parts]:
                file.write(Kernel(name, lines).text() + "\n")


main()
