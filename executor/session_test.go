package executor_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
)

// sleepBackend is the reference, whose machines sleep as [executor.Sleeper] says: of their
// arenas nothing is left but what is said to outlast a step.
type sleepBackend struct {
	counted
	wakes error // of every wake
}

func (sleepBackend *sleepBackend) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine, err := sleepBackend.counted.Open(ctx, bound)
	return &sleepMachine{Machine: machine, of: sleepBackend, bound: bound}, err
}

type sleepMachine struct {
	executor.Machine
	of    *sleepBackend
	bound *bind.Bound
	rest  []map[bind.Lasting][]byte // by device
}

func (machine *sleepMachine) Sleep(_ context.Context, onProgress func(bytes, of int64)) (bytes int64, err error) {
	first := machine.rest == nil
	for device, all := range machine.bound.Lasting() {
		if first {
			machine.rest = append(machine.rest, make(map[bind.Lasting][]byte))
		}
		for _, lasting := range all {
			if lasting.Residency == bind.Empty || lasting.Residency == bind.Fixed && !first {
				continue
			}
			data := make([]byte, lasting.Bytes)
			if err := machine.Read(device, lasting.Offset, data); err != nil {
				return 0, err
			}
			machine.rest[device][lasting] = data
			bytes += lasting.Bytes
		}
		if err := machine.Fill(device, 0, machine.bound.Program.Devices[device].Arena, 0xA5); err != nil {
			return 0, err
		}
	}
	onProgress(0, bytes)
	onProgress(bytes, bytes)
	return bytes, nil
}

func (machine *sleepMachine) Wake(_ context.Context, onProgress func(bytes, of int64)) (mapped time.Duration, bytes int64, err error) {
	if machine.of.wakes != nil {
		return 0, 0, machine.of.wakes
	}
	for device, all := range machine.bound.Lasting() {
		err := machine.Fill(device, 0, machine.bound.Program.Devices[device].Arena, executor.Poison)
		for _, lasting := range all {
			if lasting.Residency == bind.Empty {
				err = errors.Join(err, machine.Fill(device, lasting.Offset, lasting.Bytes, 0))
				continue
			}
			err = errors.Join(err, machine.Write(device, lasting.Offset, machine.rest[device][lasting]))
			bytes += lasting.Bytes
		}
		if err != nil {
			return 0, 0, err
		}
	}
	onProgress(0, bytes)
	onProgress(bytes, bytes)
	return mapped, bytes, nil
}

// TestTurnsAreOneRun: three turns of two steps, with nothing in the arenas between them,
// make the losses, tokens, files and bytes of one turn of six.
func TestTurnsAreOneRun(t *testing.T) {
	generating := inference
	generating.NewTokens = 4
	mixed := training
	mixed.Precision = costmodel.BF16Mixed
	for name, work := range map[string]costmodel.Workload{"train": training, "mixed": mixed, "infer": inference, "generate": generating} {
		for _, devices := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " on ", devices), func(t *testing.T) {
				job, folder := jobOf(t, "qwen2", work, devices), t.TempDir()
				settings := executor.Settings{Steps: 6, Seed: 5}
				state := func(string) {}
				if work.Mode == costmodel.Train {
					settings.Optimizer = adamW
					state = func(name string) { settings.Save.State = filepath.Join(folder, name) }
				}
				state("whole")
				whole := run(t, job, settings)

				session := &executor.Session{Backend: &sleepBackend{counted: counted{Backend: cpu.New()}}, Job: job}
				settings.Steps, settings.Save.State, settings.Weights = 2, "", weights.Random(job.Graph, 11)
				var losses []float64
				var tokens [][]int32
				for turn := range 3 {
					if settings.Keep = turn < 2; !settings.Keep {
						state("turns")
					}
					result, err := session.Turn(context.Background(), &settings)
					if err != nil {
						t.Fatal(err)
					}
					settings.Weights = nil
					for i, step := range result.Steps {
						if step.Number != int64(2*turn+i+1) {
							t.Errorf("turn %d runs step %d", turn, step.Number)
						}
						losses = append(losses, step.Loss)
					}
					tokens = append(tokens, result.Tokens...)
					if !reflect.DeepEqual(result.Devices, whole.Devices) {
						t.Errorf("turn %d wrote %+v, a run %+v", turn, result.Devices, whole.Devices)
					}
					made := &result.Turn
					if made.Woken != (turn > 0) || made.Asleep != settings.Keep || made.Start.Bytes == 0 || made.Start.Seconds < made.MapSeconds {
						t.Errorf("turn %d: %+v", turn, made)
					}
					if copied := turn == 0 || work.Mode == costmodel.Train; made.Asleep && copied != (made.End.Bytes > 0) {
						t.Errorf("turn %d copied %d bytes as it went to sleep", turn, made.End.Bytes)
					}
				}
				for i, step := range whole.Steps {
					if losses[i] != step.Loss {
						t.Errorf("step %d has loss %v, in one turn %v", i+1, losses[i], step.Loss)
					}
				}
				if !reflect.DeepEqual(tokens, whole.Tokens) {
					t.Errorf("tokens %v, in one turn %v", tokens, whole.Tokens)
				}
				if work.Mode == costmodel.Train {
					same(t, filepath.Join(folder, "whole", "state.safetensors"), filepath.Join(folder, "turns", "state.safetensors"))
				}
			})
		}
	}
}

// TestWakesThatFail: a wake that fails leaves the machine asleep, another turn wakes it,
// and closing gives it back; what fails in a turn closes it.
func TestWakesThatFail(t *testing.T) {
	job, broken := jobOf(t, "llama", training, 2), errors.New("broken")
	backend := &sleepBackend{counted: counted{Backend: cpu.New()}}
	session := &executor.Session{Backend: backend, Job: job}
	settings := executor.Settings{Steps: 1, Optimizer: adamW, Keep: true, Weights: weights.Random(job.Graph, 11)}
	turn := func(wants error) {
		t.Helper()
		if _, err := session.Turn(context.Background(), &settings); !errors.Is(err, wants) || wants != nil && !strings.Contains(err.Error(), "rolled back") {
			t.Fatal(err)
		}
	}
	turn(nil)
	settings.Weights = nil
	backend.wakes = broken
	turn(broken)
	turn(broken)
	if backend.wakes = nil; backend.open != 1 {
		t.Errorf("%d machines are open", backend.open)
	}
	turn(nil)
	ctx, cancel := context.WithCancel(context.Background())
	settings.Watch.Step = func(*executor.StepResult) { cancel() }
	if _, err := session.Turn(ctx, &settings); !errors.Is(err, context.Canceled) || backend.open != 0 {
		t.Errorf("%v, %d machines are open", err, backend.open)
	}
	settings.Watch.Step, settings.Weights = nil, weights.Random(job.Graph, 11)
	turn(nil) // from the beginning
	if err := errors.Join(session.Close(), session.Close()); err != nil || backend.open != 0 || backend.opened != 2 {
		t.Errorf("%v, %d machines are open of %d", err, backend.open, backend.opened)
	}
	settings.Weights = weights.Random(job.Graph, 11)
	if _, err := (&executor.Session{Backend: cpu.New(), Job: job}).Turn(context.Background(), &settings); err == nil {
		t.Error("the reference kept its arenas")
	}
}
