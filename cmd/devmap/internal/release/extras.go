package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// extraFiles returns the files of an archive other than the program. Completion and help come from
// the program itself, built for this machine.
func (packer *packer) extraFiles() ([]file, error) {
	here := platform{system: runtime.GOOS, processor: runtime.GOARCH}
	program, err := here.build(packer.scratch, packer.made)
	if err != nil {
		return nil, err
	}
	ask := func(arguments ...string) (string, error) {
		out, err := exec.Command(program, arguments...).Output() //nolint:gosec // built above
		if err != nil {
			return "", fmt.Errorf("devmap %s: %w", strings.Join(arguments, " "), err)
		}
		return string(out), nil
	}
	var files []file
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	for _, shell := range [][2]string{{"bash", "devmap.bash"}, {"fish", "devmap.fish"}, {"powershell", "devmap.ps1"}, {"zsh", "_devmap"}} {
		text, err := ask("completion", shell[0])
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completion/" + shell[1], 0o644, []byte(text)})
	}
	page, err := manual(ask, packer.made)
	return append(files, file{"man/man1/devmap.1", 0o644, []byte(page)}), err
}
