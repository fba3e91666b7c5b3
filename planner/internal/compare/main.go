// Command compare prints devmap's figures on public problems beside the peers',
// one section a kind of problem. Run it from the repository's root:
//
//	go run ./planner/internal/compare -only minmax -highs-limit 20s
//
// All times are wall times of this process on one core, taken one after the
// other.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// section is one table. Its file holds the run function alone; a new one adds
// its line to sections.
type section struct {
	name string
	run  func(context.Context, io.Writer, settings) error
}

var sections = []section{
	{"contiguous", contiguous},
	{"any", anyAssignment},
	{"latency", leastLatency},
	{"minmax", minMax},
	{"minmax-trial", minMaxTrial},
	{"piper", piper},
	{"pipedream", pipeDream},
	{"random", random},
	{"prices", prices},
	{"giants", giants},
}

func main() {
	var given settings
	only := flag.String("only", "", "sections to run, with commas between; empty: all ("+strings.Join(names(), ", ")+")")
	flag.DurationVar(&given.limit, "limit", time.Minute, "time limit of devmap for one problem")
	flag.DurationVar(&given.highsLimit, "highs-limit", time.Minute, "time limit of HiGHS for one model")
	flag.StringVar(&given.dnn, "dnn", "fixtures/workloads/dnn-partitioning", "folder of dnn-partitioning files")
	flag.StringVar(&given.dp, "dp", "", "the authors' throughput-dp/dp.cpp, built: it is run beside devmap and judges its answers")
	flag.StringVar(&given.greedy, "greedy", "", "the authors' latency-greedy/greedy.cpp, built: it is run beside devmap and judges its answers")
	flag.StringVar(&given.piper, "piper", "", "Piper's algo.cpp, built with testdata/piper.cpp: it is run beside devmap and judges its answers")
	flag.StringVar(&given.priced, "priced", "fixtures/workloads/random/prices.jsonl", "prices: problems with an answer each")
	flag.DurationVar(&given.pricesLimit, "prices-limit", 12*time.Second, "prices: processor's time for one problem")
	given.wide.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *only, given); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1) //nolint:forbidigo,gocritic // main
	}
}

func names() []string {
	var all []string
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

func run(ctx context.Context, writer io.Writer, only string, given settings) error {
	wanted := names()
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("no section %q; there are %s", name, strings.Join(names(), ", "))
		}
		if err := sections[i].run(ctx, writer, given); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := fmt.Fprintln(writer); err != nil {
			return err
		}
	}
	return nil
}
