package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// mostDevices is the largest number of devices.
const mostDevices = 8

// tally is the result for one family and kind of work.
type tally struct {
	programs int
	shares   []idle
	fault    error
}

// allFamilies compiles every family under every schedule and a device map, on 1 to 8 devices, in up
// to 32 micro-batches. Half of the programs are cut evenly, half in any place.
func allFamilies(page *page, asked scope) error {
	page.printf("closed form = plan's peak = arena = live + idle, in bytes, and step_seconds = the program's step, of every program:\n%d to %d devices, 1 to %d micro-batches, 1f1b, gpipe, interleaved and device-map; bf16-true, bf16-mixed, 32-true and adamw, sgd in turns\n\n", 1, mostDevices, asked.microBatches)
	page.printf("%-14s%-18s%9s%9s%13s  %s\n", "family", "", "programs", "devices", "idle, median", "most idle, of GPUs that run kernels")
	var all []idle
	for number := range families {
		family := &families[number]
		graph, err := family.graph(asked.layers)
		if err != nil {
			return err
		}
		for index := range kinds {
			kind := &kinds[index]
			if family.infers && (kind.workload.Mode == costmodel.Train || kind.workload.NewTokens > 0) {
				continue
			}
			found := kind.all(graph, asked)
			if found.fault != nil {
				return fmt.Errorf("%s, %s: %w", family.name, kind.name, found.fault)
			}
			if found.programs == 0 {
				continue
			}
			all = append(all, found.shares...)
			page.printf("%-14s%-18s%9d%9d%13s  %s\n", family.name, kind.name, found.programs, len(found.shares), median(found.shares), worst(running(found.shares)))
		}
	}
	page.printf("\nidle over all %d devices: median %s; most: %s\n", len(all), median(all), worst(all))
	return nil
}

// all compiles the programs of a model for a kind of work.
func (kind *kind) all(graph *modelgraph.Graph, asked scope) *tally {
	found, lock := &tally{}, sync.Mutex{}
	work := make(chan int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for microBatches := range work {
				programs, shares, err := kind.some(graph, microBatches, asked)
				lock.Lock()
				found.programs += programs
				found.shares = append(found.shares, shares...)
				found.fault = cmp.Or(found.fault, err)
				lock.Unlock()
			}
		})
	}
	for microBatches := 1; microBatches <= asked.microBatches; microBatches++ {
		work <- microBatches
	}
	close(work)
	group.Wait()
	return found
}

// some compiles the programs of one number of micro-batches.
func (kind *kind) some(graph *modelgraph.Graph, microBatches int, asked scope) (programs int, shares []idle, err error) {
	for at, order := range orders {
		set, err := kind.set(graph, order, microBatches, mostDevices)
		if err != nil {
			return programs, shares, err
		}
		for devices := 1; devices <= mostDevices; devices++ {
			number := (microBatches*len(orders)+at)*mostDevices + devices
			if number%asked.every != 0 {
				continue
			}
			random, how := rand.New(rand.NewPCG(uint64(number), 1)).IntN, "cut anywhere"
			if number%2 == 0 {
				random, how = nil, "cut evenly"
			}
			runs := 1
			if order == costmodel.Interleaved && devices > 1 {
				runs = chunks
			}
			if len(graph.Units) < devices*runs {
				continue
			}
			placement := cut(len(graph.Units), devices, runs, random)
			switch {
			case order == "" && random != nil:
				placement = scattered(set, random, devices)
			case order == "":
				together(set, placement)
			}
			what := fmt.Sprintf("%s, %d micro-batches, %s", cmp.Or(order, "device-map"), microBatches, how)
			more, err := set.judge(placement, what)
			if err != nil {
				return programs, shares, err
			}
			programs, shares = programs+1, append(shares, more...)
		}
	}
	return programs, shares, nil
}

// running leaves out devices that only pass the stream.
func running(shares []idle) []idle {
	return slices.DeleteFunc(slices.Clone(shares), func(share idle) bool { return !share.runs })
}

// median and worst describe the idle shares.
func median(shares []idle) string {
	slices.SortFunc(shares, func(one, other idle) int { return cmp.Compare(one.share, other.share) })
	return fmt.Sprintf("%.2f %%", 100*shares[len(shares)/2].share)
}

func worst(shares []idle) string {
	most := slices.MaxFunc(shares, func(one, other idle) int {
		return cmp.Or(cmp.Compare(one.share, other.share), cmp.Compare(one.bytes, other.bytes), cmp.Compare(one.what, other.what))
	})
	return fmt.Sprintf("%.1f %% (%v): %s", 100*most.share, costmodel.Bytes(most.bytes), most.what)
}
