package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestCheckRules breaks every rule in every way: a file in testdata/broken says
// which lines of testdata/sound.txt it replaces (<) by which (>), and faults
// that this is.
func TestCheckRules(t *testing.T) {
	breaks(t, "sound", "broken", "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V12", "V13", "V16")
}

// TestCheckHalves breaks the rules of backwards in two halves.
func TestCheckHalves(t *testing.T) {
	breaks(t, "halves", "broken_halves", "V1", "V7", "V8", "V12")
}

// TestCheckMoved breaks the rules of copies between device and host.
func TestCheckMoved(t *testing.T) {
	breaks(t, "moved", "broken_moved", "V7", "V8", "V10")
}

func breaks(t *testing.T, program, folder string, rules ...string) {
	t.Helper()
	data := fixtures.Must(os.ReadFile("testdata/" + program + ".txt"))(t)
	sound := string(data)
	if err := parsed(t, sound).Check().Err(); err != nil {
		t.Fatal(err)
	}
	files := fixtures.Must(filepath.Glob("testdata/" + folder + "/*.txt"))(t)
	broken := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			text, wants := edited(t, sound, file)
			rule, _, _ := strings.Cut(name, "_")
			broken[strings.ToUpper(rule)] = true
			err := parsed(t, text).Check().Err()
			if err == nil {
				t.Fatal("is found sound")
			}
			for _, want := range wants {
				if !strings.HasPrefix(want, strings.ToUpper(rule)+": ") || !strings.Contains("\n"+err.Error(), "\n"+want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
		})
	}
	for _, rule := range rules {
		if !broken[rule] {
			t.Errorf("no file breaks %s", rule)
		}
	}
}

// edited is the sound text with a file's changes, and what it wants to hear.
func edited(t *testing.T, sound, file string) (text string, wants []string) {
	t.Helper()
	data := fixtures.Must(os.ReadFile(file))(t)
	lines, at := strings.Split(strings.TrimSpace(sound), "\n"), -1
	for edit := range strings.Lines(string(data)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(edit, "\n"), " ")
		switch {
		case word == "<":
			if at = slices.Index(lines, rest); at < 0 {
				t.Fatalf("the sound program has no line %q", rest)
			}
		case word == ">" && at < 0:
			lines = append([]string{rest}, lines...)
		case word == ">":
			lines[at], at = rest, -1
		case word == "want":
			wants = append(wants, rest)
		default:
			t.Fatalf("%q: want <, > or want", edit)
		}
	}
	if len(wants) == 0 {
		t.Fatal("wants nothing")
	}
	return strings.Join(lines, "\n") + "\n", wants
}
