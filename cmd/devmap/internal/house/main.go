// House measures how the source is built, and fails where a figure is beyond
// its limit: make house. It is no part of devmap.
//
// Small functions and small packages can move complexity to where no linter
// looks: to files that all need each other, to packages of a hundred files, to
// names of one letter, to names that are exported for one caller. The limits
// are below what the codebases have whose style is the model (gonum/optimize,
// go-containerregistry, wazero, x/perf).
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the folder of go.mod")
	words := flag.Bool("words", false, "list the private words in the named files and folders")
	flag.Parse()
	check := func() (bool, error) { return measured(*root, os.Stdout) }
	if *words {
		check = func() (bool, error) { return listWords(flag.Args(), os.Stdout) }
	}
	beyond, err := check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	if err != nil || beyond {
		os.Exit(1)
	}
}
