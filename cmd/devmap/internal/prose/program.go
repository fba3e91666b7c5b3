package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// help checks the help of every command, help topic and flag. The program lists them: cobra's
// completion prints a name, a tab and its text on each line.
func (check *checker) help(root, program string) error {
	if program == "" {
		folder, err := os.MkdirTemp("", "prose")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder) //nolint:errcheck // a folder of this run
		program = filepath.Join(folder, "devmap")
		build := exec.Command("go", "build", "-o", program, "./cmd/devmap") //nolint:gosec // a path made here
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building devmap: %w\n%s", err, out)
		}
	}
	ask := func(arguments ...string) (string, error) {
		out, err := exec.Command(program, arguments...).Output() //nolint:gosec // devmap
		if err != nil {
			return "", fmt.Errorf("devmap %s: %w", strings.Join(arguments, " "), err)
		}
		return string(out), nil
	}
	names, err := ask("__complete", "help", "")
	if err != nil {
		return err
	}
	for _, command := range append([][2]string{{"", ""}}, completions(names)...) {
		if command[0] == "help" || command[0] == "completion" {
			continue // cobra's own command
		}
		if err := check.command(ask, command[0], command[1]); err != nil {
			return err
		}
	}
	return nil
}

// command checks a command's one line, its text and its flags. Without a name it checks the
// program's own.
func (check *checker) command(ask func(...string) (string, error), name, short string) error {
	file := strings.TrimSpace("devmap help " + name)
	check.block(file, block{"flag", 1, short})
	text, err := ask(strings.Fields("help " + name)...)
	if err != nil {
		return err
	}
	text, _, _ = strings.Cut(text, "\nUsage:\n") // the rest is names and flags
	check.block(file, block{"help", 1, text})
	flags, err := ask(strings.Fields("__complete " + name + " --")...)
	if err != nil {
		return err
	}
	for _, one := range completions(flags) {
		check.block(file+" "+one[0], block{"flag", 1, one[1]})
	}
	return nil
}

// completions returns the names and texts in a completion. Its last line is a directive to the
// shell.
func completions(listed string) (out [][2]string) {
	for line := range strings.Lines(listed) {
		if name, text, found := strings.Cut(strings.TrimRight(line, "\n"), "\t"); found {
			out = append(out, [2]string{name, text})
		}
	}
	return out
}

// sources checks comments and the messages of errors in the Go files.
func (check *checker) sources(root string) error {
	for _, folder := range check.Sources {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
				return nil
			}
			return check.source(root, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (check *checker) source(root, name string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if name, err = filepath.Rel(root, name); err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && isMessage(call.Fun) {
			for _, argument := range call.Args {
				if literal, ok := argument.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err == nil { // as always: it was parsed
						check.block(name, block{"message", files.Position(literal.Pos()).Line, text})
					}
					break
				}
			}
		}
		return true
	})
	for _, group := range file.Comments {
		line := files.Position(group.Pos()).Line
		for _, paragraph := range strings.Split(group.Text(), "\n\n") {
			if !strings.HasPrefix(paragraph, "\t") {
				check.block(name, block{"comment", line, paragraph})
			}
			line += strings.Count(paragraph, "\n") + 2
		}
	}
	return nil
}

// messages matches functions that make an error or a note of their first string.
var messages = regexp.MustCompile(`^(?:Errorf|New|Usagef|[Rr]efuse|refusedf|fault|warn|note)$`)

// isMessage reports whether a call makes an error or a note.
func isMessage(function ast.Expr) bool {
	switch function := function.(type) {
	case *ast.Ident:
		return messages.MatchString(function.Name)
	case *ast.SelectorExpr:
		return messages.MatchString(function.Sel.Name)
	}
	return false
}
