package watch

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// How far a peak may be from a prediction: a hundredth, or a granule of drivers. Only the rarest
// families in README's table of accuracy exceed a hundredth.
const (
	peakShare = 100
	peakBytes = 2 << 20
)

// allowed returns how far a peak may be from a prediction, in bytes.
func allowed(predicted int64) int64 { return max(peakBytes, predicted/peakShare) }

// judge compares every GPU with its prediction.
func (result *Report) judge() {
	result.Verdict = report.Pass
	for i := range result.GPUs {
		verdict, reason := result.GPUs[i].judge(result)
		result.Reasons = append(result.Reasons, reason)
		if verdict == report.Fail || verdict == report.Inconclusive && result.Verdict == report.Pass {
			result.Verdict = verdict
		}
	}
	if result.Sampling.Lost != "" {
		result.doubt("readings ended early: " + result.Sampling.Lost)
	}
}

// measure reports the memory of each GPU, and judges it only by its allocator's failures: without a
// plan there is nothing to compare with.
func (result *Report) measure() {
	result.Verdict = report.Inconclusive
	for i := range result.GPUs {
		gpu := &result.GPUs[i]
		name := fmt.Sprintf("GPU %d (%s)", gpu.GPU, gpu.Name)
		switch {
		case gpu.torch != nil && gpu.torch.OutOfMemory > 0:
			result.Verdict = report.Fail
			result.Reasons = append(result.Reasons, fmt.Sprintf("%s ran out of memory with %s allocated", name, gpu.torch.Allocated.text()))
		case gpu.torch != nil:
			result.Reasons = append(result.Reasons, fmt.Sprintf("%s: peak %s allocated, %v in use; there is no plan to compare with", name, gpu.torch.Allocated.text(), costmodel.Bytes(gpu.PeakUsedBytes)))
		default:
			result.Reasons = append(result.Reasons, fmt.Sprintf("%s: peak %v in use; there is no plan to compare with", name, costmodel.Bytes(gpu.PeakUsedBytes)))
		}
	}
}

// doubt adds a reason for which the verdict cannot be a pass.
func (result *Report) doubt(reason string) {
	result.Reasons = append(result.Reasons, reason)
	if result.Verdict == report.Pass {
		result.Verdict = report.Inconclusive
	}
}

// judge compares a GPU with its prediction. It uses the allocators' own peak if that is known,
// which nothing else on the GPU changes, else the readings.
func (gpu *GPUReport) judge(result *Report) (report.Verdict, string) {
	name := fmt.Sprintf("GPU %d (%s)", gpu.GPU, gpu.Name)
	switch {
	case gpu.torch != nil && gpu.torch.OutOfMemory > 0:
		return report.Fail, fmt.Sprintf("%s ran out of memory: %s were allocated at most, %s", name, gpu.torch.Allocated.text(), predictedText(gpu.allocated))
	case gpu.torch != nil:
		return gpu.judgeTorch(name, result)
	case result.Command == nil:
		return report.Inconclusive, fmt.Sprintf("%s held %v at most, of all processes: no command was named whose memory is the plan's", name, costmodel.Bytes(gpu.PeakUsedBytes))
	}
	return gpu.judgeUsed(name, result)
}

// judgeTorch judges by the allocators' own figures.
func (gpu *GPUReport) judgeTorch(name string, result *Report) (report.Verdict, string) {
	peak, low, high := gpu.torch.Allocated, gpu.allocated[0], gpu.allocated[1]
	most := allowed(high)
	said := fmt.Sprintf("%s: %s were allocated at most, %s", name, peak.text(), predictedText(gpu.allocated))
	switch {
	case peak.Low > high+most:
		return report.Fail, said + beyond(peak.Low-high)
	case peak.High > high+most:
		return report.Inconclusive, said + ": not every process need have had its most at once"
	case peak.High < low-most && result.ended():
		return report.Fail, said + beyond(peak.High-low)
	case peak.High < low-most:
		return report.Inconclusive, said + beyond(peak.High-low) + "; the command " + result.how()
	case peak.Low < low-most:
		return report.Inconclusive, said + ": not every process need have had its most at once"
	}
	return report.Pass, fmt.Sprintf("%s, at most %v apart", said, costmodel.Bytes(most))
}

func (peak Peak) text() string {
	if peak.Low == peak.High {
		return costmodel.Bytes(peak.High).String()
	}
	return fmt.Sprintf("%v to %v", costmodel.Bytes(peak.Low), costmodel.Bytes(peak.High))
}

// judgeUsed judges by the readings. A spike between two readings is in none, so that too little
// proves nothing.
func (gpu *GPUReport) judgeUsed(name string, result *Report) (report.Verdict, string) {
	low, high := gpu.PredictedUsedBytes[0], gpu.PredictedUsedBytes[1]
	said := fmt.Sprintf("%s held %v at most in readings %v apart, %s", name, costmodel.Bytes(gpu.PeakUsedBytes), result.Sampling.Interval(), predictedText(gpu.PredictedUsedBytes))
	switch {
	case gpu.Others != "":
		return report.Inconclusive, said + ", while others moved: " + gpu.Others
	case gpu.PeakUsedBytes == 0:
		return report.Inconclusive, fmt.Sprintf("%s: the command held nothing of it in any reading, %s", name, predictedText(gpu.PredictedUsedBytes))
	case gpu.PeakUsedBytes > high+allowed(high):
		return report.Fail, said + beyond(gpu.PeakUsedBytes-high)
	case gpu.PeakUsedBytes < low-allowed(low):
		return report.Inconclusive, said + beyond(gpu.PeakUsedBytes-low) + ", which a spike between two readings may be"
	}
	return report.Pass, said
}

func predictedText(bytes [2]int64) string {
	if bytes[0] == bytes[1] {
		return fmt.Sprintf("%v were predicted", costmodel.Bytes(bytes[0]))
	}
	return fmt.Sprintf("%v to %v were predicted", costmodel.Bytes(bytes[0]), costmodel.Bytes(bytes[1]))
}

func beyond(bytes int64) string {
	if bytes < 0 {
		return fmt.Sprintf(": %v less", costmodel.Bytes(-bytes))
	}
	return fmt.Sprintf(": %v more", costmodel.Bytes(bytes))
}

// ended reports whether the command ended with exit status 0.
func (result *Report) ended() bool {
	return result.Command != nil && result.Command.ExitStatus != nil && *result.Command.ExitStatus == 0
}

// how says how the command ended.
func (result *Report) how() string {
	if result.Command == nil || result.Command.Ended == "" {
		return "goes on"
	}
	return "ended: " + result.Command.Ended
}
