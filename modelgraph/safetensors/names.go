package safetensors

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// nameFault says why name cannot be a file beneath a folder, or "".
func nameFault(name string) string {
	switch {
	case strings.ContainsFunc(name, func(char rune) bool { return char < ' ' || char == 0x7f }):
		return "control character in a file name"
	case strings.Contains(name, `\`):
		return "backslash in a file name: separate folders by /"
	case strings.HasPrefix(name, "/"):
		return "absolute path: want a file of the folder"
	case name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)):
		return `not a plain relative path: "..", "." and empty parts are refused`
	}
	return ""
}

// statRegular describes an open file. It returns an error if that is not a regular file.
func statRegular(f *os.File, name string) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading size: %w", err)
	}
	return info, regular(info, name)
}

func regular(info fs.FileInfo, name string) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &refusedError{name, kindOf(info.Mode()) + ": want a regular file"}
}

// kindOf names the kind of a path.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}
