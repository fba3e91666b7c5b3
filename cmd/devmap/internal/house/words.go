package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

//go:embed words.txt
var wordList string

// vocabulary is the list of private words that identifiers and comments avoid.
type vocabulary struct {
	names  map[string]string // a part of an identifier, in lower case: the usual term
	phrase *regexp.Regexp    // matches any of the phrases
	single []phrase          // identifies the phrase that matched
}

type phrase struct {
	pattern *regexp.Regexp
	usual   string
}

// hit is one use of a private word.
type hit struct {
	position token.Position
	kind     string // identifier, file or comment
	word     string // as written
	usual    string
}

// readVocabulary parses a list of words. A line is a pattern, a tab and the usual term. The last
// line in brackets says where the pattern applies.
func readVocabulary(text string) (*vocabulary, error) {
	known := &vocabulary{names: map[string]string{}}
	var all []string
	section := ""
	scanner := bufio.NewScanner(strings.NewReader(text))
	for number := 1; scanner.Scan(); number++ {
		line := scanner.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		word, usual, found := strings.Cut(line, "\t")
		if !found || section == "" {
			return nil, fmt.Errorf("words.txt:%d: want [section], or a pattern, a tab and the usual term, but have %q", number, line)
		}
		if section != "comments" {
			known.names[word] = usual
		}
		if section != "identifiers" {
			pattern, err := regexp.Compile(`(?i)\b(?:` + word + `)\b`)
			if err != nil {
				return nil, fmt.Errorf("words.txt:%d: %w", number, err)
			}
			known.single = append(known.single, phrase{pattern, usual})
			all = append(all, word)
		}
	}
	var err error
	known.phrase, err = regexp.Compile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
	return known, err
}

// parts splits an identifier at underscores and at camel case.
func parts(name string) []string {
	var out []string
	runes, from := []rune(name), 0
	for at := 1; at <= len(runes); at++ {
		if at < len(runes) && !unicode.IsUpper(runes[at]) && runes[at] != '_' {
			continue
		}
		acronym := at < len(runes) && unicode.IsUpper(runes[at]) && unicode.IsUpper(runes[at-1]) &&
			(at+1 == len(runes) || !unicode.IsLower(runes[at+1]))
		if acronym {
			continue
		}
		if part := strings.Trim(string(runes[from:at]), "_"); part != "" {
			out = append(out, strings.ToLower(part))
		}
		from = at
	}
	return out
}

// identifier returns the hits in a name.
func (known *vocabulary) identifier(name, kind string, position token.Position) []hit {
	var out []hit
	for _, part := range parts(name) {
		part = strings.TrimRight(part, "0123456789")
		if usual, found := known.names[part]; found {
			out = append(out, hit{position, kind, name, usual})
		}
	}
	return out
}

// quoted matches text that a comment cites: messages, flags and names in other projects.
var quoted = regexp.MustCompile("\"[^\"]*\"|`[^`]*`")

// comment returns the hits in a group of comment lines, joined to match phrases across lines.
func (known *vocabulary) comment(group *ast.CommentGroup, files *token.FileSet) []hit {
	var text strings.Builder
	var starts []int
	var lines []token.Position
	add := func(line string, position token.Position) {
		starts, lines = append(starts, text.Len()), append(lines, position)
		text.WriteString(strings.TrimSpace(line) + " ")
	}
	for _, one := range group.List {
		if strings.HasPrefix(one.Text, "//go:") || strings.HasPrefix(one.Text, "//nolint") {
			continue
		}
		position := files.Position(one.Pos())
		for _, line := range strings.Split(strings.TrimSuffix(one.Text[2:], "*/"), "\n") {
			add(line, position)
			position.Line++
		}
	}
	joined := text.String()
	if at := exampleOutput.FindStringIndex(joined); at != nil {
		joined = joined[:at[0]]
	}
	joined = quoted.ReplaceAllStringFunc(joined, func(cited string) string { return strings.Repeat("~", len(cited)) })
	var out []hit
	for _, at := range known.phrase.FindAllStringIndex(joined, -1) {
		line, _ := slices.BinarySearch(starts, at[0]+1)
		word := joined[at[0]:at[1]]
		out = append(out, hit{lines[line-1], "comment", word, known.usual(word)})
	}
	return out
}

// exampleOutput matches the start of a comment that a test compares with a program's output.
var exampleOutput = regexp.MustCompile(`^(?i:(?:unordered )?output:)`)

// usual returns the term for a phrase in a comment.
func (known *vocabulary) usual(word string) string {
	for i := range known.single {
		if found := known.single[i].pattern.FindString(word); found == word {
			return known.single[i].usual
		}
	}
	return ""
}

// scan returns the hits in a file: in its name, its declarations and its comments.
func (known *vocabulary) scan(name string, file *ast.File, files *token.FileSet) []hit {
	base := strings.TrimSuffix(filepath.Base(name), ".go")
	out := known.identifier(base, "file", token.Position{Filename: name, Line: 1})
	for _, declared := range declaredNames(file) {
		out = append(out, known.identifier(declared.Name, "identifier", files.Position(declared.Pos()))...)
	}
	for _, group := range file.Comments {
		out = append(out, known.comment(group, files)...)
	}
	slices.SortStableFunc(out, func(one, other hit) int { return one.position.Line - other.position.Line })
	return out
}

// declaredNames returns the identifiers that a file declares. Uses have the same names.
func declaredNames(file *ast.File) []*ast.Ident {
	out := []*ast.Ident{file.Name}
	add := func(exprs ...ast.Expr) {
		for _, expr := range exprs {
			if name, ok := expr.(*ast.Ident); ok {
				out = append(out, name)
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			if node.Name != nil {
				out = append(out, node.Name)
			}
		case *ast.FuncDecl:
			out = append(out, node.Name)
		case *ast.TypeSpec:
			out = append(out, node.Name)
		case *ast.ValueSpec:
			out = append(out, node.Names...)
		case *ast.Field:
			out = append(out, node.Names...)
		case *ast.LabeledStmt:
			out = append(out, node.Label)
		case *ast.AssignStmt:
			if node.Tok == token.DEFINE {
				add(node.Lhs...)
			}
		case *ast.RangeStmt:
			if node.Tok == token.DEFINE {
				add(node.Key, node.Value)
			}
		}
		return true
	})
	return out
}

// listWords prints the hits in files and folders, one per line, and reports whether there are any.
func listWords(paths []string, out io.Writer) (bool, error) {
	listed := false
	for _, path := range paths {
		module, err := parseTree(path)
		if err != nil {
			return false, err
		}
		for _, dir := range slices.Sorted(maps.Keys(module.folders)) {
			for _, found := range module.folders[dir].private {
				listed = true
				if _, err := fmt.Fprintln(out, found); err != nil {
					return false, err
				}
			}
		}
	}
	return listed, nil
}

func (found hit) String() string {
	at := found.position
	return fmt.Sprintf("%s:%d: %s %q: %s", at.Filename, at.Line, found.kind, found.word, found.usual)
}

// privateWords counts the hits of a module, by package, most first.
func (module *tree) privateWords() figure {
	result := figure{name: "private words in identifiers and comments"}
	dirs := slices.SortedFunc(maps.Keys(module.folders), func(one, other string) int {
		fewer := len(module.folders[other].private) - len(module.folders[one].private)
		return cmp.Or(fewer, strings.Compare(one, other))
	})
	var named []string
	for _, dir := range dirs {
		if count := len(module.folders[dir].private); count > 0 {
			result.value += count
			named = append(named, fmt.Sprintf("%s %d", dir, count))
		}
	}
	result.where = strings.Join(named, ", ")
	return result
}
