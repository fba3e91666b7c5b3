package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// The sweep runs random commands from a seed and validates every answer. There must be no internal
// error, an exit status of the contract, and sums that add up. The check must agree with the plan
// to the byte, and printed changes must work as printed. SWEEP_TIME makes it long (make sweep),
// SEED draws others, and SWEEP_CASE repeats one.

// shortSweep is the number of commands in a test run.
const shortSweep = 36

func TestSweep(t *testing.T) {
	s := &sweep{t: t, dir: t.TempDir(), models: sweptModels(t), seed: environment(t, "SEED", 1), seen: map[string]int{}, faults: map[string]int{}}
	limit, long := time.Duration(0), false
	if text := os.Getenv("SWEEP_TIME"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		long = true
	}
	t.Logf("seed %d", s.seed)
	first, end := uint64(0), uint64(shortSweep)
	if os.Getenv("SWEEP_CASE") != "" {
		first = environment(t, "SWEEP_CASE", 0)
		end = first + 1
	} else if long {
		end = 1 << 40
	}
	start := time.Now()
	n := 0
	for i := first; i < end && (!long || time.Since(start) < limit); i++ {
		s.one(i)
		n++
	}
	t.Logf("slowest, %v: devmap %s", s.slowest.Round(time.Millisecond), s.slow)
	t.Logf("%d cases in %v: %s", n, time.Since(start).Round(time.Millisecond), s.summary())
	if n >= shortSweep && (s.seen["plan 0"] < n/4 || s.seen["plan 3"] == 0 || s.seen["hints"] == 0 || s.seen["rows"] == 0) {
		t.Error("too little is drawn that fits, that does not, or that has hints: the sweep tests nothing")
	}
}

func environment(t *testing.T, name string, defaultValue uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return defaultValue
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

type sweep struct {
	t      *testing.T
	dir    string
	models []sweptModel
	seed   uint64
	seen   map[string]int // counts for the summary
	faults map[string]int
	now    uint64 // the case

	slowest time.Duration
	slow    string // the slowest command
	*drawing
}

func (s *sweep) summary() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.seen)) {
		out = append(out, fmt.Sprintf("%s: %d", name, s.seen[name]))
	}
	faults := 0
	for _, n := range s.faults {
		faults += n
	}
	return strings.Join(append(out, fmt.Sprintf("faults: %d", faults)), ", ")
}

// fault reports what is wrong with a command, and how to repeat it.
func (s *sweep) fault(args []string, err error) {
	if err == nil {
		return
	}
	s.faults[args[0]]++
	s.t.Errorf("devmap %s\n  %v\n  (SEED=%d SWEEP_CASE=%d)", shellWords(args), err, s.seed, s.now)
}

func shellWords(args []string) string {
	var out []string
	for _, a := range args {
		if strings.ContainsAny(a, "*() ") {
			a = "'" + a + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// call runs a command line in this process. An internal error is a fault, and so is an unexpected
// status.
func (s *sweep) call(args []string, expected ...int) (status int, stdout []byte, stderr string) {
	var document, errs bytes.Buffer
	start := time.Now()
	func() {
		defer func() {
			if p := recover(); p != nil {
				status = -1
				s.fault(args, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		status = run(s.t.Context(), args, &document, &errs)
	}()
	s.seen[fmt.Sprintf("%s %d", args[0], status)]++
	if took := time.Since(start); took > s.slowest {
		s.slowest, s.slow = took, shellWords(args)
	}
	// A file whose links do not connect the devices of a map is at fault.
	unlinked := status == out.ExitError && strings.Contains(errs.String(), "links missing between")
	if status >= 0 && !slices.Contains(expected, status) && !unlinked {
		s.fault(args, fmt.Errorf("exit status %d, not one of %v: %s", status, expected, tail(errs.String())))
	}
	s.fault2(args, internal(errs.String()), internal(document.String()))
	return status, document.Bytes(), errs.String()
}

func (s *sweep) fault2(args []string, errs ...error) { s.fault(args, errors.Join(errs...)) }

func tail(text string) string {
	if len(text) > 600 {
		return "…" + text[len(text)-600:]
	}
	return text
}

// one draws a command and checks its answer.
func (s *sweep) one(i uint64) {
	s.now = i
	s.drawing = randomCommand(rand.New(rand.NewPCG(s.seed, i)), s.models, s.dir)
	if s.chance(0.2) {
		s.estimate()
		return
	}
	// A search without an end has a short limit. Any other must not end by its limit on a busy
	// machine, as a hint's figure is for the whole search.
	limit := "30s"
	if searched(words(s.flags)) {
		limit = "300ms"
	}
	args := slices.Concat([]string{"plan", s.model.name, "--time-limit", limit}, words(s.flags))
	if explain := s.chance(0.15) && !slices.Contains(s.flags, setting{"objective", "front"}); explain {
		args = append(args, "--explain")
	}
	if s.chance(0.8) {
		args = append(args, "--json")
	}
	switch status, document, errs := s.call(args, out.ExitDone, out.ExitUsage, out.ExitInfeasible); status {
	case out.ExitDone:
		if slices.Contains(s.flags, setting{"objective", "front"}) {
			s.front(args, document)
			return
		}
		s.planned(args, document, errs)
	case out.ExitInfeasible:
		if len(document) > 0 && !bytes.Contains(document, []byte(`"devmap.error/v1"`)) {
			s.fault(args, errors.New("nothing fits, and stdout has another document than that of the error"))
		}
		s.hints("plan", args, remedies(errs))
		if s.chance(0.3) {
			s.omitted(args)
		}
	case out.ExitUsage:
		s.refusal(args, errs)
	}
}

// planned judges a plan, checks it and emits it.
func (s *sweep) planned(args []string, text []byte, errs string) {
	p, err := readPlan(text)
	if err != nil {
		s.fault(args, err)
		return
	}
	s.fault(args, p.judge())
	s.hints("plan", args, advised(errs, p.Warnings))
	file := s.file("plan", text)
	s.checked(args, []string{"check", s.model.name, file, "--json"}, p)
	if p.DeviceMap != nil {
		flags := slices.DeleteFunc(slices.Clone(s.flags), func(f setting) bool {
			return f.name == "strategy" && f.value == "auto"
		})
		if len(flags) == len(s.flags) { // else the map's strategy is not among them
			s.checked(args, slices.Concat([]string{"check", s.model.name, s.file("map", p.DeviceMap), "--json"}, words(flags)), p)
		}
	}
	engine := ask.Targets()[s.IntN(len(ask.Targets()))]
	s.call([]string{"emit", file, "--for", engine}, out.ExitDone, out.ExitError, out.ExitUsage)
	if s.chance(0.1) {
		s.call([]string{"inspect", s.model.name, "--json"}, out.ExitDone)
	}
}

// checked compares check's figures with the plan's, byte for byte.
func (s *sweep) checked(plan, args []string, p *sweptPlan) {
	status, text, _ := s.call(args, out.ExitDone)
	if status != out.ExitDone {
		return
	}
	var c map[string]json.RawMessage
	if err := json.Unmarshal(text, &c); err != nil {
		s.fault(args, err)
		return
	}
	if !sameJSON(c["devices"], p.raw["devices"]) || !sameJSON(c["imbalance"], p.raw["imbalance"]) {
		s.fault(args, fmt.Errorf("check and plan (devmap %s) differ", shellWords(plan)))
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return errors.Join(json.Compact(&x, a), json.Compact(&y, b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func (s *sweep) file(kind string, data []byte) string {
	name := filepath.Join(s.dir, kind+".json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// front judges every point.
func (s *sweep) front(args []string, out []byte) {
	var doc struct {
		Points []struct {
			Objective   contractObjective `json:"objective"`
			StepSeconds float64           `json:"step_seconds"`
			Share       float64           `json:"largest_share"`
		} `json:"points"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Points) == 0 {
		s.fault(args, fmt.Errorf("a front of %d points: %w", len(doc.Points), err))
		return
	}
	for i, p := range doc.Points {
		s.fault(args, p.Objective.judge(false))
		if i > 0 && (p.StepSeconds <= doc.Points[i-1].StepSeconds || p.Share >= doc.Points[i-1].Share) || p.Share > 1 {
			s.fault(args, fmt.Errorf("point %d is no better than the one before it", i))
		}
	}
}

// hints runs every hint as printed; a short sweep runs only one.
func (s *sweep) hints(command string, args []string, hints []hint) {
	if len(hints) > 1 && os.Getenv("SWEEP_TIME") == "" {
		hints = hints[s.IntN(len(hints)):][:1]
	}
	for _, h := range hints {
		s.seen["hints"]++
		flags, err := follow(s.flags, h)
		if err != nil {
			s.fault(args, err)
			continue
		}
		if command == "estimate" { // estimate reports only that something fits
			s.call(slices.Concat([]string{"estimate", s.model.name, "--json"}, flags), out.ExitDone)
		}
		again := slices.Concat([]string{"plan", s.model.name, "--json"}, flags)
		want := out.ExitDone
		if !h.fits {
			want = out.ExitInfeasible
		}
		expected := []int{want}
		if !h.fits && (searched(args) || searched(again)) {
			expected = append(expected, out.ExitDone) // with more time it may fit
		}
		status, out, _ := s.call(again, expected...)
		if !slices.Contains(expected, status) {
			s.fault(args, fmt.Errorf("it says %q, which does not hold", h.flags))
			continue
		}
		s.follows(args, again, h, out)
	}
}

// omitted finds changes that fit and are not printed, because their flags would give another
// problem. That is a missing flag.
func (s *sweep) omitted(args []string) {
	cmd := &cobra.Command{Use: "plan"}
	r := ask.New(cmd)
	cmd.SetContext(s.t.Context())
	if err := cmd.ParseFlags(words(s.flags)); err != nil {
		s.fault(args, err)
		return
	}
	p, err := r.Problem(s.model.name)
	if err != nil {
		s.fault(args, err)
		return
	}
	for _, change := range strategy.Smallest(s.t.Context(), p.Problem, p.Options) {
		s.seen["kept"]++
		if said, ok := p.Say(change); !ok {
			s.fault(args, fmt.Errorf("it would say %q, which asks for something else", ask.ChangeText(&said)))
		}
	}
}

// searched reports whether a time limit ends the search for a command's answer, so that the same
// command may be better the next time.
func searched(args []string) bool {
	return slices.ContainsFunc(args, func(w string) bool { return slices.Contains([]string{"--contiguous=false", "time", "front"}, w) })
}

// follows compares a plan with its hint's figure, if no time limit ended their searches.
func (s *sweep) follows(args, again []string, h hint, out []byte) {
	if h.figure == "" || !h.fits || searched(args) || searched(again) {
		return
	}
	p, err := readPlan(out)
	switch {
	case err != nil:
		s.fault(again, err)
	case p.Objective.Status == "limit reached":
	case !slices.Contains(p.figures(), h.figure):
		s.fault(args, fmt.Errorf("it says %q: fullest GPU %s; devmap %s says %v", h.flags, h.figure, shellWords(again), p.figures()))
	}
}
