//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// The scripts of devmap watch have fake GPUs. The file $HELD has their usage, one process per line:
// GPU PROCESS MEBIBYTES. fakesmi is their nvidia-smi, and hold is a process on them. Both
// synchronize by files and not by the clock. fakesmi copies to $HELD.read the state of $HELD that
// its reader has read. It copies to $HELD.asked the state whose processes its reader knows.

const fakeGPUs = 2

// fakeSMI answers as nvidia-smi.
func fakeSMI() {
	stateFile, query := os.Getenv("HELD"), os.Args[1]
	switch {
	case strings.HasPrefix(query, "--query-gpu=index,uuid"):
		mode := os.Getenv("MIG")
		if mode == "" {
			mode = "Disabled"
		}
		for gpu, mebibytes := range fakeUsage(contents(stateFile)) {
			fmt.Printf("%d, GPU-%d%d%d, NVIDIA H200, 143771, %d, %s, 580.1\n", gpu, gpu, gpu, gpu, mebibytes, mode)
		}
	case strings.HasPrefix(query, "--query-compute-apps"):
		// A reader that asks again has read the last answer.
		replace(stateFile+".asked", contents(stateFile+".answered"))
		text := contents(stateFile)
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) == 3 {
				fmt.Printf("GPU-%s%s%s, %s, %s\n", fields[0], fields[0], fields[0], fields[1], fields[2])
			}
		}
		replace(stateFile+".answered", text)
	default:
		fakeLoop(stateFile)
	}
}

// fakeLoop writes the usage of GPUs until its reader ends. A text is read once the pipe is empty,
// and counts once the next text has been read, too.
func fakeLoop(stateFile string) {
	reported, taken := "", 0
	for {
		text := contents(stateFile)
		for gpu, mebibytes := range fakeUsage(text) {
			fmt.Printf("%d, %d\n", gpu, mebibytes)
		}
		time.Sleep(20 * time.Millisecond)
		left, err := unix.IoctlGetInt(1, unix.TIOCINQ)
		switch {
		case text != reported:
			reported, taken = text, 0
		case err == nil && left == 0:
			taken++
		}
		if taken > 1 {
			replace(stateFile+".read", strconv.Itoa(taken)+"\n"+text)
		}
	}
}

// fakeUsage returns the sum of each GPU's processes.
func fakeUsage(text string) []int {
	all := make([]int, fakeGPUs)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 {
			gpu, errGPU := strconv.Atoi(fields[0])
			mebibytes, err := strconv.Atoi(fields[2])
			if errGPU == nil && err == nil {
				all[gpu] += mebibytes
			}
		}
	}
	return all
}

// hold GPU MEBIBYTES SECONDS … STATUS: this process holds that memory until readers of the GPUs
// have read it, and again after at least so many seconds. In place of these three words, `asked`
// waits until the readers have asked for its process. `stay` makes $HELD.stays and waits for
// $HELD.leave, and `keep` leaves memory in use after the end.
func hold() {
	stateFile, args := os.Getenv("HELD"), os.Args[1:]
	keep := false
	for step := 0; len(args) > 0; step++ {
		text := contents(stateFile)
		switch {
		case args[0] == "asked":
			for contents(stateFile+".asked") != text {
				time.Sleep(10 * time.Millisecond)
			}
			args = args[1:]
		case args[0] == "keep":
			keep, args = true, args[1:]
		case args[0] == "stay":
			replace(stateFile+".stays", "")
			for exists(stateFile) && !exists(stateFile+".leave") {
				time.Sleep(10 * time.Millisecond)
			}
			args = args[1:]
		case len(args) > 2:
			text = fmt.Sprintf("%s %d %s\n#%d\n", args[0], os.Getpid(), args[1], step)
			replace(stateFile, text)
			seconds, err := strconv.ParseFloat(args[2], 64)
			if err != nil {
				panic(err)
			}
			first := awaitRead(stateFile, text, 0)
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			if seconds > 0 {
				awaitRead(stateFile, text, first+1)
			}
			args = args[3:]
		default:
			if !keep {
				replace(stateFile, "")
			}
			status, err := strconv.Atoi(args[0])
			if err != nil {
				panic(err)
			}
			os.Exit(status)
		}
	}
	if !keep {
		replace(stateFile, "")
	}
}

// awaitRead waits until readers have read a text more than so many times, and returns that number.
func awaitRead(stateFile, text string, least int) int {
	for {
		count, read, _ := strings.Cut(contents(stateFile+".read"), "\n")
		if times, err := strconv.Atoi(count); err == nil && read == text && times > least {
			return times
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func contents(path string) string {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return string(text)
}

func replace(path, text string) {
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		panic(err)
	}
}

// terminal runs `terminal ROWS COLUMNS COMMAND…` on a terminal of that size, and saves all its
// output in the file "screen".
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal ROWS COLUMNS COMMAND…")
	}
	rows, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	columns, err := strconv.ParseUint(args[1], 10, 16)
	ts.Check(err)
	screen, tty, err := openTerminal(&unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	ts.Check(err)
	defer screen.Close() //nolint:errcheck // it was read to its end
	command := exec.Command("sh", "-c", `exec "$@" 2>/dev/tty`, "sh")
	command.Args = append(command.Args, args[2:]...)
	command.Dir, command.Stdin = ts.MkAbs("."), tty
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "HELD", "NO_COLOR", "TERM"} {
		if value := ts.Getenv(name); value != "" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = command.Start()
	tty.Close() //nolint:errcheck // the command has its own
	ts.Check(err)
	shown, _ := io.ReadAll(screen) // Linux ends it with an error after the last process
	if err := command.Wait(); err != nil {
		ts.Logf("it ended: %v", err)
	}
	ts.Check(os.WriteFile(filepath.Join(command.Dir, "screen"), shown, 0o600))
}

// openTerminal makes a pseudo-terminal: the side of the screen, and the side of a process.
func openTerminal(size *unix.Winsize) (screen, tty *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	descriptor := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(descriptor, unix.TIOCSWINSZ, size); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	return screen, tty, err
}
