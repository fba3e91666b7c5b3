// Prose checks the text that people read: documents, help texts, messages and comments. The file
// config.json has the limits and the words. Every finding is a line FILE:LINE: RULE: ADVICE. The
// exit status is 1 if there is one.
//
//	go run ./cmd/devmap/internal/prose [-program FILE] [DOCUMENT…]
//
// With documents as arguments it checks only these.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed config.json
var embedded []byte

// config is the content of config.json.
type config struct {
	Documents  []string          `json:"documents"`
	Sources    []string          `json:"sources"`
	Limits     map[string]int    `json:"limits"`
	Characters map[string]int    `json:"characters"`
	Allowed    map[string]int    `json:"allowed"`
	Words      map[string]string `json:"words"`
}

func main() {
	program := flag.String("program", "", "check the help of this devmap `FILE` [built here]")
	root := flag.String("root", ".", "`FOLDER` of the repository")
	flag.Parse()
	failed, err := run(os.Stdout, *root, *program, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// run prints findings and reports whether one of them fails.
func run(out io.Writer, root, program string, only []string) (failed bool, err error) {
	check, err := newChecker(embedded)
	if err != nil {
		return false, err
	}
	documents := check.Documents
	if len(only) > 0 {
		documents = only
	}
	files, err := markdownFiles(root, documents)
	if err != nil {
		return false, err
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return false, err
		}
		check.document(name, string(data))
	}
	if len(only) == 0 {
		if err := check.help(root, program); err != nil {
			return false, err
		}
		if err := check.sources(root); err != nil {
			return false, err
		}
	}
	return check.print(out)
}

// markdownFiles lists the Markdown files of paths, which are files or folders.
func markdownFiles(root string, paths []string) (files []string, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(root, path), func(name string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".md") {
				name, err = filepath.Rel(root, name)
				files = append(files, filepath.ToSlash(name))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// A finding is a place and the rule it breaks.
type finding struct {
	file         string
	line         int
	kind         string
	rule, advice string
	text         string
}

// checker collects findings.
type checker struct {
	config
	words    []word
	findings []finding
}

type word struct {
	match *regexp.Regexp
	usual string
}

func newChecker(data []byte) (*checker, error) {
	check := &checker{}
	if err := json.Unmarshal(data, &check.config); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	for expression, usual := range check.Words {
		match, err := regexp.Compile(`(?i)\b(?:` + expression + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("config.json: words: %q: %w", expression, err)
		}
		check.words = append(check.words, word{match, usual})
	}
	slices.SortFunc(check.words, func(a, b word) int { return strings.Compare(a.match.String(), b.match.String()) })
	return check, nil
}

func (check *checker) add(file string, line int, kind, rule, advice, text string) {
	check.findings = append(check.findings, finding{file, line, kind, rule, advice, strings.Join(strings.Fields(text), " ")})
}

// print writes the findings. Kinds with an allowance fail only above it.
func (check *checker) print(out io.Writer) (failed bool, err error) {
	counts := map[string]int{}
	for _, one := range check.findings {
		counts[one.kind]++
	}
	for _, one := range check.findings {
		if counts[one.kind] <= check.Allowed[one.kind] {
			continue
		}
		failed = true
		if _, err := fmt.Fprintf(out, "%s:%d: %s: %s | %.160s\n", one.file, one.line, one.rule, one.advice, one.text); err != nil {
			return failed, err
		}
	}
	for kind, allowed := range check.Allowed {
		if counts[kind] > allowed {
			if _, err := fmt.Fprintf(out, "%s: %d findings, config.json allows %d\n", kind, counts[kind], allowed); err != nil {
				return failed, err
			}
		}
	}
	return failed, nil
}
