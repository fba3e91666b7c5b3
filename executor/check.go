package executor

import (
	"errors"
	"path/filepath"

	"github.com/devmap-dev/devmap/costmodel"
)

// Check returns a [*costmodel.FieldError] that names the flag for settings that the job cannot use,
// or that name something that does not exist. It allocates and writes nothing. Run checks them too.
func (settings *Settings) Check(job *Job) error {
	return settings.check(job, false)
}

// check is Check; woken: the turn has its weights already.
func (settings *Settings) check(job *Job, woken bool) error {
	return (&checker{settings, job, woken}).all()
}

// checker checks settings against their job.
type checker struct {
	*Settings
	job   *Job
	woken bool
}

// all checks every rule that settings can break.
func (checker *checker) all() error {
	for _, rule := range []func() error{checker.steps, checker.optimizer, checker.ids, checker.dumps, checker.states, checker.targets} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

func (checker *checker) mode() costmodel.Mode { return checker.job.Workload.Mode }

func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

func (checker *checker) steps() error {
	switch {
	case checker.mode() == costmodel.Load && checker.Steps != 0:
		return refuse("steps", checker.Steps, "%d: a plan of mode load runs no step", checker.Steps)
	case checker.mode() != costmodel.Load && checker.Steps < 1:
		return refuse("steps", checker.Steps, "%d is not 1 or more", checker.Steps)
	case checker.woken && (checker.Weights != nil || checker.Resume != ""):
		return errors.New("what sleeps has its weights")
	case !checker.woken && (checker.Weights == nil) == (checker.Resume == ""):
		return errors.New("want weights, or a state to go on from")
	}
	return nil
}

// optimizer checks hyperparameters against the limits of torch.optim.AdamW.
func (checker *checker) optimizer() error {
	taken := &checker.Optimizer
	if checker.mode() != costmodel.Train {
		if *taken != (Optimizer{}) {
			return refuse("lr", taken.Rate, "%v: a plan of mode %s has no optimizer", taken.Rate, checker.mode())
		}
		return nil
	}
	for _, bound := range []struct {
		field       string
		value, most float64
	}{{"lr", taken.Rate, maxSetting}, {"betas", taken.Beta1, 1}, {"betas", taken.Beta2, 1}, {"eps", taken.Epsilon, maxSetting}, {"weight_decay", taken.Decay, maxSetting}, {"clip", taken.Clip, maxSetting}} {
		if !(bound.value >= 0 && bound.value < bound.most) {
			if bound.most == 1 {
				return refuse(bound.field, bound.value, "%v is not a number from 0 to below 1", bound.value)
			}
			return refuse(bound.field, bound.value, "%v is not a number from 0 on that fp32 holds", bound.value)
		}
	}
	return nil
}

// maxSetting is above every finite fp32.
const maxSetting = 0x1p128

func (checker *checker) ids() error {
	if checker.Tokens != nil && checker.mode() == costmodel.Load {
		return refuse("tokens", "", "a plan of mode load feeds no token ids")
	}
	if checker.Tokens != nil && checker.Tokens.seq != checker.job.Workload.Seq {
		return refuse("tokens", "", "its sequences have %d ids, and the plan's %d", checker.Tokens.seq, checker.job.Workload.Seq)
	}
	for _, id := range checker.Stop {
		if checker.job.Workload.NewTokens == 0 {
			return refuse("stop", id, "%d: the plan generates no tokens: plan with --new-tokens", id)
		}
		if vocab := checker.job.vocab(); id < 0 || int64(id) >= vocab {
			return refuse("stop", id, "%d is no token id of the model: want 0 to %d", id, vocab-1)
		}
	}
	return nil
}

// dumps returns an error for tensors that the mode does not make.
func (checker *checker) dumps() error {
	asked := &checker.Dump
	_, headed := checker.job.headOp()
	for _, dump := range []struct{ kind, file string }{{"logits", asked.Logits}, {"hidden", asked.Hidden}, {"grads", asked.Grads}} {
		switch mode := checker.mode(); {
		case dump.file == "":
		case mode == costmodel.Load:
			return refuse("dump", dump.kind, "%s: a plan of mode load computes nothing: plan with --mode infer or train", dump.kind)
		case mode != costmodel.Train && dump.kind == "grads":
			return refuse("dump", dump.kind, "%s: a plan of mode %s has no gradients: plan with --mode train", dump.kind, mode)
		case dump.kind == "logits" && !headed:
			return refuse("dump", dump.kind, "%s: %s has no head that makes logits: --dump hidden is its last layer's output", dump.kind, checker.job.Graph.Class)
		}
	}
	return nil
}

// states returns an error for a training state in another mode.
func (checker *checker) states() error {
	for _, folder := range []struct{ field, path string }{{"save_state", checker.Save.State}, {"resume", checker.Resume}} {
		if folder.path != "" && checker.mode() != costmodel.Train {
			return refuse(folder.field, folder.path, "%q: a plan of mode %s has no training state: plan with --mode train", folder.path, checker.mode())
		}
	}
	return nil
}

// targets returns an error if two outputs have the same path.
func (checker *checker) targets() error {
	asked := &checker.Dump
	seen := make(map[string]bool)
	for _, target := range []struct{ field, path string }{
		{"dump", asked.Logits}, {"dump", asked.Hidden}, {"dump", asked.Grads}, {"save", checker.Save.Model}, {"save_state", checker.Save.State},
	} {
		if target.path == "" {
			continue
		}
		path := filepath.Clean(target.path)
		if seen[path] {
			return refuse(target.field, target.path, "%q is written already: name another", path)
		}
		seen[path] = true
	}
	return nil
}
