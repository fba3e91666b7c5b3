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
	flag.Parse()
	beyond, err := measured(*root, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	if err != nil || beyond {
		os.Exit(1)
	}
}
