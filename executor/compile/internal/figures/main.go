// Command figures compiles programs of every model family that devmap's engine runs, under every
// schedule, and compares figures that must agree. Memory: the planner's closed form, the plan, the
// arena, and the live bytes that the check finds. Time: the plan's step and the simulated one. Run
// it from the repository's root:
//
//	go run ./executor/compile/internal/figures -only families
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// section is one table. Its file holds the run function alone; a new one adds
// its line to sections.
type section struct {
	name string
	run  func(*page, scope) error
}

// scope limits how much runs.
type scope struct{ microBatches, layers, every int }

var sections = []section{
	{"families", allFamilies},
	{"cuts", everyCut},
	{"schedules", schedules},
	{"large", large},
}

// everything is the full scope; a test runs a smaller one.
var everything = scope{microBatches: 32, layers: 16, every: 1}

func main() {
	only := flag.String("only", "", "sections to run, with commas between; empty: all")
	flag.Parse()
	if err := run(os.Stdout, *only, everything); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1) //nolint:forbidigo // main
	}
}

// page prints line by line, because some lines take seconds. It keeps the first error.
type page struct {
	writer io.Writer
	err    error
}

func (page *page) printf(format string, args ...any) {
	if page.err == nil {
		_, page.err = fmt.Fprintf(page.writer, format, args...)
	}
}

func run(writer io.Writer, only string, asked scope) error {
	page := &page{writer: writer}
	for _, section := range sections {
		if only != "" && !slices.Contains(strings.Split(only, ","), section.name) {
			continue
		}
		if err := section.run(page, asked); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		page.printf("\n")
	}
	return page.err
}
