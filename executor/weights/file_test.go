package weights

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

var two = []Entry{{"b", modelgraph.F32, []int64{2}}, {"a", modelgraph.BF16, []int64{3}}}

// written writes two entries in pieces, the last value first.
func written(t *testing.T, path string) *File {
	t.Helper()
	file := fixtures.Must(Create(path, map[string]string{"format": "pt"}, two))(t)
	if err := errors.Join(file.WriteAt("a", 4, []byte("ef")), file.WriteAt("a", 0, []byte("abcd")), file.WriteAt("b", 0, []byte("01234567"))); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCreate: tensors lie in the order of the entries, and the file appears when
// it is committed, in the place of another.
func TestCreate(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "one.safetensors")
	const want = "\x90\x00\x00\x00\x00\x00\x00\x00" + `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}}    ` + "01234567abcdef"
	silent := unnamed(t, folder)
	for _, before := range []string{"nothing", "a file", "a file, again"} {
		file := written(t, path)
		if got := names(t, folder); !silent {
			t.Logf("this file system has no files without a name: there is %s", got)
		} else if got != "[]" && before == "nothing" || got != "[one.safetensors]" && before != "nothing" {
			t.Errorf("before it is committed there is %s", got)
		}
		if err := file.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := file.Discard(); err != nil {
			t.Errorf("a discard behind a commit: %v", err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want || names(t, folder) != "[one.safetensors]" {
			t.Errorf("in the place of %s: %v, %s\n got %q\nwant %q", before, err, names(t, folder), got, want)
		}
		if _, err := safetensors.ReadFile(path); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || before != "nothing" && info.Mode().Perm() != 0o600 {
			t.Errorf("the file that was replaced was 0600, it is %v (%v)", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamed tests Create on a file system without files that have no name.
func TestNamed(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "one")
	named := func() *File {
		file := written(t, path)
		if file.temporary != "" {
			return file
		}
		if err := file.handle.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if file.handle, file.temporary, err = openNamed(folder, 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := named()
	if got := names(t, folder); !strings.HasPrefix(got, "[.devmap-") {
		t.Errorf("there is %s", got)
	}
	if err := file.Commit(); err != nil || names(t, folder) != "[one]" {
		t.Errorf("%v, %s", err, names(t, folder))
	}
	if err := named().Discard(); err != nil || names(t, folder) != "[one]" {
		t.Errorf("%v, %s", err, names(t, folder))
	}
}

// TestUnfinished: what was not written whole does not appear, and what was
// there stays.
func TestUnfinished(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "one")
	writeFile(t, path, []byte("old"))
	file := fixtures.Must(Create(path, nil, two))(t)
	for want, err := range map[string]error{
		`there is no "c" in it`:                file.WriteAt("c", 0, nil),
		`bytes 4 to 9 of "b", which has 8`:     file.WriteAt("b", 4, []byte("01234")),
		`bytes -1 to 0 of "b", which has 8`:    file.WriteAt("b", -1, []byte("0")),
		`4 of the 8 bytes of "b" were written`: errors.Join(file.WriteAt("a", 0, []byte("abcdef")), file.WriteAt("b", 0, []byte("0123")), file.Commit()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" || names(t, folder) != "[one]" {
		t.Errorf("%q, %v, %s", data, err, names(t, folder))
	}
}

// TestLink: what a link names is replaced, not the link.
func TestLink(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	target, link := filepath.Join(other, "real"), filepath.Join(folder, "link")
	writeFile(t, target, []byte("old"))
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := written(t, link).Commit(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	data, wrong := os.ReadFile(target)
	if err != nil || wrong != nil || info.Mode()&os.ModeSymlink == 0 || !bytes.HasSuffix(data, []byte("01234567abcdef")) {
		t.Errorf("%v, %v, %v, %q", err, wrong, info.Mode(), data)
	}
}
