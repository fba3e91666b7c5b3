// House measures the structure of the source, and fails if a figure exceeds its limit: make house.
// It is not part of devmap.
//
// Small functions and small packages can move complexity to places without a linter. These are
// cycles of files, packages of a hundred files, one-letter names, and names exported for one
// caller. The limits are below the figures of codebases with the intended style (gonum/optimize,
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
