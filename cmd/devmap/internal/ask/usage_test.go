package ask

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestNarrowUsage: the groups of flags and the paragraphs of texts fit a terminal of 40 columns.
func TestNarrowUsage(t *testing.T) {
	cmd := &cobra.Command{Use: "plan MODEL", Run: func(*cobra.Command, []string) {}}
	New(cmd)
	AddGlobals(cmd.PersistentFlags())
	_, flags, _ := strings.Cut(usage(cmd, 40), "\nWhat to plan:\n")
	for _, line := range strings.Split(flags, "\n") {
		if len([]rune(line)) > 40 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	if !strings.Contains(flags, "--batch N\n          Sequences per step; per GPU\n          under DDP, FSDP, ZeRO [1]\n") {
		t.Errorf("the explanation is not below its flag:\n%s", flags)
	}
	text := "A paragraph that is wider than the terminal is.\n\n  A line that begins with a blank stays as wide as it is."
	want := "A paragraph that is\nwider than the\nterminal is.\n\n  A line that begins with a blank stays as wide as it is."
	if got := reflowed(text, 20); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
