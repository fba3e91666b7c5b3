package watch

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shown is a fake /proc: parents by process, and environments.
type shown struct {
	parents map[int]int
	start   uint64
	state   string
	environ map[int]string
}

func (proc *shown) read(process int, file string) ([]byte, error) {
	parent, there := proc.parents[process]
	if !there {
		return nil, os.ErrNotExist
	}
	if file == "environ" {
		return []byte(proc.environ[process]), nil
	}
	zeros := strings.Repeat("0 ", 17)
	return fmt.Appendf(nil, "%d (a ) (b) %s %d %s%d 0 0\n", process, cmp.Or(proc.state, "S"), parent, zeros, proc.start), nil
}

func TestTree(t *testing.T) {
	t.Parallel()
	tree, environment := Marked([]string{"A=1"})
	if len(environment) != 2 || environment[0] != "A=1" || !strings.HasPrefix(environment[1], Mark+"=") {
		t.Fatalf("%q", environment)
	}
	proc := &shown{
		parents: map[int]int{10: 1, 20: 10, 30: 20, 40: 1, 50: 1, 60: 61, 61: 60, 70: 10},
		environ: map[int]string{40: "B=2\x00" + environment[1] + "\x00", 50: Mark + "=another"},
	}
	tree.read = proc.read
	tree.Begin(20)
	for process, want := range map[int][2]bool{
		20: {true, true},  // the command
		30: {true, true},  // its child
		40: {true, true},  // which left its parents, and has the mark
		50: {false, true}, // somebody else's
		10: {false, true}, // the command's parent
		70: {false, true},
		60: {false, true}, // parents in a cycle, as numbers are used again
		99: {false, false},
	} {
		if ours, here := tree.Has(process); [2]bool{ours, here} != want {
			t.Errorf("process %d: ours %v, here %v; want %v", process, ours, here, want)
		}
	}
	// Its parent has ended: it is known still. Another has its number: it is not.
	proc.parents[30] = 1
	if ours, _ := tree.Has(30); !ours {
		t.Error("a grandchild is lost with its parent")
	}
	proc.start = 7
	if ours, _ := tree.Has(30); ours {
		t.Error("a number that was used again counts as before")
	}
}

// TestTreeOfFirst: in a container the command may be process 1.
func TestTreeOfFirst(t *testing.T) {
	t.Parallel()
	tree := NewTree(1)
	tree.read = (&shown{parents: map[int]int{1: 0, 20: 1, 30: 0}}).read
	for process, want := range map[int]bool{1: true, 20: true, 30: false} {
		if ours, _ := tree.Has(process); ours != want {
			t.Errorf("process %d: ours %v", process, ours)
		}
	}
}

// TestTreeOfProcesses reads real processes.
func TestTreeOfProcesses(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	tree, environment := Marked(os.Environ())
	child := exec.Command("sleep", "60")
	child.Env = environment
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()         //nolint:errcheck // it is killed
	defer child.Process.Kill() //nolint:errcheck // likewise
	tree.Begin(1 << 30)        // none: the mark alone is found
	ours, here := tree.Has(child.Process.Pid)
	for ; !ours; time.Sleep(time.Millisecond) { // between fork and exec the child has this process's environment
		ours, here = tree.Has(child.Process.Pid)
	}
	if !ours || !here {
		t.Errorf("ours %v, here %v", ours, here)
	}
	if ours, here := tree.Has(os.Getpid()); ours || !here {
		t.Errorf("this process: ours %v, here %v", ours, here)
	}
	if ours, _ := NewTree(os.Getpid()).Has(child.Process.Pid); !ours {
		t.Error("a child is not found by its parent")
	}
	if value, set, err := Environ(child.Process.Pid, Mark); !strings.HasSuffix(environment[len(environment)-1], "="+value) || !set || err != nil {
		t.Errorf("%q, %v, %v", value, set, err)
	}
}

// TestAlive: a process that has ended, and one whose parent has not asked how.
func TestAlive(t *testing.T) {
	t.Parallel()
	proc := &shown{parents: map[int]int{20: 1}, start: 5, state: "S"}
	tree := NewTree(20)
	tree.read = proc.read
	if ours, _ := tree.Has(20); !ours || !tree.Alive() {
		t.Error("it is there")
	}
	proc.state = "Z"
	if tree.Alive() {
		t.Error("a zombie runs")
	}
	proc.state, proc.start = "R", 6
	if tree.Alive() {
		t.Error("another has its number")
	}
	delete(proc.parents, 20)
	if tree.Alive() {
		t.Error("it is gone")
	}
}

func FuzzParseStat(f *testing.F) {
	for _, text := range []string{"1 (x) S 0 " + strings.Repeat("0 ", 17) + "5", "1 (a) b) S 4", "", ")", "1 (x) S x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parent, start, err := parseStat(text); err != nil && (parent != 0 && start != 0) {
			t.Errorf("%q: %d, %d and %v", text, parent, start, err)
		}
	})
}
