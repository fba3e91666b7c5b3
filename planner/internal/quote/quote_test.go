package quote_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// hostile lists texts with a meaning to a shell, to Python or to a terminal.
var hostile = []string{
	"", "plain-1.0_x/y", "a b", "it's", `"x"`, "$(touch PWN)", "`touch PWN`", "x\ntouch PWN\n#", "'; touch PWN; '", "-rf", "--help",
	"\u202ereversed", "a\u2066b\u2069", "tab\tand\rreturn", "ends\n\n", "\n", "100%s\n", `back\slash`, "\\n\n", "é~*?[x]{a,b}!", "\x1b[31mred", "\xff\xfe", "-\n", `"""`, "\u2028",
	"#", "a#b", "~", "a;b", "a&b", "a|b", "<a>", "\x7f", "\u009b1m",
}

// TestShell: a real shell reads each word as its text, and a printed word is one
// line unless the text ends one.
func TestShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	for _, text := range hostile {
		word := quote.Shell(text)
		cmd := exec.Command(sh, "-c", "for a in "+word+"; do printf '<%s>' \"$a\"; done")
		cmd.Dir = t.TempDir()
		read, err := cmd.CombinedOutput()
		if err != nil || string(read) != "<"+text+">" {
			t.Errorf("%q is written %s and read %q, %v", text, word, read, err)
		}
		if !strings.HasSuffix(text, "\n") && strings.ContainsFunc(word, quote.Steers) {
			t.Errorf("%q: %q steers a terminal", text, word)
		}
	}
	for text, want := range map[string]string{"-rf": "./-rf", "- x": "'./- x'", "a": "a"} {
		if got := quote.Path(text); got != want {
			t.Errorf("path %q is %s, want %s", text, got, want)
		}
	}
}

// TestPython: python3 evaluates each literal to its text.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	var program strings.Builder
	program.WriteString("import ast, os, sys\n")
	for _, text := range hostile {
		literal := quote.Python(text)
		if strings.ContainsFunc(literal, quote.Steers) {
			t.Errorf("%q: %q steers", text, literal)
		}
		program.WriteString("sys.stdout.buffer.write(os.fsencode(" + literal + ") + b'\\0')\n# " + quote.Comment(text) + "\n")
	}
	read, err := exec.Command(python, "-X", "utf8", "-c", program.String()).CombinedOutput()
	if want := strings.Join(hostile, "\x00") + "\x00"; err != nil || string(read) != want {
		t.Errorf("%v: %q, want %q", err, read, want)
	}
	for name, want := range map[string]bool{"FluxPipeline": true, "_x1": true, "class": false, "None": false, "a b": false, "1a": false, "": false, "a\n": false, "é": false} {
		if quote.IsPythonName(name) != want {
			t.Errorf("%q is a name: %v", name, !want)
		}
	}
}

// TestJSON: the text means the same, and has no control characters except white space.
func TestJSON(t *testing.T) {
	text, err := json.MarshalIndent(hostile[:len(hostile)-1], "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	safe := quote.JSON(string(text) + " \"\u202e\"")
	var before, after []string
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(safe, ` "\u202e"`)), &after); err != nil || strings.Join(before, "\x00") != strings.Join(after, "\x00") {
		t.Errorf("%q, %v", after, err)
	}
	if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(safe), quote.Steers) {
		t.Errorf("%q steers", safe)
	}
}
