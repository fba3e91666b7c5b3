package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/wheel"
)

// commitMade is the commit of the build: its version, and the time of all files.
type commitMade struct {
	version string
	when    time.Time
	hash    string // empty without git
}

// commit asks git for the commit; the caller may give the version.
func commit(version string) (*commitMade, error) {
	if version != "" {
		var err error
		if version, err = wheel.Release(version); err != nil {
			return nil, fmt.Errorf("-version: %w", err)
		}
	} else {
		described, err := git("describe", "--tags", "--long", "--dirty", "--match", "v[0-9]*")
		if err != nil { // no release yet: the commits since the first
			if described, err = undescribed(); err != nil {
				return nil, fmt.Errorf("%w (without git, give -version)", err)
			}
		}
		if version, err = wheel.Version(described); err != nil {
			return nil, err
		}
	}
	when := os.Getenv("SOURCE_DATE_EPOCH") // reproducible-builds.org/specs/source-date-epoch
	if when == "" {
		var err error
		if when, err = git("log", "-1", "--format=%ct"); err != nil {
			return nil, fmt.Errorf("%w (without git, set SOURCE_DATE_EPOCH)", err)
		}
	}
	seconds, err := strconv.ParseInt(when, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time of the build: %w", err)
	}
	hash, err := git("rev-parse", "HEAD")
	if err != nil {
		hash = "" // sources without git
	}
	return &commitMade{version, time.Unix(seconds, 0).UTC(), hash}, nil
}

// undescribed describes a commit before the first release.
func undescribed() (string, error) {
	count, err := git("rev-list", "--count", "HEAD")
	if err != nil {
		return "", err
	}
	hash, err := git("describe", "--always", "--dirty", "--exclude", "*")
	return "v0.0.0-" + count + "-g" + hash, err
}

func git(arguments ...string) (string, error) {
	out, err := exec.Command("git", arguments...).Output() //nolint:gosec // arguments of ours
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// compilerHere says why this machine cannot build the program with GPUs; empty: it can. Its C parts
// are compiled for this machine.
func compilerHere() (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Sprintf("it is built on Linux x86-64, and this is %s on %s", runtime.GOOS, runtime.GOARCH), nil
	}
	out, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return "", fmt.Errorf("go env CC: %w", err)
	}
	words := strings.Fields(string(out))
	if len(words) == 0 {
		return "there is no C compiler (go env CC)", nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Sprintf("there is no C compiler (%v)", err), nil
	}
	return "", nil
}

// build builds the program of a platform, without symbols, and returns its file.
func (platform *platform) build(folder string, made *commitMade) (string, error) {
	name := filepath.Join(folder, platform.name(), "devmap")
	if platform.system == "windows" {
		name += ".exe"
	}
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.stamp=" + made.version + " -X main.stampCommit=" + made.hash + " -X main.stampDate=" + made.when.Format(time.RFC3339), "-o", name}
	environment := append(os.Environ(), "GOOS="+platform.system, "GOARCH="+platform.processor, "CGO_ENABLED=0")
	if platform.gpus {
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		include := filepath.Join(here, "executor", "cuda", "internal", "driver", "include") // no toolkit's cuda.h
		arguments = append(arguments, "-tags", "cuda")
		environment = append(environment, "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -I"+include)
	}
	command := exec.Command("go", append(arguments, "./cmd/devmap")...) //nolint:gosec // arguments of ours
	command.Env, command.Stdout, command.Stderr = environment, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return "", errors.Join(errors.New("go build"), err)
	}
	return name, nil
}
