package wheel

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// header returns a file's first bytes: texts, and numbers of 16 and 32 bits, little-endian.
func header(numbers ...any) []byte {
	var data []byte
	for _, number := range numbers {
		switch number := number.(type) {
		case uint16:
			data = binary.LittleEndian.AppendUint16(data, number)
		case uint32:
			data = binary.LittleEndian.AppendUint32(data, number)
		case string:
			data = append(data, number...)
		}
	}
	return data
}

// static returns an ELF file for a processor, without libraries.
func static(machine elf.Machine) []byte {
	data := header("\x7fELF\x02\x01\x01", strings.Repeat("\x00", 9), uint16(elf.ET_EXEC), uint16(machine), uint32(elf.EV_CURRENT))
	data = append(data, make([]byte, 64-len(data))...)
	data[52] = 64 // its own size
	return data
}

// apple returns a Mach-O file for a processor with one load command.
func apple(processor uint32, load ...uint32) []byte {
	data := header(uint32(0xfeedfacf), processor, uint32(0), uint32(2), uint32(1), uint32(4*len(load)), uint32(0), uint32(0))
	for _, number := range load {
		data = header(string(data), number)
	}
	return data
}

// microsoft returns a PE file for a processor, without sections.
func microsoft(machine uint16) []byte {
	data := append(header("MZ"), make([]byte, 94)...)
	data[0x3c] = 96
	return header(string(data), "PE\x00\x00", machine, uint16(0), uint32(0), uint32(0), uint32(0), uint16(0), uint16(0))
}

func TestPlatforms(t *testing.T) {
	tests := map[string]struct {
		program []byte
		want    string
		fault   string
	}{
		"Linux x86-64":          {static(elf.EM_X86_64), "manylinux2014_x86_64 manylinux_2_17_x86_64 musllinux_1_1_x86_64", ""},
		"Linux arm64":           {static(elf.EM_AARCH64), "manylinux2014_aarch64 manylinux_2_17_aarch64 musllinux_1_1_aarch64", ""},
		"Linux elsewhere":       {static(elf.EM_RISCV), "", "no known wheel tag for a Linux program on EM_RISCV"},
		"macOS arm64":           {apple(0x0100000c, buildVersion, 24, 1, 12<<16, 12<<16, 0), "macosx_12_0_arm64", ""},
		"macOS x86-64":          {apple(0x01000007, versionMinimum, 16, 10<<16|15<<8, 0), "macosx_10_15_x86_64", ""},
		"macOS of no version":   {apple(0x01000007, 0x1b, 16, 0, 0), "", "does not say which macOS"},
		"Windows":               {microsoft(0x8664), "win_amd64", ""},
		"Windows on arm64":      {microsoft(0xaa64), "", "machine 0xaa64"},
		"none":                  {[]byte("#!/bin/sh\n"), "", "neither ELF nor Mach-O nor PE"},
		"the beginning of some": {static(elf.EM_X86_64)[:20], "", "neither ELF nor Mach-O nor PE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Platforms(test.program)
			if strings.Join(got, " ") != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
			if (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("error %v, not %q", err, test.fault)
			}
		})
	}
}

// TestPlatformOfThis reads the tag of a program that uses the system's C library.
func TestPlatformOfThis(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skipf("no program of Linux is here: %v", err)
	}
	got, err := Platforms(program)
	if err != nil || !slices.ContainsFunc(got, regexp.MustCompile(`^manylinux_2_\d+_`).MatchString) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLeastGlibc(t *testing.T) {
	symbols := func(versions ...string) (all []elf.ImportedSymbol) {
		for _, version := range versions {
			all = append(all, elf.ImportedSymbol{Name: "s", Version: version, Library: "libc.so.6"})
		}
		return all
	}
	tests := map[string]struct {
		libraries []string
		symbols   []elf.ImportedSymbol
		want      int
		fault     string
	}{
		"old symbols":       {[]string{"libc.so.6"}, symbols("GLIBC_2.2.5", "GLIBC_2.14", ""), 17, ""},
		"the newest counts": {[]string{"libc.so.6", "libresolv.so.2"}, symbols("GLIBC_2.34", "GLIBC_2.9", "GLIBC_2.17"), 34, ""},
		"of other kinds":    {[]string{"libc.so.6"}, symbols("GCC_3.0", "GLIBCXX_3.4.21"), 17, ""},
		"no number":         {[]string{"libc.so.6"}, symbols("GLIBC_2.x"), 0, `version "GLIBC_2.x" is none of glibc`},
		"another library":   {[]string{"libc.so.6", "libcuda.so.1"}, nil, 0, "it links libcuda.so.1, which not every Linux has"},
	}
	for name, test := range tests {
		got, err := leastGlibc(test.libraries, test.symbols)
		if got != test.want || (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %d, %v; want %d, %q", name, got, err, test.want, test.fault)
		}
	}
}

// FuzzPlatforms: for any file there is an answer or an error.
func FuzzPlatforms(f *testing.F) {
	for _, seed := range [][]byte{static(elf.EM_X86_64), apple(0x0100000c, buildVersion, 24, 1, 12<<16, 0, 0), microsoft(0x8664)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if tags, err := Platforms(program); (err == nil) != (len(tags) > 0) {
			t.Errorf("%q, %v", tags, err)
		}
	})
}
