"""Lets ELF files that were built on a newer glibc start on an older one: what they ask of releases after FLOOR is looked for
by its name alone, and found either in glibc, which has had it under an older version, or in the library of
src/cmake/older_glibc.cpp. A symbol that neither has is an error.
Usage: older_glibc.py SHIM FILE..."""
import re
import struct
import sys

FLOOR = (2, 31)
GLIBC = re.compile(rb"(lib(c|m|dl|rt|pthread)|ld-linux.*)\.so\.\d+")
# In glibc 2.31 by these names, there in libpthread, libdl and libm, which newer ones keep for those who ask.
OLDER = {name.encode() for name in """
    __libc_start_main dladdr dlclose dlerror dlopen dlsym hypot __pthread_key_create
    pthread_attr_getstack pthread_attr_setstacksize pthread_cond_clockwait pthread_create pthread_detach pthread_getattr_np
    pthread_getspecific pthread_join pthread_key_create pthread_key_delete pthread_mutex_trylock pthread_mutexattr_destroy
    pthread_mutexattr_init pthread_mutexattr_settype pthread_once pthread_rwlock_rdlock pthread_rwlock_unlock
    pthread_rwlock_wrlock pthread_setattr_default_np pthread_setspecific pthread_sigmask
    """.split()}
SHT_DYNSYM, SHT_VERNEED, SHT_VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF
VER_NDX_GLOBAL = 1


class Elf:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.image = bytearray(file.read())
        if self.image[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"{path}: not a 64-bit little-endian ELF file")
        at, = struct.unpack_from("<Q", self.image, 40)
        size, count = struct.unpack_from("<HH", self.image, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.image, at + i * size) for i in range(count)]

    def section(self, kind):
        return next((s for s in self.sections if s[1] == kind), None)

    def text(self, table, offset):
        start = self.sections[table][4] + offset
        return bytes(self.image[start:self.image.index(b"\0", start)])

    def symbols(self):
        """(place, name, defined) of each dynamic symbol."""
        _, _, _, _, at, size, link, _, _, _ = self.section(SHT_DYNSYM)
        for i in range(size // 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.image, at + 24 * i)
            yield i, self.text(link, name), section != 0

    def needs(self):
        """(place of the entry, file, version, numbers of the version) of each version of glibc that is asked for."""
        section = self.section(SHT_VERNEED)
        if section is None:
            return
        at, link = section[4], section[6]
        while True:
            _, count, file, first, following = struct.unpack_from("<HHIII", self.image, at)
            entry = at + first
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self.image, entry)
                version = re.fullmatch(rb"GLIBC_(\d+)\.(\d+).*", self.text(link, name))
                if GLIBC.fullmatch(self.text(link, file)) and version:
                    yield entry, tuple(map(int, version.groups()))
                entry += step
            if not following:
                return
            at += following

    def newer(self):
        """Indices of versions of glibc above the floor. In their place the oldest that the file asks for is asked again."""
        needs = list(self.needs())
        found = set()
        oldest = min(needs, key=lambda need: need[1], default=None)
        for entry, version in needs:
            if version <= FLOOR:
                continue
            if oldest[1] > FLOOR:
                sys.exit(f"{self.path}: every version that it asks of glibc is newer than {FLOOR}")
            sum_, _, _, name, _ = struct.unpack_from("<IHHII", self.image, oldest[0])
            _, _, index, _, _ = struct.unpack_from("<IHHII", self.image, entry)
            struct.pack_into("<I", self.image, entry, sum_)
            struct.pack_into("<I", self.image, entry + 8, name)
            found.add(index)
        return found


def main(shim, *files):
    provided = {name for _, name, defined in Elf(shim).symbols() if defined}
    missing = []
    for path in files:
        elf = Elf(path)
        newer = elf.newer()
        if not newer:
            continue
        versions = elf.section(SHT_VERSYM)[4]
        for i, name, defined in elf.symbols():
            index, = struct.unpack_from("<H", elf.image, versions + 2 * i)
            if index & 0x7FFF not in newer:
                continue
            if defined and name not in provided or not defined and name not in provided | OLDER:
                missing.append(f"{path}: {name.decode()}")
            if not defined:
                struct.pack_into("<H", elf.image, versions + 2 * i, VER_NDX_GLOBAL)
        with open(path, "wb") as file:
            file.write(elf.image)
    if missing:
        sys.exit("glibc {}.{} lacks, and src/cmake/older_glibc.cpp does not have:\n{}".format(*FLOOR, "\n".join(missing)))


main(*sys.argv[1:])
