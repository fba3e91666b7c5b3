package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// A group's title, a command in a group, and a flag with its text, as in help.
	groupTitle    = regexp.MustCompile(`(?m)^[A-Z][A-Za-z ]*:$`)
	listedCommand = regexp.MustCompile(`(?m)^ {2}([a-z-]+) {2,}\S.*$`)
	listedFlag    = regexp.MustCompile(`^ {2,6}((?:-\w, )?--\S+(?: \S+)?) {2,}(.*)$`)
)

// manual returns devmap's page for man(1) in the macros of man(7), from the output of `devmap help`
// for the program and each command.
func manual(ask func(arguments ...string) (string, error), made *commitMade) (string, error) {
	about, err := ask("help")
	if err != nil {
		return "", err
	}
	text, commands, found := strings.Cut(about, "Usage:\n")
	if !found {
		return "", fmt.Errorf("devmap help has no usage: %q", about)
	}
	listed := listedCommand.FindAllStringSubmatch(commands, -1)
	if len(listed) == 0 {
		return "", fmt.Errorf("devmap help lists no commands: %q", about)
	}
	var page strings.Builder
	fmt.Fprintf(&page, ".TH DEVMAP 1 %q %q %q\n", made.when.Format("2006-01-02"), "devmap "+made.version, "User Commands")
	page.WriteString(".SH NAME\ndevmap \\- plan how a neural network is split across GPUs, with a proof\n")
	page.WriteString(".SH SYNOPSIS\n.B devmap\n.I COMMAND\n[\\fIARGUMENT\\fR ...] [\\fIFLAG\\fR ...]\n.SH DESCRIPTION\n")
	page.WriteString(asPrinted(text))
	page.WriteString(".SH COMMANDS\n")
	for _, line := range listed {
		if line[1] == "help" {
			continue
		}
		help, err := ask("help", line[1])
		if err != nil {
			return "", err
		}
		section(&page, line[1], help)
	}
	return page.String(), nil
}

// section writes a command or a topic: its help, and its flags as a list.
func section(page *strings.Builder, name, help string) {
	before, flags := help, ""
	for _, title := range groupTitle.FindAllStringIndex(help, -1) {
		first, _, _ := strings.Cut(help[title[1]+1:], "\n")
		if listedFlag.MatchString(first) {
			before, flags = help[:title[0]], help[title[0]:]
			break
		}
	}
	if strings.Contains(help, "\nUsage:\n") { // else it is a topic
		name = "devmap " + name
	}
	fmt.Fprintf(page, ".SS %s\n%s", escaped(name), asPrinted(before))
	for _, line := range strings.Split(flags, "\n") {
		found := listedFlag.FindStringSubmatch(line)
		if len(found) == 0 || found[1] == "-h, --help" {
			continue
		}
		fmt.Fprintf(page, ".TP\n.B %s\n%s\n", escaped(found[1]), escaped(found[2]))
	}
}

// asPrinted keeps line breaks.
func asPrinted(text string) string {
	return ".nf\n" + escaped(strings.TrimSpace(text)) + "\n.fi\n"
}

// escaped escapes text for troff: backslashes, hyphens that users type, and lines that begin like a
// request.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
