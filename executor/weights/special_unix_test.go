//go:build unix

package weights

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestCreateRefuses: targets that cannot be files.
func TestCreateRefuses(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	if err := errors.Join(syscall.Mkfifo(path("fifo"), 0o666), os.Symlink("nothing", path("dangling")), os.Mkdir(path("folder"), 0o777), os.Mkdir(path("closed"), 0o555)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fifo": "want a regular file", "folder": "want a regular file", "dangling": "a link to nothing",
		"absent/one": "no such file or directory", "fifo/one": "not a directory",
	} {
		if _, err := Create(path(name), nil, two); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path(name)) {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	if _, err := Create(path("one"), nil, slices.Concat(two, two)); err == nil || !strings.Contains(err.Error(), "the name is taken") {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		if _, err := Create(path("closed/one"), nil, two); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
	}
	// More than the disk has is an error at once, where space can be reserved.
	huge := []Entry{{"a", modelgraph.F32, []int64{1 << 50}}}
	if file, err := Create(path("huge"), nil, huge); err == nil {
		t.Log("this file system takes no room beforehand")
		file.Discard() //nolint:errcheck // nothing was written
	} else if !strings.HasPrefix(err.Error(), path("huge")+": ") {
		t.Error(err)
	}
	if got := names(t, folder); got != "[closed dangling fifo folder]" {
		t.Errorf("there is %s", got)
	}
}

// TestHostileIndex: what an index may point a reader at is refused when the
// model is read, and when its weights are, should it get there later.
func TestHostileIndex(t *testing.T) {
	for name, test := range map[string]struct {
		shard string
		make  func(folder string) error // what the name then is
		want  string
	}{
		"absolute":   {"/etc/passwd", nil, "absolute path"},
		"upwards":    {"../model.safetensors", nil, "not a plain relative path"},
		"through":    {"a/../../b", nil, "not a plain relative path"},
		"NUL":        {"a\\u0000b", nil, "control character"},
		"backslash":  {"a\\\\b", nil, "backslash"},
		"absent":     {"absent.safetensors", nil, "no such file"},
		"a link out": {"link.safetensors", func(folder string) error { return os.Symlink("/etc/passwd", filepath.Join(folder, "link.safetensors")) }, "outside"},
		"a folder":   {"folder.safetensors", func(folder string) error { return os.Mkdir(filepath.Join(folder, "folder.safetensors"), 0o777) }, "a directory: want a regular file"},
		"a FIFO":     {"fifo.safetensors", func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, "fifo.safetensors"), 0o666) }, "a FIFO: want a regular file"},
		"a link round": {"round.safetensors", func(folder string) error {
			return os.Symlink("round.safetensors", filepath.Join(folder, "round.safetensors"))
		}, "too many levels of symbolic links"},
		"not in it": {"model.safetensors", nil, "weight_map"},
	} {
		folder := t.TempDir()
		writeCheckpoint(t, folder, tinyConfig, modelgraph.F32)
		graph := readGraph(t, folder)
		if test.make != nil {
			if err := test.make(folder); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(folder, "model.safetensors")
		if test.make != nil || test.shard == "absent.safetensors" { // the same, in the place of a file that was read
			for i := range graph.Layers {
				for j := range graph.Layers[i].Params {
					graph.Layers[i].Params[j].Parts[0].File = filepath.Join(folder, test.shard)
				}
			}
			if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, when its weights are read: %v", name, err)
			}
		}
		if err := os.Rename(path, filepath.Join(folder, "aside")); err != nil {
			t.Fatal(err)
		}
		if test.shard == "model.safetensors" {
			writeFile(t, filepath.Join(folder, "one.safetensors"), headed(one("F32", "[8]", "[0,32]"), 32))
			test.shard = "one.safetensors"
		}
		index := strings.ReplaceAll(`{"metadata":{"total_size":-5},"weight_map":{"model.norm.weight":"NAME","model.embed_tokens.weight":"NAME"}}`, "NAME", test.shard)
		writeFile(t, filepath.Join(folder, "model.safetensors.index.json"), []byte(index))
		if _, err := hf.FromCheckpoint(folder); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, when its model is read: %v", name, err)
		}
	}
	outside := t.TempDir()
	writeCheckpoint(t, outside, tinyConfig, modelgraph.F32)
	graph := readGraph(t, outside)
	graph.Folder = t.TempDir()
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), "the file lies outside of the model's folder") {
		t.Errorf("a file of another folder: %v", err)
	}
}
