package emit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/emit"
)

// TestFewerGPUs starts run.sh of each job where CUDA shows one GPU fewer than the plan has: it
// names those that are missing, and starts nothing. With all of them it starts the launcher.
func TestFewerGPUs(t *testing.T) {
	box := newSandbox(t)
	tools := t.TempDir()
	listed := "#!/bin/sh\nfor i in 0 1 2 3 4 5 6 7; do echo \"GPU $i: NVIDIA H200 (UUID: GPU-$i)\"; done\n"
	if err := os.WriteFile(filepath.Join(tools, "nvidia-smi"), []byte(listed), 0o700); err != nil {
		t.Fatal(err)
	}
	folders(t, func(target *emit.Target, _ *emit.Input, hosts int, files map[string]string) {
		folder := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var each int
		_, number, _ := strings.Cut(files["run.sh"], "NPROC_PER_NODE=")
		if _, err := fmt.Sscanf(number, "%d", &each); err != nil || each > 8 {
			t.Fatal(target.Name, each, err)
		}
		for _, shown := range []int{8, each - 1} {
			log := filepath.Join(folder, fmt.Sprint("log", shown))
			command := exec.Command(box.sh, filepath.Join(folder, "run.sh"))
			command.Env = []string{"PATH=" + tools + ":" + box.bin + ":/usr/bin:/bin", "LOG=" + log, "SCRIPT=train.py", "MASTER_ADDR=first", "NODE_RANK=1"}
			if shown < 8 {
				command.Env = append(command.Env, "CUDA_VISIBLE_DEVICES="+"7,6,5,4,3,2,1,0"[:max(0, 2*shown-1)])
			}
			said, err := command.CombinedOutput()
			_, unstarted := os.Stat(log)
			want := fmt.Sprintf("the plan is for %d GPUs a host, and this one shows %d: GPUs %d to %d are missing\n", each, shown, shown, each-1)
			switch exit := (*exec.ExitError)(nil); {
			case shown == 8 && (err != nil || unstarted != nil):
				t.Errorf("%s, %d hosts, all GPUs: %v, %s", target.Name, hosts, err, said)
			case shown < 8 && (!errors.As(err, &exit) || exit.ExitCode() != 2 || string(said) != want || unstarted == nil):
				t.Errorf("%s, %d hosts, %d GPUs: %v, %q, want %q", target.Name, hosts, shown, err, said, want)
			}
		}
	})
}
