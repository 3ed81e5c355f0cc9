"""The program as the linker made it: position independent, addresses bound at the start and read-only from then on, no
executable stack, no path to look for libraries in; and as the compiler did: guarded stacks, checked functions of the C
library.
Usage: hardened.py ROOT BINARY"""
import re
import struct
import sys

PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
DT_RPATH, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 15, 24, 29, 30, 0x6FFFFFFB
ET_DYN, PF_X, DF_BIND_NOW, DF_1_NOW = 3, 1, 8, 1


def main(_, binary):
    image = open(binary, "rb").read()
    if image[:6] != b"\x7fELF\x02\x01":
        print("not a 64-bit little-endian ELF file: not looked at")
        return 0
    kind = struct.unpack_from("<H", image, 16)[0]
    offset = struct.unpack_from("<Q", image, 32)[0]
    size, count = struct.unpack_from("<HH", image, 54)
    segments = {}
    for i in range(count):
        what, flags, at, _, _, length = struct.unpack_from("<IIQQQQ", image, offset + i * size)
        segments[what] = flags, at, length
    dynamic = {}
    _, at, length = segments[PT_DYNAMIC]
    for place in range(at, at + length, 16):
        tag, value = struct.unpack_from("<qQ", image, place)
        dynamic[tag] = dynamic.get(tag, 0) | value
    now = DT_BIND_NOW in dynamic or dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW
    problems = [text for wrong, text in (
        (kind != ET_DYN, "not position independent"),
        (PT_GNU_STACK not in segments or segments[PT_GNU_STACK][0] & PF_X, "the stack is executable"),
        (PT_GNU_RELRO not in segments, "the table of addresses stays writable"),
        (not now, "addresses are bound when they are used"),
        (b"\0__stack_chk_fail\0" not in image, "buffers on the stack are not guarded (-fstack-protector-strong)"),
        (not re.search(rb"\0__\w+_chk\0", image.replace(b"__stack_chk_fail", b"")), "the C library's functions are not the checked ones (-D_FORTIFY_SOURCE)"),
        (DT_RPATH in dynamic or DT_RUNPATH in dynamic, "a path to look for libraries in is built in")) if wrong]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
