package certify

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
)

const (
	mebibyte = int64(1) << 20
	free     = 1000 * mebibyte
	used     = 500 * mebibyte
)

func known(bytes int64) *int64 { return &bytes }

// run returns the document of a run of two plans that take five turns on two GPUs and leave no
// memory in use.
func run(end string) *Document {
	document := new(Document)
	for gpu := range 2 {
		document.GPUs = append(document.GPUs, GPU{
			MonitoredGPU: executor.MonitoredGPU{GPU: gpu, UUID: "GPU-" + string(rune('0'+gpu)), GranuleBytes: Granule, Process: 7},
			Before:       &Before{UsedBytes: 10}, Reference: &Reference{free, known(used), known(used)},
		})
	}
	var asleep []executor.Holding
	if end == Asleep {
		asleep = []executor.Holding{{Kind: "streams", Count: 4}, {Kind: "pinned stretches", Count: 2, Bytes: 64}}
	}
	for cycle := int64(1); cycle <= 5; cycle++ {
		for _, plan := range []string{"a.json", "b.json"} {
			ledger := asleep
			if end == Asleep && cycle == 1 && plan == "a.json" {
				ledger = []executor.Holding{{Kind: "streams", Count: 2}, {Kind: "pinned stretches", Count: 1, Bytes: 32}}
			}
			document.Cycles = append(document.Cycles, unloaded(cycle, plan, end, ledger))
		}
		for gpu := range 2 {
			document.Refill = append(document.Refill, Refill{Cycle: cycle, GPU: gpu, FreeBytes: free, MarginBytes: Margin, Bytes: free - Margin, Allocated: true})
		}
	}
	if end == Asleep {
		last := unloaded(5, "", Closed, nil)
		last.Poison = nil
		document.Cycles = append(document.Cycles, last)
	}
	document.After = &After{Ended: "exit status 0", Shown: true, GPUs: []AfterGPU{{0, "GPU-0", 10, 0}, {1, "GPU-1", 10, 0}}}
	return document
}

func unloaded(cycle int64, plan, end string, ledger []executor.Holding) Unload {
	unload := Unload{Cycle: cycle, Of: 5, Plan: plan, End: end, Ledger: slices.Clone(ledger), Poison: []Poison{{0, mebibyte, false}, {1, mebibyte, false}}}
	for gpu := range 2 {
		unload.GPUs = append(unload.GPUs, Left{
			GPU: gpu, DriverFreeBytes: free, NVMLUsedBytes: known(used), OwnBytes: known(used),
			Curve: []Reading{{0.001, free - 50*mebibyte, known(used + 50*mebibyte)}, {0.021, free, known(used)}},
		})
	}
	return unload
}

// lacks removes bytes from a GPU's free memory after an unload; this process has own of them.
func (unload *Unload) lacks(gpu int, bytes, own int64) {
	left := &unload.GPUs[gpu]
	left.DriverFreeBytes -= bytes
	left.NVMLUsedBytes, left.OwnBytes = known(*left.NVMLUsedBytes+bytes), known(*left.OwnBytes+own)
	left.Curve = []Reading{{0.001, left.DriverFreeBytes, left.NVMLUsedBytes}, {0.99, left.DriverFreeBytes, left.NVMLUsedBytes}}
}

// lose makes every cycle after the second lose bytes of GPU 1; this process keeps own of them.
func lose(document *Document, each, own int64) {
	for i := range document.Cycles {
		if behind := document.Cycles[i].Cycle - 2; behind > 0 {
			document.Cycles[i].lacks(1, behind*each, behind*own)
		}
	}
}

// verdicts lists the checks that do not pass: "ledger fail, others inconclusive".
func verdicts(document *Document) string {
	var all []string
	for _, check := range document.Checks {
		if check.Verdict != report.Pass {
			all = append(all, check.Name+" "+string(check.Verdict))
		}
	}
	return strings.Join(all, ", ")
}

// TestExcuse: lost memory is another process's if the part outside of this process is at least a
// granule.
func TestExcuse(t *testing.T) {
	t.Parallel()
	gpu := &GPU{MonitoredGPU: executor.MonitoredGPU{Process: 7}}
	for own, excused := range map[int64]bool{0: true, 8 * mebibyte: true, 8*mebibyte + 1: false, 10 * mebibyte: false} {
		if excuse := gpu.excuse(10*mebibyte, &own); (excuse != "") != excused {
			t.Errorf("10 MiB are lost, of which the process has %d bytes: %q", own, excuse)
		}
	}
}

// TestJudgeRun: each fault fails its own check. A loss that another process may have caused leaves
// the check open, and never passes.
func TestJudgeRun(t *testing.T) {
	t.Parallel()
	const came = "process 9 came, with 300.0 MiB"
	for name, is := range map[string]struct {
		end    string
		change func(document *Document)
		want   report.Verdict
		checks string // the checks that do not pass
		reason string
	}{
		"nothing stays": {Closed, func(*Document) {}, report.Pass, "", "10 unloads in 5 cycles lost no granule"},
		"asleep":        {Asleep, func(*Document) {}, report.Pass, "", "11 unloads in 5 cycles lost no granule"},
		"an arena is held": {
			Closed, func(document *Document) {
				document.Cycles[5].Ledger = []executor.Holding{{Kind: "arenas", Count: 1, Bytes: 64}}
			}, report.Fail, "ledger fail", "ledger: behind b.json in cycle 3: 1 arenas of 64 bytes in place of none",
		},
		"a stream is held in the first cycle": {
			Closed, func(document *Document) { document.Cycles[0].Ledger = []executor.Holding{{Kind: "streams", Count: 1}} },
			report.Fail, "ledger fail", "behind a.json in cycle 1: 1 streams in place of none",
		},
		"a sleeper's copy grew": {
			Asleep, func(document *Document) { document.Cycles[4].Ledger[1].Bytes = 96 },
			report.Fail, "ledger fail", "2 pinned stretches of 96 bytes in place of 2 pinned stretches of 64 bytes",
		},
		"a sleeper lost its streams": {
			Asleep, func(document *Document) { document.Cycles[4].Ledger = document.Cycles[4].Ledger[1:] },
			report.Fail, "ledger fail", "no streams in place of 4 streams",
		},
		"a copy is left at the end": {
			Asleep, func(document *Document) {
				document.Cycles[10].Ledger = []executor.Holding{{Kind: "pinned stretches", Count: 1, Bytes: 32}}
			}, report.Fail, "ledger fail", "when all was closed: 1 pinned stretches of 32 bytes in place of none",
		},
		"less is free by the driver": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(0, 3*mebibyte, 3*mebibyte)
				left := &document.Cycles[4].GPUs[0]
				left.NVMLUsedBytes, left.Curve[1].NVMLUsedBytes = known(used), known(used)
			}, report.Fail, "driver_free fail", "behind a.json in cycle 3 GPU 0 has 3.0 MiB less free",
		},
		"more is used by NVML": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(0, 3*mebibyte, 3*mebibyte)
				left := &document.Cycles[4].GPUs[0]
				left.DriverFreeBytes, left.Curve[1].DriverFreeBytes = free, free
			}, report.Fail, "nvml_free fail", "behind a.json in cycle 3 3.0 MiB more of GPU 0 are used",
		},
		"back a moment too late": {
			Closed, func(document *Document) {
				document.Cycles[4].GPUs[0].Curve = []Reading{{0.5, free - 3*mebibyte, known(used)}, {1.001, free, known(used)}}
				document.Cycles[4].GPUs[0].DriverFreeBytes = free - 3*mebibyte
				document.Cycles[4].GPUs[0].OwnBytes = known(used + 3*mebibyte)
			}, report.Fail, "driver_free fail", "3.0 MiB less free",
		},
		"but for a granule": {Closed, func(document *Document) { document.Cycles[4].lacks(0, 2*mebibyte, 2*mebibyte) }, report.Pass, "", "lost no granule"},
		"a granule a cycle": {
			Closed, func(document *Document) { lose(document, 2*mebibyte, 2*mebibyte) },
			report.Fail, "driver_free fail, nvml_free fail, growth fail", "growth: cycle 3 lost 2.0 MiB of GPU 1; cycle 4 lost",
		},
		"half a granule a cycle": {
			Closed, func(document *Document) {
				lose(document, mebibyte/2, mebibyte/2)
				for i := range document.Cycles {
					if document.Cycles[i].Cycle == 5 {
						document.Cycles[i].lacks(1, mebibyte/2, mebibyte/2) // as before
					}
				}
			}, report.Fail, "growth fail", "growth: cycles 3 to 5 together lost 2.0 MiB of GPU 1",
		},
		"half a granule a cycle by NVML alone": {
			Closed, func(document *Document) {
				for i := range document.Cycles {
					if behind := document.Cycles[i].Cycle - 1; behind > 0 {
						left := &document.Cycles[i].GPUs[1]
						left.NVMLUsedBytes, left.OwnBytes = known(used+(behind-2)*mebibyte), known(used+(behind-2)*mebibyte)
					}
				}
			}, report.Fail, "growth fail", "growth: cycles 3 to 5 together lost 3.0 MiB of GPU 1 by NVML",
		},
		"how much each process holds is not told": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(1, 300*mebibyte, 300*mebibyte)
				document.Cycles[4].GPUs[1].OwnBytes = nil
			}, report.Inconclusive, "driver_free inconclusive, nvml_free inconclusive", "the driver does not tell how much each process holds",
		},
		"the driver does not give what is free": {
			Closed, func(document *Document) {
				document.Refill[3].Allocated, document.Refill[3].Refused, document.Refill[3].Error = false, true, "CUDA_ERROR_OUT_OF_MEMORY"
			}, report.Fail, "refill fail", "at the end of cycle 2 GPU 1 gave no 984.0 MiB in one piece",
		},
		"the pattern reads back wrong": {
			Closed, func(document *Document) { document.Refill[9].Wrong = true },
			report.Fail, "refill fail", "at the end of cycle 5 GPU 1 did not hold what was written into 984.0 MiB of it",
		},
		"nothing is free": {
			Closed, func(document *Document) { document.Refill[9].Allocated = false },
			report.Inconclusive, "refill inconclusive", "which is the margin",
		},
		"an arena was not poisoned": {
			Closed, func(document *Document) { document.Cycles[9].Poison[1].Wrong = true },
			report.Fail, "poison fail", "behind b.json in cycle 5: the arena of device 1 was given back with bytes in it that are not poison",
		},
		"no arena was read back": {
			Closed, func(document *Document) { document.Cycles[9].Poison = nil },
			report.Inconclusive, "poison inconclusive", "no arena was read back",
		},
		"another process came": {
			Closed, func(document *Document) { document.GPUs[1].Others = came },
			report.Inconclusive, "others inconclusive", "GPU 1: " + came,
		},
		"the process is there still": {
			Closed, func(document *Document) { document.After.Alive = []Remaining{{1, 7, known(64)}} },
			report.Fail, "process_gone fail", "process 7 is on GPU 1 still, with 64 B",
		},
		"more is held than before": {
			Closed, func(document *Document) { document.After.GPUs[1].DifferenceBytes = 3 * mebibyte },
			report.Fail, "baseline fail", "GPU 1 holds 3.0 MiB more than before",
		},
		"less is held than before": {
			Closed, func(document *Document) { document.After.GPUs[1].DifferenceBytes = -3 * mebibyte },
			report.Inconclusive, "baseline inconclusive", "GPU 1 holds 3.0 MiB less than before (whose that was is not known)",
		},
		"a granule more than before": {Closed, func(document *Document) { document.After.GPUs[1].DifferenceBytes = 2 * mebibyte }, report.Pass, "", "hold what they held before"},

		"another took memory": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(1, 300*mebibyte, 0)
				document.GPUs[1].Others = came
			}, report.Inconclusive, "driver_free inconclusive, nvml_free inconclusive, others inconclusive", "less free than when the first cycle was over (" + came,
		},
		"another took memory of another GPU": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(0, 300*mebibyte, 300*mebibyte)
				document.GPUs[1].Others = came
			}, report.Fail, "driver_free fail, nvml_free fail, others inconclusive", "GPU 0 has 300.0 MiB less free",
		},
		"another took memory cycle by cycle": {
			Closed, func(document *Document) { lose(document, 2*mebibyte, 0); document.GPUs[1].Others = came },
			report.Inconclusive, "driver_free inconclusive, nvml_free inconclusive, growth inconclusive, others inconclusive", "growth: cycle 3 lost 2.0 MiB of GPU 1 (" + came,
		},
		"memory is nobody's that is shown": {
			Closed, func(document *Document) { document.Cycles[4].lacks(1, 300*mebibyte, mebibyte) },
			report.Inconclusive, "driver_free inconclusive, nvml_free inconclusive", "of this devmap's process has 1.0 MiB: the rest is no process's that the driver shows",
		},
		"no process is shown, and memory moved": {
			Closed, func(document *Document) {
				document.Cycles[4].lacks(1, 300*mebibyte, 300*mebibyte)
				hidden(document)
			}, report.Inconclusive, "driver_free inconclusive, nvml_free inconclusive, others inconclusive", "memory was allocated or released, and the driver does not show here",
		},
		"no process is shown, and none moved": {Closed, hidden, report.Pass, "", "lost no granule"},
		"no process is shown, and more is held than before": {
			Closed, func(document *Document) {
				hidden(document)
				document.After.GPUs[1].DifferenceBytes = 3 * mebibyte
			}, report.Inconclusive, "others inconclusive, baseline inconclusive", "GPU 1 holds 3.0 MiB more than before (the driver shows no process here",
		},
		"another took memory, and the refill found none": {
			Closed, func(document *Document) {
				document.Refill[3].Allocated, document.Refill[3].Refused, document.Refill[3].Error = false, true, "CUDA_ERROR_OUT_OF_MEMORY"
				document.GPUs[1].Others = came
			}, report.Inconclusive, "refill inconclusive, others inconclusive", "CUDA_ERROR_OUT_OF_MEMORY (" + came,
		},
		"another came, and the ledger is not empty": {
			Closed, func(document *Document) {
				document.GPUs[1].Others = came
				document.Cycles[5].Ledger = []executor.Holding{{Kind: "arenas", Count: 1, Bytes: 64}}
			}, report.Fail, "ledger fail, others inconclusive", "ledger: ",
		},
		"another came, and an arena was not poisoned": {
			Closed, func(document *Document) { document.GPUs[1].Others, document.Cycles[9].Poison[1].Wrong = came, true },
			report.Fail, "poison fail, others inconclusive", "poison: ",
		},
		"another came, and the pattern reads back wrong": {
			Closed, func(document *Document) { document.GPUs[1].Others, document.Refill[9].Wrong = came, true },
			report.Fail, "refill fail, others inconclusive", "refill: ",
		},
		"another came, and more is held than before": {
			Closed, func(document *Document) {
				document.GPUs[1].Others, document.After.GPUs[1].DifferenceBytes = came, 300*mebibyte
			},
			report.Inconclusive, "others inconclusive, baseline inconclusive", "baseline: GPU 1 holds 300.0 MiB more than before (" + came,
		},
		"NVML tells nothing of a GPU": {
			Closed, func(document *Document) { document.GPUs[1].Unmeasured = "NVML knows no MIG-1" },
			report.Inconclusive, "nvml_free inconclusive, others inconclusive", "nvml_free: GPU 1: NVML knows no MIG-1",
		},
		"nobody looked from outside": {
			Closed, func(document *Document) { document.After = nil },
			report.Inconclusive, "others inconclusive, process_gone inconclusive, baseline inconclusive", "process_gone: it was not looked at",
		},
		"NVML is not there": {
			Closed, func(document *Document) { document.After = &After{Ended: "exit status 0", Unmeasured: "no NVML"} },
			report.Inconclusive, "others inconclusive, process_gone inconclusive, baseline inconclusive", "baseline: no NVML",
		},
		"two cycles were seen": {
			Closed, func(document *Document) { document.Cycles = document.Cycles[:4] },
			report.Inconclusive, "growth inconclusive", "growth: it takes two cycles behind the first to see it, and 1 were seen",
		},
		"nothing was seen": {
			Closed, func(document *Document) { *document = Document{} },
			report.Inconclusive, "ledger inconclusive, driver_free inconclusive, nvml_free inconclusive, growth inconclusive, refill inconclusive, poison inconclusive, others inconclusive, process_gone inconclusive, baseline inconclusive", "ledger: nothing was unloaded",
		},
	} {
		document := run(is.end)
		is.change(document)
		document.JudgeRun("")
		if got := verdicts(document); document.Verdict != is.want || got != is.checks {
			t.Errorf("%s: %s, %s; want %s, %s", name, document.Verdict, got, is.want, is.checks)
		}
		if !strings.Contains(strings.Join(document.Reasons, "\n"), is.reason) {
			t.Errorf("%s: %q has no %q", name, document.Reasons, is.reason)
		}
		if len(document.Checks) != 9 || document.FormatVersion != Format {
			t.Errorf("%s: %d checks, %s", name, len(document.Checks), document.FormatVersion)
		}
	}
}

// hidden makes the document that of a container, in which the driver shows no process.
func hidden(document *Document) {
	document.After.Shown = false
	for i := range document.GPUs {
		document.GPUs[i].Process = 0
	}
}

// TestBroken: a failed run does not pass. Its certificate fails if a fault was found before.
func TestBroken(t *testing.T) {
	t.Parallel()
	document := run(Closed)
	document.JudgeRun("it was killed")
	if document.Verdict != report.Inconclusive || document.Reasons[0] != "what would have followed is not known: it was killed" {
		t.Errorf("%s: %q", document.Verdict, document.Reasons)
	}
	document.Refill[9].Wrong = true
	document.JudgeRun("it was killed")
	if document.Verdict != report.Fail || len(document.Reasons) != 2 {
		t.Errorf("%s: %q", document.Verdict, document.Reasons)
	}
}

// TestJudgeLeft: for a command of any engine, the readings from outside are judged, and the refill
// if there is one.
func TestJudgeLeft(t *testing.T) {
	t.Parallel()
	left := func() *Document {
		document := run(Closed)
		document.Cycles, document.Refill = nil, nil
		return document
	}
	document := left()
	document.JudgeLeft()
	if document.Verdict != report.Pass || len(document.Checks) != 3 || !strings.Contains(document.Reasons[0], "hold what they held before") {
		t.Errorf("%s, %d checks: %q", document.Verdict, len(document.Checks), document.Reasons)
	}
	document.After.Alive, document.After.GPUs[0].DifferenceBytes = []Remaining{{0, 12, nil}}, 70*mebibyte
	document.JudgeLeft()
	if got := verdicts(document); document.Verdict != report.Fail || got != "baseline fail, process_gone fail" {
		t.Errorf("%s: %s", document.Verdict, got)
	}
	document = left()
	document.Refill = []Refill{{GPU: 1, Bytes: free, Allocated: true, Wrong: true}}
	document.JudgeLeft()
	if document.Verdict != report.Fail || len(document.Checks) != 4 || !strings.Contains(document.Reasons[0], "refill: GPU 1 did not hold") {
		t.Errorf("%s: %q", document.Verdict, document.Reasons)
	}
}

// TestManyFaults: a check lists only the first few faults.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	document := run(Closed)
	for i := range document.Cycles {
		document.Cycles[i].Poison[0].Wrong = true
	}
	document.JudgeRun("")
	if detail := document.Checks[5].Detail; !strings.HasSuffix(detail, "; 8 more") || strings.Count(detail, "behind") != 2 {
		t.Errorf("%q", detail)
	}
}
