package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// rightReports is how many public reports devmap must answer rightly.
const rightReports = 55

// presetReports is how many of them must need only a trainer's preset: the command gives the model,
// the preset, the GPUs, the batch and the length, nothing else.
const presetReports = 20

// publicReport is an entry of fixtures/reports/reports.json: a user's observation, and commands
// that ask devmap about it.
type publicReport struct {
	Source   string      `json:"source"`
	URL      string      `json:"url"`
	Scenario string      `json:"scenario"`
	Reported string      `json:"reported"`
	Right    bool        `json:"right"`
	Why      string      `json:"why"` // the cause if it is not right
	Runs     []reportRun `json:"runs"`
}

// reportRun is a command and the expected answer. Tolerance gives the source of the range, which is
// always the report and never devmap's output.
type reportRun struct {
	Command   string     `json:"command"`
	Fits      *bool      `json:"fits"`      // also false if only the pool's upper end does not fit
	Refused   string     `json:"refused"`   // words of the true reason
	Figure    string     `json:"figure"`    // see figures
	Range     [2]float64 `json:"range"`     // the range of the figure
	Same      float64    `json:"same"`      // the largest relative difference of the figure from the last run's
	Together  [][]string `json:"together"`  // modules on one GPU
	Says      string     `json:"says"`      // words in the notes
	Tolerance string     `json:"tolerance"` // the reason for the width of the range
}

// TestPublicReports replays public reports. A report is right if every command's answer agrees with
// it, or is refused for a true reason.
func TestPublicReports(t *testing.T) {
	folder := filepath.Join("..", "..", "fixtures", "reports")
	data, err := os.ReadFile(filepath.Join(folder, "reports.json"))
	if err != nil {
		t.Fatal(err)
	}
	var reports []publicReport
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&reports); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	right, byPreset, seen := 0, 0, map[string]bool{}
	for i := range reports {
		report := &reports[i]
		if report.Source == "" || report.Scenario == "" || report.Reported == "" || len(report.Runs) == 0 || report.Right != (report.Why == "") || seen[report.Source] {
			t.Errorf("%s: the entry is not complete, or is there twice", report.Source)
		}
		seen[report.Source] = true
		fault := report.replay(t)
		if fault == nil {
			right++
		}
		if fault == nil && report.Right && report.byPreset() {
			byPreset++
		}
		switch {
		case fault != nil && report.Right:
			t.Errorf("%s (%s): %v", report.Source, report.Scenario, fault)
		case fault == nil && !report.Right:
			t.Errorf("%s is right now: record it", report.Source)
		case fault != nil:
			t.Logf("%s is not right: %v: %s", report.Source, fault, report.Why)
		}
	}
	t.Logf("%d of %d public reports are right or refused for a true reason", right, len(reports))
	if right < rightReports {
		t.Errorf("%d reports are right, want %d", right, rightReports)
	}
	t.Logf("%d of them need a preset, the GPUs, the batch and the length alone", byPreset)
	if byPreset < presetReports {
		t.Errorf("a preset alone answers %d reports, want %d", byPreset, presetReports)
	}
}

// byPreset reports whether every command of the report is plan MODEL --preset X with --gpus, --gpu,
// --batch and --seq, and devmap answers it. A refusal does not count.
func (report *publicReport) byPreset() bool {
	allowed := []string{"--preset", "--gpus", "--gpu", "--batch", "--seq"}
	for i := range report.Runs {
		words := strings.Fields(report.Runs[i].Command)
		if report.Runs[i].Refused != "" || len(words)%2 != 0 || words[0] != "plan" || !slices.Contains(words, "--preset") {
			return false
		}
		for j := 2; j < len(words); j += 2 {
			if !slices.Contains(allowed, words[j]) {
				return false
			}
		}
	}
	return true
}

func (report *publicReport) replay(t *testing.T) error {
	t.Helper()
	var before *answeredReport
	for i := range report.Runs {
		run := &report.Runs[i]
		if (run.Range[1] > 0 || run.Same > 0) && run.Tolerance == "" {
			t.Errorf("%s: %q: nothing says where the range comes from", report.Source, run.Command)
		}
		answer := askedReport(t, run.Command)
		if err := run.judge(answer, before); err != nil {
			return fmt.Errorf("devmap %s: %w", run.Command, err)
		}
		before = answer
	}
	return nil
}

// answeredReport is a command's answer.
type answeredReport struct {
	status int
	plan   struct {
		DeviceMap map[string]any   `json:"device_map"`
		Devices   []contractDevice `json:"devices"`
		Imbalance float64          `json:"imbalance"`
		Verdict   string           `json:"verdict"`
	}
	errs string
}

func askedReport(t *testing.T, command string) *answeredReport {
	t.Helper()
	var document, errs bytes.Buffer
	answer := &answeredReport{}
	answer.status = run(t.Context(), append(strings.Fields(command), "--json"), &document, &errs)
	answer.errs = errs.String()
	if answer.status == out.ExitInfeasible { // the notes are in the text form
		errs.Reset()
		run(t.Context(), strings.Fields(command), &document, &errs)
		answer.errs = errs.String()
	}
	if answer.status == out.ExitDone {
		if err := json.Unmarshal(document.Bytes(), &answer.plan); err != nil {
			t.Fatalf("devmap %s: %v", command, err)
		}
		var notes struct {
			Warnings []string `json:"warnings"`
		}
		if err := json.Unmarshal(document.Bytes(), &notes); err != nil {
			t.Fatalf("devmap %s: %v", command, err)
		}
		answer.errs += strings.Join(notes.Warnings, "\n")
	}
	return answer
}

// judge compares an answer with the report.
func (run *reportRun) judge(answer, before *answeredReport) error {
	if run.Refused != "" {
		if answer.status != out.ExitError && answer.status != out.ExitUsage || !strings.Contains(answer.errs, run.Refused) {
			return fmt.Errorf("status %d, not refused with %q: %s", answer.status, run.Refused, tail(answer.errs))
		}
		return nil
	}
	fits := answer.status == out.ExitDone
	if !fits && answer.status != out.ExitInfeasible {
		return fmt.Errorf("status %d: %s", answer.status, tail(answer.errs))
	}
	if run.Fits != nil {
		if safe := fits && answer.fitsWithPool(); *run.Fits && !fits || !*run.Fits && safe {
			return fmt.Errorf("status %d, the pool fits: %t; the report says fits: %t", answer.status, safe, *run.Fits)
		}
	}
	if !strings.Contains(answer.errs, run.Says) {
		return fmt.Errorf("no note says %q", run.Says)
	}
	for _, modules := range run.Together {
		if err := answer.together(modules); err != nil {
			return err
		}
	}
	if run.Figure == "" {
		return nil
	}
	if !fits {
		return fmt.Errorf("nothing fits, so there is no %s", run.Figure)
	}
	figure := answer.figure(run.Figure)
	if run.Range[1] > 0 && !(figure >= run.Range[0] && figure <= run.Range[1]) {
		return fmt.Errorf("%s %.2f, not within %v", run.Figure, figure, run.Range)
	}
	if run.Same > 0 && math.Abs(figure/before.figure(run.Figure)-1) > run.Same {
		return fmt.Errorf("%s %.2f, of the run before %.2f", run.Figure, figure, before.figure(run.Figure))
	}
	return nil
}

// fitsWithPool reports whether the allocator's pool fits even at its largest.
func (answer *answeredReport) fitsWithPool() bool {
	if answer.plan.Verdict != "" {
		return answer.plan.Verdict == "fits"
	}
	return !slices.ContainsFunc(answer.plan.Devices, func(d contractDevice) bool {
		return d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes+d.Predicted.SlackBytes[1] > d.CapacityBytes-d.ReservedBytes
	})
}

// figure returns one number of a plan, in GiB except for the imbalance. The fullest GPU has peak
// (of torch's allocator), used (peak and context, without the pool's slack), pool (as in
// nvidia-smi, with the middle of the slack) and weights. total_weights is for all GPUs.
func (answer *answeredReport) figure(name string) float64 {
	figures := map[string]float64{"imbalance": answer.plan.Imbalance}
	for i := range answer.plan.Devices {
		p := &answer.plan.Devices[i].Predicted
		for kind, size := range map[string]int64{
			"peak": p.PeakAllocatedBytes, "used": p.PeakAllocatedBytes + p.OverheadBytes, "pool": p.DeviceUsedBytes, "weights": p.ParamsBytes,
		} {
			figures[kind] = max(figures[kind], float64(size)/(1<<30))
		}
		figures["total_weights"] += float64(p.ParamsBytes) / (1 << 30)
	}
	figure, known := figures[name]
	if !known {
		panic(fmt.Sprintf("figure %q is none of %v", name, slices.Sorted(maps.Keys(figures))))
	}
	return figure
}

// together returns an error if the modules with these prefixes are not on one GPU.
func (answer *answeredReport) together(prefixes []string) error {
	devices := map[string]bool{}
	for _, prefix := range prefixes {
		found := false
		for key, device := range answer.plan.DeviceMap {
			if key == prefix || strings.HasPrefix(key, prefix+".") {
				devices[fmt.Sprint(device)], found = true, true
			}
		}
		if !found {
			return fmt.Errorf("no module %s in the map", prefix)
		}
	}
	if len(devices) != 1 {
		return fmt.Errorf("%v are on GPUs %v", prefixes, slices.Sorted(maps.Keys(devices)))
	}
	return nil
}
