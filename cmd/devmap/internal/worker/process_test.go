//go:build unix

package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestMain also runs the worker of the tests below.
func TestMain(m *testing.M) {
	link, err := Inherited()
	if err != nil {
		panic(err)
	}
	switch {
	case link != nil:
		works(link, os.Args[1])
	case os.Getenv(deserts) != "":
		desert()
	default:
		m.Run()
	}
}

// deserts is a variable in this program's environment. It makes the program a supervisor that is
// killed and leaves a waiting worker.
const deserts = "TEST_DESERTS"

func desert() {
	process, err := Start(context.Background(), []string{"hangs"}, os.Stdout, os.Stderr)
	if err != nil {
		panic(err)
	}
	if _, err := process.Next(); err != nil {
		panic(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	self.Kill() //nolint:errcheck // what follows tells
	select {}
}

// works runs a worker in one of the ways of the tests.
func works(link *Link, how string) {
	orphaned = 50 * time.Millisecond
	until := link.Until(context.Background())
	link.Say(&Message{At: how + os.Getenv(environment)})
	switch how {
	case "well":
		status := 3
		link.Say(&Message{Done: &status})
		os.Exit(status)
	case "panics":
		panic("as it was asked to")
	case "waits":
		<-until.Done()
		link.Say(&Message{Broke: "it was to end"})
	case "sleeps":
		select {}
	case "hangs": // without a timer the runtime would report a deadlock
		time.Sleep(time.Hour)
	case "babbles":
		link.says.WriteString("what is this?") //nolint:errcheck // the supervisor may be gone
		<-until.Done()
	}
}

// received returns all messages of a worker.
func received(t *testing.T, process *Process) (messages []*Message, fault error) {
	t.Helper()
	for {
		message, err := process.Next()
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return messages, err
		}
		messages = append(messages, message)
	}
}

func started(ctx context.Context, t *testing.T, how string) *Process {
	t.Helper()
	process := fixtures.Must(Start(ctx, []string{how}, io.Discard, io.Discard))(t)
	return process
}

// TestEnds: a supervisor gets a worker's messages and its exit status.
func TestEnds(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		messages int
		ended    string
	}{"well": {2, "exit status 3"}, "panics": {1, "exit status 2"}} {
		process := started(t.Context(), t, how)
		messages, err := received(t, process)
		ended, gone := process.Wait()
		if err != nil || gone != nil || len(messages) != want.messages || messages[0].At != how || ended != want.ended || process.Slow() {
			t.Errorf("%s: %v, %v, %d messages, ended %s", how, err, gone, len(messages), ended)
		}
	}
}

// TestKilled: all messages of a killed worker arrive.
func TestKilled(t *testing.T) {
	t.Parallel()
	process := started(t.Context(), t, "sleeps")
	first, err := process.Next()
	if err != nil || first.At != "sleeps" {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if messages, err := received(t, process); err != nil || len(messages) != 0 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if ended, err := process.Wait(); ended != "signal: killed" || err != nil {
		t.Errorf("ended %s, %v", ended, err)
	}
}

// TestAskedToEnd: a worker ends with the context of its supervisor.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	process := started(ctx, t, "waits")
	process.grace = time.Hour
	if _, err := process.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	messages, err := received(t, process)
	if err != nil || len(messages) != 1 || messages[0].Broke != "it was to end" {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if ended, err := process.Wait(); ended != "exit status 0" || err != nil || process.Slow() {
		t.Errorf("ended %s, %v", ended, err)
	}
}

// TestSlow: a worker that does not end with its supervisor's context is killed.
func TestSlow(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	process := started(ctx, t, "sleeps")
	process.grace = 50 * time.Millisecond
	if _, err := process.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if messages, err := received(t, process); err != nil || len(messages) != 0 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if ended, err := process.Wait(); ended != "signal: killed" || err != nil || !process.Slow() {
		t.Errorf("ended %s, %v", ended, err)
	}
}

// TestDeserted: a worker whose supervisor is killed ends, whatever it does. Their output is one
// pipe, which closes with the last of them.
func TestDeserted(t *testing.T) {
	t.Parallel()
	self := fixtures.Must(os.Executable())(t)
	supervisor := exec.Command(self)
	supervisor.Env = append(os.Environ(), deserts+"=1")
	ended := fixtures.Must(supervisor.StdoutPipe())(t)
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, ended); err != nil {
		t.Error(err)
	}
	if err := supervisor.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the supervisor ended: %v", err)
	}
}

// TestBabble: invalid bytes end the reading. The supervisor then has to kill the worker.
func TestBabble(t *testing.T) {
	t.Parallel()
	process := started(t.Context(), t, "babbles")
	if messages, err := received(t, process); err == nil || len(messages) != 1 || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Wait(); err != nil {
		t.Error(err)
	}
}
