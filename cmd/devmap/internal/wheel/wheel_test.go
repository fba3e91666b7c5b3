package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/devmap-dev/devmap/fixtures"
)

var sampled = time.Date(2026, 11, 22, 1, 2, 4, 0, time.UTC)

func sample(t *testing.T, tags ...string) *Wheel {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Wheel{
		Name: "devmap", Distribution: "devmap-gpu", Version: "1.2.3", Summary: "a summary", Binary: program, Tags: tags, Readme: []byte("# Read\n"), License: []byte("Apache"),
		Sources: fstest.MapFS{
			"devmap/__init__.py": {Data: []byte("x = 1\n")}, "devmap/py.typed": {}, "devmap/b/c.py": {Data: []byte("y = 2\n")},
			"devmap/__pycache__/b.pyc": {Data: []byte("no source")}, "tests/test.py": {Data: []byte("none of it")},
		},
		Time: sampled,
	}
}

// contents returns the files of a wheel by name, their order, and the names of executable ones.
func contents(t *testing.T, path string) (names []string, files map[string]string, programs []string) {
	t.Helper()
	reader := fixtures.Must(zip.OpenReader(path))(t)
	defer reader.Close()
	files = map[string]string{}
	for _, file := range reader.File {
		opened := fixtures.Must(file.Open())(t)
		data := fixtures.Must(io.ReadAll(opened))(t)
		if !file.Modified.Equal(sampled) {
			t.Errorf("%s is of %v, not %v", file.Name, file.Modified, sampled)
		}
		names, files[file.Name] = append(names, file.Name), string(data)
		if file.Mode().Perm()&0o111 != 0 {
			programs = append(programs, file.Name)
		}
	}
	return names, files, programs
}

func TestWheel(t *testing.T) {
	path, err := sample(t, "manylinux2014_x86_64", "manylinux_2_17_x86_64").Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(path); name != "devmap_gpu-1.2.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl" {
		t.Errorf("its file is %s", name)
	}
	names, files, programs := contents(t, path)
	want := "devmap/__init__.py devmap/_bin/devmap devmap/b/c.py devmap/py.typed devmap_gpu-1.2.3.dist-info/METADATA " +
		"devmap_gpu-1.2.3.dist-info/WHEEL devmap_gpu-1.2.3.dist-info/entry_points.txt devmap_gpu-1.2.3.dist-info/licenses/LICENSE devmap_gpu-1.2.3.dist-info/RECORD"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("its files are\n%s, not\n%s", got, want)
	}
	if strings.Join(programs, " ") != "devmap/_bin/devmap" {
		t.Errorf("may be executed: %q", programs)
	}
	var record strings.Builder
	for _, name := range names[:len(names)-1] {
		sum := sha256.Sum256([]byte(files[name]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	record.WriteString("devmap_gpu-1.2.3.dist-info/RECORD,,\n")
	if got := files["devmap_gpu-1.2.3.dist-info/RECORD"]; got != record.String() {
		t.Errorf("RECORD is\n%s, not\n%s", got, record.String())
	}
	for name, part := range map[string]string{
		"METADATA":         "Requires-Python: >=3.9\n",
		"WHEEL":            "Root-Is-Purelib: false\nTag: py3-none-manylinux2014_x86_64\nTag: py3-none-manylinux_2_17_x86_64\n",
		"entry_points.txt": "[console_scripts]\ndevmap = devmap.__main__:main\n",
	} {
		if got := files["devmap_gpu-1.2.3.dist-info/"+name]; !strings.Contains(got, part) {
			t.Errorf("%s is\n%s, without\n%s", name, got, part)
		}
	}
	if got := files["devmap_gpu-1.2.3.dist-info/METADATA"]; !strings.HasSuffix(got, "\n\n# Read\n") {
		t.Errorf("METADATA does not end with the page: %s", got)
	}
}

func TestWheelOfWindows(t *testing.T) {
	path, err := sample(t, "win_amd64").Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, files, _ := contents(t, path); files["devmap/_bin/devmap.exe"] == "" {
		t.Error("it has no devmap.exe")
	}
}

// TestWheelAgain writes a wheel twice and compares the bytes.
func TestWheelAgain(t *testing.T) {
	var written [2][]byte
	for i := range written {
		path, err := sample(t, "win_amd64").Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if written[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("two wheels of one package differ")
	}
}

func TestWheelOfNothing(t *testing.T) {
	wheel := sample(t, "win_amd64")
	wheel.Sources = fstest.MapFS{"devmap/x.py": {}}
	if path, err := wheel.Write(t.TempDir()); err == nil {
		t.Errorf("%s: a package without __init__.py", path)
	}
}
