package watch

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mark is the environment variable that identifies the processes of a command, at any depth and
// also after they have left their parents.
const Mark = "DEVMAP_WATCHED"

// Tree is a command's processes: the first, its descendants, and those with its mark. Goroutines
// may share it.
type Tree struct {
	lock  sync.Mutex
	root  int
	value string         // of the mark; empty: there is none
	seen  map[int]uint64 // when each process of the tree began: numbers are reused
	read  func(process int, file string) ([]byte, error)
}

// NewTree returns the tree of a running process.
func NewTree(root int) *Tree {
	return &Tree{root: root, seen: make(map[int]uint64), read: readProc}
}

// Marked returns the tree of a command that has not begun, and the environment that marks its
// processes.
func Marked(environment []string) (*Tree, []string) {
	tree := NewTree(0)
	tree.value = rand.Text()
	return tree, append(slices.Clip(environment), Mark+"="+tree.value)
}

// Begin names the command's first process.
func (tree *Tree) Begin(root int) {
	tree.lock.Lock()
	defer tree.lock.Unlock()
	tree.root = root
}

func readProc(process int, file string) ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/%s", process, file))
}

// Has reports whether a process is of the tree. here: this machine shows the process; otherwise the
// number is of another namespace. A process of the tree stays one though its parents end. Others
// are looked at again, as a process that has just begun has no environment yet.
func (tree *Tree) Has(process int) (ours, here bool) {
	tree.lock.Lock()
	defer tree.lock.Unlock()
	_, start, err := tree.stat(process)
	if err != nil {
		return process == tree.root && process != 0, false
	}
	if known, ok := tree.seen[process]; ok && known == start {
		return true, true
	}
	if !tree.descends(process) && !tree.marked(process) {
		return false, true
	}
	tree.seen[process] = start
	return true, true
}

// deepest limits the line of parents: processes come and go as they are read.
const deepest = 128

func (tree *Tree) descends(process int) bool {
	for range deepest {
		if process == tree.root {
			return true
		}
		parent, _, err := tree.stat(process)
		if err != nil || parent < 1 {
			return false
		}
		process = parent
	}
	return false
}

func (tree *Tree) marked(process int) bool {
	if tree.value == "" {
		return false
	}
	text, err := tree.read(process, "environ")
	value, found := lookup(text, Mark)
	return err == nil && found && value == tree.value
}

func (tree *Tree) stat(process int) (parent int, start uint64, err error) {
	text, err := tree.read(process, "stat")
	if err != nil {
		return 0, 0, err
	}
	return parseStat(string(text))
}

// parseStat reads the parent and the start time in proc_pid_stat(5): the 4th and the 22nd field.
// The 2nd is a name in parentheses, which may have blanks and parentheses.
func parseStat(text string) (parent int, start uint64, err error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const parentAt, startAt = 4 - 3, 22 - 3
	if len(fields) <= startAt {
		return 0, 0, fmt.Errorf("%d fields behind the name, not more than %d", len(fields), startAt)
	}
	if parent, err = strconv.Atoi(fields[parentAt]); err != nil {
		return 0, 0, err
	}
	start, err = strconv.ParseUint(fields[startAt], 10, 64)
	return parent, start, err
}

// Alive reports whether the first process still runs. A new process with the same number does not
// count. A process that has ended does not count either, even if its parent has not waited for it.
func (tree *Tree) Alive() bool {
	tree.lock.Lock()
	defer tree.lock.Unlock()
	_, start, err := tree.stat(tree.root)
	if began, known := tree.seen[tree.root]; err != nil || known && began != start {
		return false
	}
	text, err := tree.read(tree.root, "stat")
	behind := strings.TrimSpace(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return err == nil && !strings.HasPrefix(behind, "Z") && !strings.HasPrefix(behind, "X")
}

// Argv returns the command line of a process; nil: it does not have one.
func Argv(process int) []string {
	text, err := readProc(process, "cmdline")
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Environ returns a variable of a process's environment at its start.
func Environ(process int, name string) (value string, set bool, err error) {
	text, err := readProc(process, "environ")
	if err != nil {
		return "", false, err
	}
	value, set = lookup(text, name)
	return value, set, nil
}

// lookup finds a variable in the text of proc_pid_environ(5).
func lookup(text []byte, name string) (value string, set bool) {
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value, true
		}
	}
	return "", false
}
