// Package hook makes torch report its allocator's memory in each process of a command. It puts a
// folder with a sitecustomize.py first in Python's module path, and every child inherits it. The
// hook writes nothing into the command's own folders, and the folder is removed after the command.
//
// Python with -S, -I or -E ignores it, and so do other programs: only NVML reports their memory.
package hook

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed python/sitecustomize.py python/torchpeaks.py
var python embed.FS

// Python's path of modules, and the hook's own settings.
const (
	pythonPath   = "PYTHONPATH"
	outVariable  = "DEVMAP_WATCH_OUT"
	snapVariable = "DEVMAP_WATCH_SNAPSHOT"
)

// Hook is a temporary folder for the processes of one command.
type Hook struct{ folder, snapshot string }

// New makes the folder. If snapshot is not empty, each process writes torch's own snapshot of its
// memory next to that file, with its number in the name.
func New(snapshot string) (*Hook, error) {
	if snapshot != "" {
		whole, err := filepath.Abs(snapshot) // the command may change its working directory
		if err != nil {
			return nil, fmt.Errorf("--snapshot %q: %w", snapshot, err)
		}
		if info, err := os.Stat(filepath.Dir(whole)); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--snapshot %q: there is no folder %q", snapshot, filepath.Dir(whole))
		}
		snapshot = whole
	}
	folder, err := os.MkdirTemp("", "devmap-watch-")
	if err != nil {
		return nil, fmt.Errorf("a folder for Python's hook: %w", err)
	}
	hook := &Hook{folder: folder, snapshot: snapshot}
	if err := hook.write(); err != nil {
		return nil, fmt.Errorf("making Python's hook: %w", errors.Join(err, hook.Close()))
	}
	return hook, nil
}

func (hook *Hook) write() error {
	if err := os.CopyFS(hook.folder, python); err != nil {
		return err
	}
	return os.Mkdir(hook.out(), 0o700)
}

func (hook *Hook) modules() string { return filepath.Join(hook.folder, "python") }

func (hook *Hook) out() string { return filepath.Join(hook.folder, "out") }

// Environ returns an environment with the hook. The value of PYTHONPATH follows the hook's folder.
// An empty value is dropped: as part of a longer value, Python would read it as the current folder.
func (hook *Hook) Environ(environment []string) []string {
	path := hook.modules()
	var all []string
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case pythonPath:
			if value != "" {
				path = hook.modules() + string(os.PathListSeparator) + value
			}
		case outVariable, snapVariable: // of an outer devmap watch
		default:
			all = append(all, entry)
		}
	}
	all = append(all, pythonPath+"="+path, outVariable+"="+hook.out())
	if hook.snapshot != "" {
		all = append(all, snapVariable+"="+hook.snapshot)
	}
	return all
}

// Close removes the folder. A process that outlives the command then writes nothing, and gets no
// error.
func (hook *Hook) Close() error { return os.RemoveAll(hook.folder) }
