package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/wheel"
)

// packer builds programs and packs them.
type packer struct {
	*settings
	made    *commitMade
	scratch string
	extras  []file // files of archives other than the program
}

// pack makes the requested files of one platform.
func (packer *packer) pack(platform *platform) error {
	program, err := platform.build(packer.scratch, packer.made)
	if err != nil {
		return err
	}
	if packer.wheels != "" {
		if err := packer.wheel(program); err != nil {
			return err
		}
	}
	if packer.archives != "" {
		return errors.Join(packer.archive(platform, program), packer.sbom(platform, program))
	}
	return nil
}

// stem returns the start of the names of a platform's files.
func (packer *packer) stem(platform *platform) string {
	return fmt.Sprintf("devmap-%s-%s", packer.made.version, platform.name())
}

// wheel packs a program with the Python package.
func (packer *packer) wheel(program string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	made := wheel.Wheel{
		Name: "devmap", Distribution: "devmap-gpu", Version: packer.made.version, Summary: "Predict the peak memory of each GPU and find the split with the lowest peak",
		Binary: program, Sources: os.DirFS("modelgraph/python"), Time: packer.made.when,
	}
	if made.Tags, err = wheel.Platforms(data); err != nil {
		return err
	}
	if made.Readme, err = os.ReadFile("modelgraph/python/README.md"); err != nil {
		return err
	}
	if made.License, err = os.ReadFile("LICENSE"); err != nil {
		return err
	}
	name, err := made.Write(packer.wheels)
	if err != nil {
		return err
	}
	return say(name)
}

// say prints a file's name with its size.
func say(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%6.1f MB  %s\n", float64(info.Size())/1e6, filepath.ToSlash(name))
	return err
}
