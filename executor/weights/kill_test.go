package weights

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestKilled kills a process while it writes, without any warning (SIGKILL):
// there is nothing of what it wrote, file or folder, and what was there is.
func TestKilled(t *testing.T) {
	if folder := os.Getenv("WEIGHTS_TEST_WRITE"); folder != "" {
		writeForever(folder)
	}
	folder := t.TempDir()
	if !unnamed(t, folder) {
		t.Skip("this file system has no files without a name")
	}
	old := filepath.Join(folder, "old.safetensors")
	writeFile(t, old, []byte("old"))
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "WEIGHTS_TEST_WRITE="+folder)
	child.Stderr = os.Stderr
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "writing\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if data, err := os.ReadFile(old); err != nil || string(data) != "old" || names(t, folder) != "[old.safetensors]" {
		t.Errorf("%q, %v; there is %s", data, err, names(t, folder))
	}
}

// writeForever is the process that is killed: it says so when it has written
// some of everything.
func writeForever(folder string) {
	entries := []Entry{{"a", modelgraph.F32, []int64{1 << 20}}}
	inside := func(name string) string { return filepath.Join(folder, name) }
	config := []byte(tinyConfig)
	graph := &modelgraph.Graph{Config: config}
	model, err := CreateModel(inside("model"), graph, modelgraph.F32)
	state, wrong := CreateState(inside("state"), &State{Step: 1}, entries)
	if err != nil || wrong != nil {
		panic("no folder was begun")
	}
	defer model.Discard() //nolint:errcheck // killed before
	var files []*File
	for _, name := range []string{"old.safetensors", "new.safetensors"} {
		file, err := Create(inside(name), nil, entries)
		if err != nil {
			panic(err)
		}
		files = append(files, file)
	}
	for i := 0; ; i++ {
		for _, file := range append(files, state) {
			if err := file.WriteAt("a", int64(i%1024)*4096, make([]byte, 4096)); err != nil {
				panic(err)
			}
		}
		if i == 10 {
			os.Stdout.WriteString("writing\n") //nolint:errcheck // read by the test
		}
	}
}
