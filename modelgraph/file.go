package modelgraph

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadSmall reads a whole file of at most limit bytes; what names the wanted kind of file in errors
// ("a topology"). A FIFO, such as <(…) of a shell, is read until its writer is done. Files that are
// too large, and other things than files, are refused before they are opened. Errors are
// [*SyntaxError], except those of the system.
func ReadSmall(path, what string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if kind := kindOf(info.Mode()); kind != "" {
		return nil, &SyntaxError{File: path, Msg: fmt.Sprintf("%s, not %s", kind, what)}
	}
	tooLarge := &SyntaxError{File: path, Msg: fmt.Sprintf("larger than the %d MiB that %s may have", limit>>20, what)}
	if info.Mode().IsRegular() && info.Size() > limit {
		return nil, tooLarge
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, tooLarge
	}
	return data, nil
}

// kindOf names what is neither a regular file nor a FIFO; empty for these.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular() || mode&fs.ModeNamedPipe != 0:
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
