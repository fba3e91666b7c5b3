package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/executor/nvml"
)

const mebibyte = 1 << 20

// mostMebibytes limits what is read, so that bytes fit into an int64.
const mostMebibytes = 1 << 40

// cells returns the columns of a line of CSV as nvidia-smi writes it: no quotes, and a blank after
// each comma.
func cells(line string, want int) ([]string, error) {
	columns := strings.Split(line, ",")
	if len(columns) != want {
		return nil, fmt.Errorf("%s printed %q: %d columns, not %d", smiProgram, line, len(columns), want)
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	return columns, nil
}

func mebibytes(line, cell string) (int64, error) {
	count, err := strconv.ParseInt(cell, 10, 64)
	if err != nil || count < 0 || count > mostMebibytes {
		return 0, fmt.Errorf("%s printed %q: %q is no count of MiB", smiProgram, line, cell)
	}
	return count * mebibyte, nil
}

// parseGPUs reads index, uuid, name, memory.total, memory.used, mig.mode.current, driver_version of
// every GPU, in the order of their indexes 0, 1, ….
func parseGPUs(text string) (gpus []GPU, used []int64, driver string, err error) {
	type row struct {
		index int
		gpu   GPU
		used  int64
	}
	var rows []row
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		columns, err := cells(line, 7)
		if err != nil {
			return nil, nil, "", err
		}
		index, err := strconv.Atoi(columns[0])
		if err != nil {
			return nil, nil, "", fmt.Errorf("%s printed %q: %q is no index", smiProgram, line, columns[0])
		}
		total, err := mebibytes(line, columns[3])
		if err != nil {
			return nil, nil, "", err
		}
		inUse, err := mebibytes(line, columns[4])
		if err != nil {
			return nil, nil, "", err
		}
		rows, driver = append(rows, row{index, GPU{columns[1], columns[2], total, columns[5] == "Enabled"}, inUse}), columns[6]
	}
	slices.SortFunc(rows, func(one, other row) int { return cmp.Compare(one.index, other.index) })
	for i := range rows {
		if rows[i].index != i {
			return nil, nil, "", fmt.Errorf("%s lists GPU %d and not GPU %d", smiProgram, rows[i].index, i)
		}
		gpus, used = append(gpus, rows[i].gpu), append(used, rows[i].used)
	}
	return gpus, used, driver, nil
}

// parseUsed reads index, memory.used of one of count GPUs.
func parseUsed(line string, count int) (index int, bytes int64, err error) {
	columns, err := cells(line, 2)
	if err != nil {
		return 0, 0, err
	}
	if index, err = strconv.Atoi(columns[0]); err != nil || index < 0 || index >= count {
		return 0, 0, fmt.Errorf("%s printed %q: %q is none of %d GPUs", smiProgram, line, columns[0], count)
	}
	bytes, err = mebibytes(line, columns[1])
	return index, bytes, err
}

// parseProcesses reads gpu_uuid, pid, used_gpu_memory of every process, by UUID.
func parseProcesses(text string) (map[string][]nvml.Process, error) {
	whose := make(map[string][]nvml.Process)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		columns, err := cells(line, 3)
		if err != nil {
			return nil, err
		}
		process := nvml.Process{Used: -1}
		if process.ID, err = strconv.Atoi(columns[1]); err != nil || process.ID < 0 {
			return nil, fmt.Errorf("%s printed %q: %q is no process", smiProgram, line, columns[1])
		}
		if !strings.HasPrefix(columns[2], "[") { // [N/A], [Not Supported]
			if process.Used, err = mebibytes(line, columns[2]); err != nil {
				return nil, err
			}
		}
		whose[columns[0]] = append(whose[columns[0]], process)
	}
	return whose, nil
}
