// Command release builds devmap for every platform. Only the Linux x86-64 program with GPUs uses
// cgo. It packs the programs as Python wheels (make wheels), and as archives (make release).
// Archives have completion files and a man page; each has a software bill of materials, and all
// have a Homebrew formula and checksums. Run it in the repository's root:
//
//	go run ./cmd/devmap/internal/release -wheels bin/wheels
//	go run ./cmd/devmap/internal/release -archives bin/release
//
// Two calls at one commit, with one Go and one C compiler, write the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// settings has the flags.
type settings struct {
	wheels, archives string // folders; empty: none
	version          string // empty: git's
	only             string // names of platforms, separated by commas; empty: all
}

func main() {
	var asked settings
	flag.StringVar(&asked.wheels, "wheels", "", "the folder that wheels are written to")
	flag.StringVar(&asked.archives, "archives", "", "the folder that archives are written to")
	flag.StringVar(&asked.version, "version", "", "MAJOR.MINOR.PATCH (as git describes the commit)")
	flag.StringVar(&asked.only, "only", "", "platforms, as linux-amd64,darwin-arm64; host: this machine's (all)")
	flag.Parse()
	if err := run(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(asked *settings) (err error) {
	if asked.wheels == "" && asked.archives == "" || flag.NArg() > 0 {
		return errors.New("-wheels FOLDER or -archives FOLDER says what is made")
	}
	made, err := commit(asked.version)
	if err != nil {
		return err
	}
	chosen, err := choose(asked.only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "devmap-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, folder := range []string{asked.wheels, asked.archives} {
		if folder != "" {
			err = errors.Join(err, emptied(folder))
		}
	}
	if err != nil {
		return err
	}
	packer := &packer{settings: asked, made: made, scratch: scratch}
	for i := range chosen {
		if err := packer.pack(&chosen[i]); err != nil {
			return fmt.Errorf("%s: %w", chosen[i].name(), err)
		}
	}
	if asked.archives != "" {
		if err := packer.formula(); err != nil {
			return err
		}
		return checksums(asked.archives)
	}
	return nil
}

// emptied makes a folder and removes files of earlier calls from it: wheels of another version
// would look current.
func emptied(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, "devmap") || name == sumsFile {
			err = errors.Join(err, os.Remove(folder+"/"+name))
		}
	}
	return err
}

// platform is one target of a build.
type platform struct {
	system, processor string
	gpus              bool // with the backend of GPUs: cgo and the tag cuda
}

func (platform *platform) name() string {
	name := platform.system + "-" + platform.processor
	if platform.gpus {
		name += "-cuda"
	}
	return name
}

// platforms lists all targets. Linux on x86-64 has two. The one with the backend of GPUs needs its
// build's glibc or a later one; pip installs the other one on older systems.
var platforms = []platform{
	{"linux", "amd64", true},
	{"linux", "amd64", false},
	{"linux", "arm64", false},
	{"darwin", "amd64", false},
	{"darwin", "arm64", false},
	{"windows", "amd64", false},
}

// choose returns the named platforms, without those that cannot be built here, which it reports.
func choose(only string) ([]platform, error) {
	compiler, err := compilerHere()
	if err != nil {
		return nil, err
	}
	names := strings.Split(only, ",")
	var chosen []platform
	var known []string
	for _, one := range platforms {
		known = append(known, one.name())
		here := slices.Contains(names, "host") && one.system == runtime.GOOS && one.processor == runtime.GOARCH
		switch {
		case only != "" && !here && !slices.Contains(names, one.name()):
		case one.gpus && compiler != "":
			fmt.Printf("%s: left out: %s; GPUs are planned for, and run nothing, in the program that is linux-amd64's\n", one.name(), compiler)
		default:
			chosen = append(chosen, one)
		}
	}
	unknown := func(name string) bool { return name != "host" && !slices.Contains(known, name) }
	if len(chosen) == 0 || only != "" && slices.ContainsFunc(names, unknown) {
		return nil, fmt.Errorf("-only %q: no such platform, or none that this machine can build (known: %s, host)", only, strings.Join(known, ", "))
	}
	return chosen, nil
}
