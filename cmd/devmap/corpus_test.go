package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/devmap-dev/devmap/fixtures"
)

// The corpus is a record of outputs: commands over all models, strategies, precisions and
// objectives, with hashes of their printed and written texts. A refactoring changes none of them.
// CORPUS=all runs all, CORPUS=1/2 half of them (make corpus runs both halves at once). By default
// SEED draws a sample. UPDATE_GOLDEN=1 records them again.

// shortCorpus is the number of sessions in a test run.
const shortCorpus = 24

// session lists commands that run in one folder, in order. A later one may read files of an earlier
// one.
type session struct {
	Files    map[string]string `json:"files,omitempty"` // name in the folder → path in fixtures
	Slow     bool              `json:"slow,omitempty"`  // not for the sample
	Commands []recorded        `json:"commands"`
}

// recorded is a command and its results, with a hash for each text.
type recorded struct {
	Args   []string          `json:"args"`
	Status int               `json:"status"`
	Stdout string            `json:"stdout"`
	Stderr string            `json:"stderr"`
	Wrote  map[string]string `json:"wrote,omitempty"` // hash by file
}

func TestCorpus(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("recorded on amd64: elsewhere Go may fuse a product with a sum, and last digits differ")
	}
	fixtures := fixtures.Must(filepath.Abs(filepath.Join("..", "..", "fixtures")))(t)
	file := filepath.Join(fixtures, "corpus", "corpus.jsonl")
	sessions := readCorpus(t, file)
	updating := os.Getenv("UPDATE_GOLDEN") == "1"
	chosen := chooseSessions(t, sessions, updating)
	commands := 0
	for _, recording := range chosen {
		recording.replay(t, fixtures, updating)
		commands += len(recording.Commands)
	}
	t.Logf("%d commands in %d sessions", commands, len(chosen))
	if updating {
		writeCorpus(t, file, sessions)
	}
}

// chooseSessions reads CORPUS and SEED. CORPUS=2/3 is every third session, from the second on.
func chooseSessions(t *testing.T, sessions []*session, updating bool) (chosen []*session) {
	t.Helper()
	wanted := os.Getenv("CORPUS")
	switch {
	case updating || wanted == "all":
		return sessions
	case wanted == "":
		return sample(sessions, environment(t, "SEED", 1))
	}
	var part, parts int
	if _, err := fmt.Sscanf(wanted, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
		t.Fatalf("CORPUS=%s is not all, and not a part such as 1/2", wanted)
	}
	for i := part - 1; i < len(sessions); i += parts {
		chosen = append(chosen, sessions[i])
	}
	return chosen
}

// sample returns some of the fast sessions.
func sample(sessions []*session, seed uint64) []*session {
	fast := slices.DeleteFunc(slices.Clone(sessions), func(s *session) bool { return s.Slow })
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(fast), func(i, j int) { fast[i], fast[j] = fast[j], fast[i] })
	return fast[:min(shortCorpus, len(fast))]
}

// replay runs the commands in a new folder, and compares or records them.
func (s *session) replay(t *testing.T, fixtures string, updating bool) {
	t.Helper()
	dir := t.TempDir()
	for name, path := range s.Files {
		text, err := os.ReadFile(filepath.Join(fixtures, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	before := filesOf(t, dir)
	for i := range s.Commands {
		var out, errs bytes.Buffer
		now := recorded{Args: s.Commands[i].Args}
		now.Status = unhurried(t, now.Args, &out, &errs)
		now.Stdout, now.Stderr = sum(out.Bytes()), sum(errs.Bytes())
		after := filesOf(t, dir)
		for name, text := range after {
			if before[name] != text {
				if now.Wrote == nil {
					now.Wrote = map[string]string{}
				}
				now.Wrote[name] = text
			}
		}
		before = after
		if updating {
			s.Commands[i] = now
			continue
		}
		if differing := s.Commands[i].differs(&now); len(differing) > 0 {
			t.Errorf("devmap %s\n  not as recorded: %s; now, with status %d:\n%s",
				shellWords(now.Args), differing, now.Status, tail(errs.String()))
			return // later commands of the session depend on this one
		}
	}
}

// unhurried runs a command under a fake clock, which stops while any code runs. Every recorded
// search ends on its own, but on a busy machine its time limit could come first. A limit in the
// command applies.
func unhurried(t *testing.T, args []string, out, errs io.Writer) (status int) {
	t.Helper()
	if slices.Contains(args, "--time-limit") {
		return run(t.Context(), args, out, errs)
	}
	synctest.Test(t, func(t *testing.T) { status = run(t.Context(), args, out, errs) })
	return status
}

// differs names the differences from the record.
func (r *recorded) differs(now *recorded) []string {
	var out []string
	if r.Status != now.Status {
		out = append(out, fmt.Sprintf("the status %d", r.Status))
	}
	if r.Stdout != now.Stdout {
		out = append(out, "stdout")
	}
	if r.Stderr != now.Stderr {
		out = append(out, "stderr")
	}
	if !maps.Equal(r.Wrote, now.Wrote) {
		out = append(out, "what it wrote")
	}
	return out
}

// filesOf returns the hash of each file of a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries := fixtures.Must(os.ReadDir(dir))(t)
	out := map[string]string{}
	for _, e := range entries {
		text := fixtures.Must(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		out[e.Name()] = sum(text)
	}
	return out
}

// sum returns the first half of the SHA-256, which is enough without an attacker.
func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:len(hash)/2])
}

func readCorpus(t *testing.T, file string) []*session {
	t.Helper()
	text := fixtures.Must(os.ReadFile(file))(t)
	var out []*session
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s session
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s: line %d: %v", file, len(out)+1, err)
		}
		out = append(out, &s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func writeCorpus(t *testing.T, file string, sessions []*session) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, s := range sessions {
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
