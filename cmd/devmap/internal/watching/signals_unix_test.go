//go:build unix

package watching

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestSignalBeforeBegin: a signal during the start of the command reaches the command after its
// start.
func TestSignalBeforeBegin(t *testing.T) {
	t.Parallel()
	child, err := Find([]string{"sleep", "1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer Signals(child)()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := child.Start(nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if status, how, err := child.Wait(); status != signalled+int(syscall.SIGTERM) || err != nil {
		t.Errorf("%d, %s, %v", status, how, err)
	}
}
