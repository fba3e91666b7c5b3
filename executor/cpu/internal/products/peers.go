package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// process is a Python that times products, one a line; nil where there is none.
type process struct {
	cmd   *exec.Cmd
	jobs  io.WriteCloser
	lines *bufio.Scanner
}

// open starts one, and says who it is: or, where it has no PyTorch, why not.
func open(python string) (peers *process, names string) {
	cmd := exec.Command(python, "fixtures/peers/products.py") //nolint:gosec // the user names the Python
	var stderr strings.Builder
	cmd.Stderr = &stderr
	peers, err := start(cmd)
	if err == nil && peers.lines.Scan() {
		return peers, strings.ReplaceAll(peers.lines.Text(), "\t", ", ") + "; a ratio is devmap's speed over theirs"
	}
	if err == nil {
		err = cmd.Wait()
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	return nil, "PyTorch and OpenBLAS skipped, " + cmp.Or(lines[len(lines)-1], fmt.Sprint(err)+": set PYTHON to a Python that has them")
}

func start(cmd *exec.Cmd) (*process, error) {
	jobs, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, jobs, bufio.NewScanner(out)}, cmd.Start()
}

// seconds are those of PyTorch and of OpenBLAS, 0 where they have no such product.
func (peers *process) seconds(job job) (both [2]float64, err error) {
	if peers == nil {
		return both, nil
	}
	if _, err := fmt.Fprintln(peers.jobs, job); err != nil {
		return both, err
	}
	if !peers.lines.Scan() {
		return both, fmt.Errorf("%v: the Python ended: %w", job, cmp.Or(peers.lines.Err(), io.ErrUnexpectedEOF))
	}
	first, second, _ := strings.Cut(peers.lines.Text(), "\t")
	for i, text := range []string{first, second} {
		if text == "-" {
			continue
		}
		if both[i], err = strconv.ParseFloat(text, 64); err != nil {
			return both, fmt.Errorf("%v: %q is no two numbers: %w", job, peers.lines.Text(), err)
		}
	}
	return both, nil
}

func (peers *process) close() error {
	if peers == nil {
		return nil
	}
	if err := peers.jobs.Close(); err != nil {
		return err
	}
	return peers.cmd.Wait()
}
