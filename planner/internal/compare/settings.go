package main

import (
	"fmt"
	"io"
	"time"
)

// settings are the limits that sections share.
type settings struct {
	limit      time.Duration // of devmap, a problem
	highsLimit time.Duration // of HiGHS, a model
	dnn        string        // folder of dnn-partitioning files
	dp         string        // the authors' program, built
	greedy     string        // their program for latencies, built
	piper      string        // Piper's authors' program, built
	priced     string        // problems with an answer each, for bounds by prices
	// pricesLimit is the processor's time for each of them.
	pricesLimit time.Duration
	wide        wideSettings
}

// wideSettings are the flags of the random graphs.
type wideSettings struct {
	list    string        // of problems
	rows    string        // file of answers: those in it are kept, new ones join
	limit   time.Duration // of each solver, a problem
	threads int           // of CP-SAT and HiGHS; devmap has GOMAXPROCS
	workers int           // of CP-SAT, where they are not as many
	solvers string
	place   string // fixtures/peers/place.py
	python  string // one with ortools and highspy; empty: these are left out
	part    string
}

// table prints line by line, as some lines take a minute, and keeps the first
// error.
type table struct {
	writer io.Writer
	err    error
}

func (grid *table) printf(format string, args ...any) {
	if grid.err == nil {
		_, grid.err = fmt.Fprintf(grid.writer, format, args...)
	}
}
