package wheel

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Platforms returns the platform tags of a program, read from its file. pip compares them with its
// machine (PyPA's "Platform compatibility tags").
func Platforms(program []byte) ([]string, error) {
	reader := bytes.NewReader(program)
	if file, err := elf.NewFile(reader); err == nil {
		return linux(file)
	}
	if file, err := macho.NewFile(reader); err == nil {
		return darwin(file)
	}
	if file, err := pe.NewFile(reader); err == nil {
		return windows(file)
	}
	return nil, errors.New("no program of Linux, macOS or Windows: neither ELF nor Mach-O nor PE")
}

// oldest is the oldest glibc with a tag, manylinux2014's. A Go program that links no library runs
// there and on older systems.
const oldest = 17

// allowed lists the libraries that every Linux with glibc has, of those in PEP 600's policy that Go
// links.
var allowed = []string{"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1"}

// linux returns the tags of a program. Without libraries it gets the tags of glibc and of musl,
// otherwise the tag of the newest glibc symbol that it needs.
func linux(file *elf.File) ([]string, error) {
	architecture := map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}[file.Machine]
	if architecture == "" {
		return nil, fmt.Errorf("no known wheel tag for a Linux program on %v", file.Machine)
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	var symbols []elf.ImportedSymbol
	if len(libraries) > 0 {
		if symbols, err = file.ImportedSymbols(); err != nil {
			return nil, err
		}
	}
	least, err := leastGlibc(libraries, symbols)
	if err != nil {
		return nil, err
	}
	tags := []string{fmt.Sprintf("manylinux_2_%d_%s", least, architecture)}
	if least == oldest {
		tags = append(tags, "manylinux2014_"+architecture)
	}
	if len(libraries) == 0 {
		tags = append(tags, "musllinux_1_1_"+architecture)
	}
	slices.Sort(tags)
	return tags, nil
}

// leastGlibc returns n of the oldest glibc 2.n that has all symbols of a program.
func leastGlibc(libraries []string, symbols []elf.ImportedSymbol) (int, error) {
	least := oldest
	for _, library := range libraries {
		if !slices.Contains(allowed, library) {
			return 0, fmt.Errorf("it links %s, which not every Linux has (those that do: %s)", library, strings.Join(allowed, ", "))
		}
	}
	for _, symbol := range symbols {
		version, is := strings.CutPrefix(symbol.Version, "GLIBC_2.")
		if !is {
			continue
		}
		number, _, _ := strings.Cut(version, ".")
		minor, err := strconv.Atoi(number)
		if err != nil {
			return 0, fmt.Errorf("symbol %s: version %q is none of glibc", symbol.Name, symbol.Version)
		}
		least = max(least, minor)
	}
	return least, nil
}

// These commands of a Mach-O file give its least macOS (mach-o/loader.h).
const (
	versionMinimum = 0x24 // LC_VERSION_MIN_MACOSX: command, size, version, SDK
	buildVersion   = 0x32 // LC_BUILD_VERSION: command, size, platform, version, …
)

// darwin returns the tag of the least macOS in the program's load commands.
func darwin(file *macho.File) ([]string, error) {
	architecture := map[macho.Cpu]string{macho.CpuAmd64: "x86_64", macho.CpuArm64: "arm64"}[file.Cpu]
	if architecture == "" {
		return nil, fmt.Errorf("no known wheel tag for a macOS program on %v", file.Cpu)
	}
	for _, load := range file.Loads {
		raw := load.Raw()
		if len(raw) < 16 {
			continue
		}
		var at int
		switch file.ByteOrder.Uint32(raw) {
		case versionMinimum:
			at = 8
		case buildVersion:
			at = 12
		default:
			continue
		}
		version := binary.LittleEndian.Uint32(raw[at:])
		return []string{fmt.Sprintf("macosx_%d_%d_%s", version>>16, version>>8&0xff, architecture)}, nil
	}
	return nil, errors.New("a macOS program that does not say which macOS it needs")
}

func windows(file *pe.File) ([]string, error) {
	if file.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return nil, fmt.Errorf("no known wheel tag for a Windows program on machine %#x", file.Machine)
	}
	return []string{"win_amd64"}, nil
}
