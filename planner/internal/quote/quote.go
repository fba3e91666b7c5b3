// Package quote writes text from outside (names of models, files and folders) into other languages.
// Each language has its own function, so that no name is read as code. [JSON] is for JSON inside a
// program; other JSON has its own encoder.
package quote

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Steers reports characters that change how a terminal or an editor shows a line: control
// characters, line and paragraph separators, and changes of reading direction (Unicode's
// Bidi_Control).
func Steers(char rune) bool {
	return unicode.IsControl(char) || unicode.In(char, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Comment returns text for a one-line comment in shell or Python. Characters that steer become
// \u001b, and invalid UTF-8 becomes \xff.
func Comment(text string) string {
	return escape(text, "", `\u%04x`, `\x%02x`)
}

// Shell returns one word that a POSIX shell reads as exactly this text. It is one line, unless the
// text ends with line ends.
func Shell(word string) string {
	body := strings.TrimRight(word, "\n")
	switch {
	case word != "" && !strings.ContainsFunc(word, special):
		return word
	case !utf8.ValidString(body) || strings.ContainsFunc(body, Steers):
		body = `"$(printf '` + printfFormat(body) + `')"`
	default:
		body = shellQuoted(body)
	}
	if ends := len(word) - len(strings.TrimRight(word, "\n")); ends > 0 { // $(…) drops them
		body += "'" + strings.Repeat("\n", ends) + "'"
	}
	return body
}

// Path returns a file name as a word of a POSIX shell. No command takes the word for a flag.
func Path(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return Shell(name)
}

// special reports characters that may have a meaning in a shell.
func special(char rune) bool {
	return char == utf8.RuneError || !unicode.IsLetter(char) && !unicode.IsDigit(char) && !strings.ContainsRune("_-./,:=@%+", char)
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// printfFormat returns text as a format of printf, for single quotes.
func printfFormat(text string) string {
	var format strings.Builder
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case char == utf8.RuneError && size == 1, Steers(char), char == '\'', char == '\\', char == '-' && at == 0:
			for _, octet := range []byte(text[at : at+size]) {
				fmt.Fprintf(&format, `\%03o`, octet)
			}
		case char == '%':
			format.WriteString("%%")
		default:
			format.WriteString(text[at : at+size])
		}
		at += size
	}
	return format.String()
}

// Python returns a Python string literal on one line. Invalid UTF-8 becomes the characters that
// Python's own file functions read (PEP 383).
func Python(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text)
	return `"` + escape(text, "", `\u%04x`, `\udc%02x`) + `"`
}

// pythonWords lists Python's reserved words (keyword.kwlist of 3.13).
var pythonWords = strings.Fields(`False None True and as assert async await break class continue def del
elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield`)

var pythonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsPythonName reports text that is a valid name in a Python program.
func IsPythonName(text string) bool {
	return pythonName.MatchString(text) && !slices.Contains(pythonWords, text)
}

// JSON writes characters that steer in a JSON text as escapes. It leaves white space unchanged: all
// other such characters are inside strings.
func JSON(text string) string {
	return escape(text, "\n\r\t", `\u%04x`, `\ufffd`)
}

// escape writes characters that steer in one form, except those in allowed, and invalid UTF-8 in
// another.
func escape(text, allowed, char, octet string) string {
	var safe strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			safe.WriteString(strings.ReplaceAll(octet, "%02x", fmt.Sprintf("%02x", text[at])))
		case Steers(r) && !strings.ContainsRune(allowed, r):
			fmt.Fprintf(&safe, char, r)
		default:
			safe.WriteString(text[at : at+size])
		}
		at += size
	}
	return safe.String()
}
