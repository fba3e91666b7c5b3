package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/executor"
)

func TestMain(m *testing.M) {
	if strings.HasSuffix(filepath.Base(os.Args[0]), ".test") { // not a command of a script
		withoutDefaults()
	}
	testscript.Main(m, map[string]func(){"devmap": main, "fakesmi": fakeSMI, "hold": hold})
}

// withoutDefaults hides the developer's own defaults of flags from the tests, and from processes
// they start.
func withoutDefaults() {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "DEVMAP_") && !slices.Contains([]string{"DEVMAP_BINARY", "DEVMAP_TEST_GPU"}, name) {
			os.Unsetenv(name) //nolint:errcheck // a name that is set
		}
	}
	os.Setenv("DEVMAP_CONFIG", os.DevNull) //nolint:errcheck // a valid name
}

// TestScripts runs the command as users do. UPDATE_GOLDEN=1 rewrites the files that cmp compares.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") == "1",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			tinyGGUF(t, env.WorkDir)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "cuda" {
				return false, fmt.Errorf("no condition is called %q", name)
			}
			err := backends.Built()
			return !errors.Is(err, executor.ErrNotBuilt), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":         status,
			"lines":          lines,
			"mksafetensors":  mksafetensors,
			"rawsafetensors": rawsafetensors,
			"terminal":       terminal,
		},
	})
}

// status runs `status N COMMAND ARG…` and checks the command's exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, not %d", got, want)
	}
}

// lines runs `lines N FILE` and checks the number of lines of the file (or stdout, stderr).
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s has %d lines, not %s", args[1], got, args[0])
	}
}

type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// mksafetensors runs `mksafetensors FILE NAME:DTYPE:2x3…`, where @LIST is replaced by the words of
// a file. The data is a hole.
func mksafetensors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mksafetensors FILE NAME:DTYPE:SHAPE…")
	}
	header := map[string]tensor{}
	var end int64
	for _, word := range expandLists(ts, args[1:]) {
		parts := strings.Split(word, ":")
		if len(parts) != 3 {
			ts.Fatalf("%q is not NAME:DTYPE:SHAPE", word)
		}
		t := tensor{DType: parts[1]}
		size := map[string]int64{"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "F8_E4M3": 1, "I32": 4}[parts[1]]
		for n := range strings.SplitSeq(parts[2], "x") {
			dim, err := strconv.ParseInt(n, 10, 64)
			ts.Check(err)
			t.Shape = append(t.Shape, dim)
			size *= dim
		}
		t.Offsets = [2]int64{end, end + size}
		end += size
		header[parts[0]] = t
	}
	text, err := json.Marshal(header)
	ts.Check(err)
	writeSafetensors(ts, args[0], text, end, len(text))
}

func expandLists(ts *testscript.TestScript, args []string) []string {
	var words []string
	for _, arg := range args {
		if list, ok := strings.CutPrefix(arg, "@"); ok {
			words = slices.Concat(words, strings.Fields(ts.ReadFile(list)))
			continue
		}
		words = append(words, arg)
	}
	return words
}

// rawsafetensors runs `rawsafetensors FILE HEADER DATABYTES [LENGTH]`: the header as given, with
// its true length or a false one.
func rawsafetensors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: rawsafetensors FILE HEADER DATABYTES [LENGTH]")
	}
	text := strings.TrimSuffix(ts.ReadFile(args[1]), "\n")
	data, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	length := len(text)
	if len(args) == 4 {
		length, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	writeSafetensors(ts, args[0], []byte(text), data, length)
}

func writeSafetensors(ts *testscript.TestScript, name string, header []byte, data int64, length int) {
	path := ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o777))
	ts.Check(os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(length)), header...), 0o666))
	ts.Check(os.Truncate(path, int64(8+len(header))+data))
	ts.Logf("%s", fmt.Sprintf("%s: a header of %d bytes, %d bytes of data", name, len(header), data))
}
