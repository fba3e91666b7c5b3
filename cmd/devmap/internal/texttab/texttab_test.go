package texttab_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
)

func ExampleTable() {
	t := texttab.New("GPU", "runs", "head-\nroom")
	t.Right(2)
	t.Row("0", "embed, layers.0–7 (8)", "1.50")
	t.Row("10", "norm", "12.25")
	fmt.Println(t)
	// Output:
	//                              head-
	//  GPU  runs                    room
	// ───────────────────────────────────
	//  0    embed, layers.0–7 (8)   1.50
	//  10   norm                   12.25
}

// TestFit: a column is as wide as the table's width allows, but not narrower than its least width.
func TestFit(t *testing.T) {
	for width, want := range map[int]int{100: 31, 24: 24, 12: 14} {
		tab := texttab.New("a", "b", "c")
		tab.Row("1", "one two three four five", "6")
		tab.Fit(1, 6, width)
		if got := tab.Width(); got != want {
			t.Errorf("%d columns, want %d for at most %d:\n%s", got, want, width, tab)
		}
	}
}

// TestWrap: a column is broken between words, the lines of a cell stay separate, and the width is
// the longest line's.
func TestWrap(t *testing.T) {
	tab := texttab.New("a", "b")
	tab.Row("1", "0: one two three four\n1: five")
	wide := tab.Width()
	tab.Wrap(1, 12)
	if got := tab.Width(); got >= wide || got < 12 {
		t.Errorf("%d wide, before %d", got, wide)
	}
	lines := strings.Split(tab.String(), "\n")
	if len(lines) != 5 || !strings.HasSuffix(lines[3], "three four") || !strings.HasSuffix(lines[4], "1: five") {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		if strings.HasSuffix(line, " ") {
			t.Errorf("a blank at the end of %q", line)
		}
	}
}

// TestWholeNumbers: a long name breaks between its parts, and no number is cut, at any
// width.
func TestWholeNumbers(t *testing.T) {
	const cell = "embed, vision_tower.encoder.layers.1234–5678, transformer1234 of 1234.5678 norm"
	numbers := regexp.MustCompile(`\d+(\.\d+)*`)
	for width := 9; width < 60; width++ {
		tab := texttab.New("a", "b").Compact()
		tab.Row("a", cell)
		tab.Wrap(1, width)
		var text string
		for line := range strings.SplitSeq(tab.String(), "\n") {
			if line = strings.TrimLeft(line, "ab "); utf8.RuneCountInString(line) > width {
				t.Errorf("%q is wider than %d", line, width)
			}
			text += line + "\n"
		}
		if got := numbers.FindAllString(text, -1); !slices.Equal(got, []string{"1234", "5678", "1234", "1234.5678"}) {
			t.Errorf("width %d: the numbers are %q:\n%s", width, got, text)
		}
		if width > 40 && strings.Contains(text, "vision_tower.\n") {
			t.Errorf("width %d: a name that fits in a line is broken:\n%s", width, text)
		}
	}
}
