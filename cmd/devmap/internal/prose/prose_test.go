package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestRules: each text breaks exactly the named rules.
func TestRules(t *testing.T) {
	long := strings.Repeat("word ", 36) + "end."
	for _, c := range []struct{ kind, text, want string }{
		{"text", "devmap predicts the peak memory of each GPU.", ""},
		{"text", "The median of `a; b: c; d: e` is one code span, and [a link](https://x.y) counts as its text.", ""},
		{"text", long, "long"},
		{"text", "It sets each byte beside the planned one.", "word"},
		{"text", "What a GPU holds at its peak follows.", "inversion"},
		{"text", "Of a pipeline each stage has its own plan.", "inversion"},
		{"text", "devmap returns nil where there is no plan for it.", "where"},
		{"text", "One (a), two (b) and three (c) asides are in here.", "parentheses"},
		{"text", "First: this; then that; and this: done now at last.", "joins"},
		{"text", "Those that fit come before those that do not, and what is left follows all that it needs.", "headless"},
		{"heading", "Why is a plan of the model the best possible?", "heading"},
		{"flag", "Move units off the GPUs; see devmap help offload [none]", ""},
		{"flag", strings.Repeat("long help ", 7), "flag-help"},
		{"help", strings.Repeat("a wide line of help ", 5), "help-width"},
		{"help", "Two lists and their words:\n\n  " + strings.Repeat("a short row of words\n  ", 8) + "\nThe text ends here.", ""},
		{"help", "  " + strings.Repeat("wide row ", 10), "help-width"},
		{"help", "  a row set beside it", "word"},
		{"help", "A short text of a help\n" + long[:60] + "\n" + long[60:], "help-width long"},
		{"message", "%s: tensor %q: %d of %d bytes: %w", ""},
		{"message", strings.Repeat("word ", 26), "message-length"},
	} {
		check := fixtures.Must(newChecker(embedded))(t)
		check.block("x.md", block{c.kind, 3, c.text})
		var rules []string
		for _, found := range check.findings {
			rules = append(rules, found.rule)
		}
		if got := strings.Join(rules, " "); got != c.want {
			t.Errorf("%s %q breaks %q, want %q", c.kind, c.text, got, c.want)
		}
	}
}

// TestMarkdown splits a page. Code, HTML and rules of tables are omitted.
func TestMarkdown(t *testing.T) {
	var got []string
	for _, one := range markdown("# Title\n\nA text.\nIts end.\n- item\n\n| a | b |\n|---|---|\n| c\\|d | e |\n```sh\ncode\n```\n<!-- x -->\n1. last\n") {
		got = append(got, one.kind+" "+one.text)
	}
	want := []string{"heading Title", "text A text.\nIts end.", "text item", "cell a", "cell b", "cell c\\|d", "cell e", "text last"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSentences: abbreviations and numbers do not end a sentence; lines are counted.
func TestSentences(t *testing.T) {
	got := sentences(block{"text", 4, "It has 0.5 GiB, e.g. `x`.\nThe next one is here! 3 more."})
	want := []sentence{{"It has 0.5 GiB, e.g. `x`.", 4}, {"The next one is here!", 5}, {"3 more.", 5}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPages: README.md and docs have no findings, except those of commands' help in docs/cli.
func TestPages(t *testing.T) {
	var out strings.Builder
	if _, err := run(&out, filepath.Join("..", "..", "..", ".."), "", []string{"README.md", "docs"}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "docs/cli/") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// TestParagraphs: a blank or an indented line ends a paragraph; lines are counted.
func TestParagraphs(t *testing.T) {
	got := paragraphs(block{"help", 1, "Kinds,\nin a list:\n\n  a  one\n  b  two\nThe end.\n"})
	want := []block{{"paragraph", 1, "Kinds,\nin a list:"}, {"row", 4, "  a  one"}, {"row", 5, "  b  two"}, {"paragraph", 6, "The end."}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestSource: errors and comments of a Go file are checked, and an allowance works.
func TestSource(t *testing.T) {
	root := t.TempDir()
	source := "package x\n\n// f returns nil where there is nothing to do.\nfunc f() error { return errors.New(\"the plan is set beside it\") }\n"
	if err := os.WriteFile(filepath.Join(root, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	check := fixtures.Must(newChecker(embedded))(t)
	check.Sources, check.Allowed = []string{"."}, map[string]int{"comment": 1}
	if err := check.sources(root); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	failed, err := check.print(&out)
	if want := "x.go:4: word: \"beside\" → next to, compared with | the plan is set beside it\n"; err != nil || !failed || out.String() != want {
		t.Errorf("failed %v, %v, got\n%swant\n%s", failed, err, out.String(), want)
	}
}

// TestSizes: a page's limit overrides its folder's.
func TestSizes(t *testing.T) {
	check := &checker{config: config{Characters: map[string]int{"docs/": 6, "docs/cli/": 9, "docs/own.md": 14}}}
	for name, want := range map[string]int{"docs/a.md": 6, "docs/cli/a.md": 9, "docs/own.md": 14, "x.md": 0} {
		if got := check.sizeLimit(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
